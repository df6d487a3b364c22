//! The verbs of Gemini.
//!
//! Source: <https://ai.google.dev/api>. An identifier may bear the name of its collection, as the API
//! itself gives it: `models/gemini-2.5-flash` or `gemini-2.5-flash`, `files/abc` or `abc`.
//!
//! A file goes up in one request by [`FILE_UPLOAD`], or resumably: [`FILE_UPLOAD_START`] is answered with
//! a URL in `x-goog-upload-url`, to which the bytes are posted with `X-Goog-Upload-Offset: 0` and
//! `X-Goog-Upload-Command: upload, finalize`.

use crate::dialect::Dialect;

verbs! {
    Gemini:
    /// An answer of the model, whole
    GENERATE = post "/v1beta/models/{model}:generateContent", dialect(Dialect::Gemini), retried;
    /// An answer of the model, as a stream of events
    GENERATE_STREAM = post "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        dialect(Dialect::Gemini), stream, retried;
    /// An interaction, whole or as a stream
    INTERACT = post "/v1beta/interactions", dialect(Dialect::GeminiInteractions), retried;
    /// How far an interaction is that runs in the background
    INTERACTION_GET = get "/v1beta/interactions/{interaction}";
    /// Ends an interaction that runs in the background
    INTERACTION_CANCEL = post "/v1beta/interactions/{interaction}/cancel";
    /// Deletes an interaction
    INTERACTION_DELETE = delete "/v1beta/interactions/{interaction}";
    /// How many tokens a request would have
    COUNT_TOKENS = post "/v1beta/models/{model}:countTokens", retried;
    /// The embedding of one content
    EMBED = post "/v1beta/models/{model}:embedContent", retried;
    /// The embeddings of several contents
    EMBED_ALL = post "/v1beta/models/{model}:batchEmbedContents", retried;

    /// Pictures of Imagen
    PREDICT = post "/v1beta/models/{model}:predict", retried;
    /// A film of Veo: begins an operation
    PREDICT_LONG_RUNNING = post "/v1beta/models/{model}:predictLongRunning";
    /// How far an operation of a model is
    OPERATION_GET = get "/v1beta/models/{model}/operations/{operation}";

    /// A file in one request: `multipart/related`, first what is known of it as JSON, then its bytes
    FILE_UPLOAD = post "/upload/v1beta/files", headers(&[("x-goog-upload-protocol", "multipart")]), retried;
    /// Begins a resumable upload; the body is what is known of the file
    ///
    /// The request has to say `X-Goog-Upload-Header-Content-Length` and `-Content-Type`.
    FILE_UPLOAD_START = post "/upload/v1beta/files",
        headers(&[("x-goog-upload-protocol", "resumable"), ("x-goog-upload-command", "start")]), retried;
    /// Files, a page of them
    FILE_LIST = get "/v1beta/files";
    /// What is known of a file
    FILE_GET = get "/v1beta/files/{file}";
    /// Deletes a file
    FILE_DELETE = delete "/v1beta/files/{file}";
    /// The bytes of a file that the model has made
    FILE_CONTENT = get "/v1beta/files/{file}:download?alt=media", accept("*/*"), raw;

    /// A batch of requests, to be answered later
    BATCH_CREATE = post "/v1beta/models/{model}:batchGenerateContent";
    /// A batch of contents, to be embedded later
    BATCH_EMBED = post "/v1beta/models/{model}:asyncBatchEmbedContent";
    /// Batches, a page of them
    BATCH_LIST = get "/v1beta/batches";
    /// How far a batch is
    BATCH_GET = get "/v1beta/batches/{batch}";
    /// Ends a batch before its time
    BATCH_CANCEL = post "/v1beta/batches/{batch}:cancel";
    /// Deletes a batch
    BATCH_DELETE = delete "/v1beta/batches/{batch}";

    /// Keeps contents for later requests
    CACHE_CREATE = post "/v1beta/cachedContents";
    /// Kept contents, a page of them
    CACHE_LIST = get "/v1beta/cachedContents";
    /// What is known of kept contents
    CACHE_GET = get "/v1beta/cachedContents/{cache}";
    /// Changes how long contents are kept
    CACHE_UPDATE = patch "/v1beta/cachedContents/{cache}";
    /// Deletes kept contents
    CACHE_DELETE = delete "/v1beta/cachedContents/{cache}";

    /// Models, a page of them
    MODEL_LIST = get "/v1beta/models", retried;
    /// What is known of a model
    MODEL_GET = get "/v1beta/models/{model}", retried;
}
