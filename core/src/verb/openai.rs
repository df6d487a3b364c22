//! The verbs of OpenAI and of servers compatible with it.
//!
//! Source: <https://platform.openai.com/docs/api-reference>; [`FIM`] is Mistral's. Prefix completion is
//! [`CHAT`] with a last message of the assistant, at a base URL that offers it, such as DeepSeek's `/beta`.

use crate::dialect::Dialect;

/// What vector stores ask for
const ASSISTANTS: &[(&str, &str)] = &[("openai-beta", "assistants=v2")];

verbs! {
    OpenAi:
    /// An answer in a chat, whole or as a stream
    CHAT = post "/chat/completions", dialect(Dialect::OpenAiChat), retried;
    /// A completion of a text, also of its middle where the server takes a `suffix`
    COMPLETE = post "/completions", dialect(Dialect::OpenAiCompletions), retried;
    /// A completion of the middle of a text
    FIM = post "/fim/completions", dialect(Dialect::OpenAiChat), retried;
    /// Embeddings
    EMBED = post "/embeddings", retried;
    /// Whether a text or a picture breaks a policy
    MODERATE = post "/moderations";

    /// A response, whole or as a stream
    RESPOND = post "/responses", dialect(Dialect::OpenAiResponses), retried;
    /// How far a response is
    RESPONSE_GET = get "/responses/{response}";
    /// Deletes a response
    RESPONSE_DELETE = delete "/responses/{response}";
    /// Ends a response that is made in the background
    RESPONSE_CANCEL = post "/responses/{response}/cancel";
    /// What a response was made from, a page of it
    RESPONSE_INPUT_ITEMS = get "/responses/{response}/input_items";
    /// How many tokens a response would take in
    RESPONSE_INPUT_TOKENS = post "/responses/input_tokens";
    /// A conversation, made shorter
    RESPONSE_COMPACT = post "/responses/compact";

    /// A conversation
    CONVERSATION_CREATE = post "/conversations";
    /// What is known of a conversation
    CONVERSATION_GET = get "/conversations/{conversation}";
    /// Changes what is known of a conversation
    CONVERSATION_UPDATE = post "/conversations/{conversation}";
    /// Deletes a conversation
    CONVERSATION_DELETE = delete "/conversations/{conversation}";
    /// Adds items to a conversation
    CONVERSATION_ITEM_CREATE = post "/conversations/{conversation}/items";
    /// Items of a conversation, a page of them
    CONVERSATION_ITEM_LIST = get "/conversations/{conversation}/items";
    /// An item of a conversation
    CONVERSATION_ITEM_GET = get "/conversations/{conversation}/items/{item}";
    /// Deletes an item of a conversation
    CONVERSATION_ITEM_DELETE = delete "/conversations/{conversation}/items/{item}";

    /// Pictures from a text
    IMAGE_GENERATE = post "/images/generations", retried;
    /// Pictures from others: a form with the parts `image` and `prompt`
    IMAGE_EDIT = post "/images/edits", retried;
    /// Pictures like another: a form with the part `image`
    IMAGE_VARIATION = post "/images/variations", retried;

    /// Speech from a text
    SPEECH = post "/audio/speech", accept("application/octet-stream"), raw;
    /// The text of speech: a form with the parts `file` and `model`
    TRANSCRIBE = post "/audio/transcriptions";
    /// The text of speech, in English: a form with the parts `file` and `model`
    TRANSLATE = post "/audio/translations";

    /// Begins a film
    VIDEO_CREATE = post "/videos";
    /// How far a film is
    VIDEO_GET = get "/videos/{video}";
    /// The bytes of a film
    VIDEO_CONTENT = get "/videos/{video}/content", accept("application/binary"), raw;
    /// Films, a page of them
    VIDEO_LIST = get "/videos";
    /// Deletes a film
    VIDEO_DELETE = delete "/videos/{video}";
    /// Begins a film from another
    VIDEO_REMIX = post "/videos/{video}/remix";

    /// A file: a form with the parts `file` and `purpose`
    FILE_UPLOAD = post "/files", retried;
    /// Files, a page of them
    FILE_LIST = get "/files";
    /// What is known of a file
    FILE_GET = get "/files/{file}";
    /// Deletes a file
    FILE_DELETE = delete "/files/{file}";
    /// The bytes of a file
    FILE_CONTENT = get "/files/{file}/content", accept("application/binary"), raw;

    /// Begins the upload of a large file in parts
    UPLOAD_CREATE = post "/uploads";
    /// A part of a large file: a form with the part `data`
    UPLOAD_PART = post "/uploads/{upload}/parts";
    /// Makes a file of its parts
    UPLOAD_COMPLETE = post "/uploads/{upload}/complete";
    /// Gives up an upload
    UPLOAD_CANCEL = post "/uploads/{upload}/cancel";

    /// A batch of requests, to be answered later
    BATCH_CREATE = post "/batches";
    /// Batches, a page of them
    BATCH_LIST = get "/batches";
    /// How far a batch is
    BATCH_GET = get "/batches/{batch}";
    /// Ends a batch before its time
    BATCH_CANCEL = post "/batches/{batch}/cancel";

    /// Begins to tune a model
    FINE_TUNING_CREATE = post "/fine_tuning/jobs";
    /// Jobs, a page of them
    FINE_TUNING_LIST = get "/fine_tuning/jobs";
    /// How far a job is
    FINE_TUNING_GET = get "/fine_tuning/jobs/{job}";
    /// Ends a job before its time
    FINE_TUNING_CANCEL = post "/fine_tuning/jobs/{job}/cancel";
    /// Halts a job
    FINE_TUNING_PAUSE = post "/fine_tuning/jobs/{job}/pause";
    /// Lets a job go on
    FINE_TUNING_RESUME = post "/fine_tuning/jobs/{job}/resume";
    /// What has happened in a job, a page of it
    FINE_TUNING_EVENTS = get "/fine_tuning/jobs/{job}/events";
    /// Models that a job has come by, a page of them
    FINE_TUNING_CHECKPOINTS = get "/fine_tuning/jobs/{job}/checkpoints";

    /// A vector store
    VECTOR_STORE_CREATE = post "/vector_stores", headers(ASSISTANTS);
    /// Vector stores, a page of them
    VECTOR_STORE_LIST = get "/vector_stores", headers(ASSISTANTS);
    /// What is known of a vector store
    VECTOR_STORE_GET = get "/vector_stores/{store}", headers(ASSISTANTS);
    /// Changes what is known of a vector store
    VECTOR_STORE_UPDATE = post "/vector_stores/{store}", headers(ASSISTANTS);
    /// Deletes a vector store
    VECTOR_STORE_DELETE = delete "/vector_stores/{store}", headers(ASSISTANTS);
    /// What a vector store has on a question
    VECTOR_STORE_SEARCH = post "/vector_stores/{store}/search", headers(ASSISTANTS);
    /// Puts a file into a vector store
    VECTOR_STORE_FILE_CREATE = post "/vector_stores/{store}/files", headers(ASSISTANTS);
    /// Files of a vector store, a page of them
    VECTOR_STORE_FILE_LIST = get "/vector_stores/{store}/files", headers(ASSISTANTS);
    /// How far a file is taken in
    VECTOR_STORE_FILE_GET = get "/vector_stores/{store}/files/{file}", headers(ASSISTANTS);
    /// Changes what is known of a file in a vector store
    VECTOR_STORE_FILE_UPDATE = post "/vector_stores/{store}/files/{file}", headers(ASSISTANTS);
    /// Takes a file out of a vector store
    VECTOR_STORE_FILE_DELETE = delete "/vector_stores/{store}/files/{file}", headers(ASSISTANTS);
    /// The text of a file as a vector store has it
    VECTOR_STORE_FILE_CONTENT = get "/vector_stores/{store}/files/{file}/content", headers(ASSISTANTS);
    /// Puts several files into a vector store
    VECTOR_STORE_BATCH_CREATE = post "/vector_stores/{store}/file_batches", headers(ASSISTANTS);
    /// How far several files are taken in
    VECTOR_STORE_BATCH_GET = get "/vector_stores/{store}/file_batches/{batch}", headers(ASSISTANTS);
    /// Ends the taking in of several files
    VECTOR_STORE_BATCH_CANCEL = post "/vector_stores/{store}/file_batches/{batch}/cancel", headers(ASSISTANTS);
    /// Files that were put in together, a page of them
    VECTOR_STORE_BATCH_FILES = get "/vector_stores/{store}/file_batches/{batch}/files", headers(ASSISTANTS);

    /// A container
    CONTAINER_CREATE = post "/containers";
    /// Containers, a page of them
    CONTAINER_LIST = get "/containers";
    /// What is known of a container
    CONTAINER_GET = get "/containers/{container}";
    /// Deletes a container
    CONTAINER_DELETE = delete "/containers/{container}";
    /// Puts a file into a container: a form with the part `file`, or JSON with a `file_id`
    CONTAINER_FILE_CREATE = post "/containers/{container}/files";
    /// Files of a container, a page of them
    CONTAINER_FILE_LIST = get "/containers/{container}/files";
    /// What is known of a file in a container
    CONTAINER_FILE_GET = get "/containers/{container}/files/{file}";
    /// Deletes a file in a container
    CONTAINER_FILE_DELETE = delete "/containers/{container}/files/{file}";
    /// The bytes of a file in a container
    CONTAINER_FILE_CONTENT = get "/containers/{container}/files/{file}/content", accept("application/binary"), raw;

    /// A key with which a browser opens a Realtime session
    REALTIME_CLIENT_SECRET = post "/realtime/client_secrets";

    /// Models, a page of them
    MODEL_LIST = get "/models", retried;
    /// What is known of a model
    MODEL_GET = get "/models/{model}", retried;
    /// Deletes a model that was tuned
    MODEL_DELETE = delete "/models/{model}";
}
