//! The verbs of Anthropic.
//!
//! Source: <https://docs.claude.com/en/api/overview>. Files are a beta of it: their verbs send the
//! `anthropic-beta` of files, and a request that sets the field itself has to name that one too.

use crate::dialect::Dialect;

const FILES_BETA: &[(&str, &str)] = &[("anthropic-beta", "files-api-2025-04-14")];

verbs! {
    Anthropic:
    /// An answer of the model, whole or as a stream
    MESSAGES = post "/v1/messages", dialect(Dialect::Anthropic), retried;
    /// How many tokens a request would have
    COUNT_TOKENS = post "/v1/messages/count_tokens", retried;

    /// A batch of requests, to be answered later
    BATCH_CREATE = post "/v1/messages/batches";
    /// Batches, a page of them
    BATCH_LIST = get "/v1/messages/batches";
    /// How far a batch is
    BATCH_GET = get "/v1/messages/batches/{batch}";
    /// Ends a batch before its time
    BATCH_CANCEL = post "/v1/messages/batches/{batch}/cancel";
    /// Deletes a batch that has ended
    BATCH_DELETE = delete "/v1/messages/batches/{batch}";
    /// The answers of a batch, one JSON document a line
    BATCH_RESULTS = get "/v1/messages/batches/{batch}/results", accept("application/binary"), raw;

    /// A file: a form with the part `file`
    FILE_UPLOAD = post "/v1/files", headers(FILES_BETA), retried;
    /// Files, a page of them
    FILE_LIST = get "/v1/files", headers(FILES_BETA);
    /// What is known of a file
    FILE_GET = get "/v1/files/{file}", headers(FILES_BETA);
    /// Deletes a file
    FILE_DELETE = delete "/v1/files/{file}", headers(FILES_BETA);
    /// The bytes of a file that the model has made
    FILE_CONTENT = get "/v1/files/{file}/content", headers(FILES_BETA), accept("application/binary"), raw;

    /// Models, a page of them
    MODEL_LIST = get "/v1/models", retried;
    /// What is known of a model
    MODEL_GET = get "/v1/models/{model}", retried;
}
