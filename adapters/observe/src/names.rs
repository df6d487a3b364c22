//! What a call is called: its operation, provider, model and server, and the kind of its failure.

use steadfast::call::Request;
use steadfast::chat::Tokens;
use steadfast::dialect::Dialect;
use steadfast::outcome::{ErrorKind, Turn};

/// Who is asked for what
pub(crate) struct Names {
    /// `gen_ai.operation.name`
    pub(crate) operation: &'static str,
    /// `gen_ai.provider.name`
    pub(crate) provider: &'static str,
    /// `gen_ai.request.model`
    pub(crate) model: Option<String>,
    /// `server.address`
    pub(crate) address: String,
    /// `server.port`
    pub(crate) port: u16,
}

impl Names {
    pub(crate) fn of(request: &Request) -> Self {
        let origin = request.origin();
        Self {
            operation: operation(request.dialect(), request.path()),
            provider: provider(request.dialect(), origin.host()),
            model: request.model(),
            address: origin.host().to_owned(),
            port: origin.port(),
        }
    }
}

/// Of the well-known values of `gen_ai.operation.name` the one that fits; `request` where none does
fn operation(dialect: Option<Dialect>, path: &str) -> &'static str {
    match dialect {
        Some(Dialect::OpenAiCompletions) => "text_completion",
        Some(Dialect::Gemini | Dialect::GeminiInteractions) => "generate_content",
        Some(
            Dialect::OpenAiChat
            | Dialect::OpenAiResponses
            | Dialect::Anthropic
            | Dialect::Ollama
            | Dialect::Cohere
            | Dialect::Custom(_),
        ) => "chat",
        None => {
            let last = path.rsplit(['/', ':']).next().unwrap_or_default();
            let embeds = ["embeddings", "embed", "embedContent", "batchEmbedContents"].contains(&last);
            if embeds { "embeddings" } else { "request" }
        }
    }
}

/// Hosts, or ends of hosts, and the well-known values of `gen_ai.provider.name` that they stand for
const PROVIDERS: [(&str, &str); 16] = [
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    (".cognitiveservices.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    (".amazonaws.com", "aws.bedrock"),
    (".ml.cloud.ibm.com", "ibm.watsonx.ai"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "x_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
];

/// The provider by its host; for a host that is not known, the one whose dialect is spoken
fn provider(dialect: Option<Dialect>, host: &str) -> &'static str {
    if let Some((_, name)) = PROVIDERS.iter().find(|(end, _)| host.ends_with(end)) {
        return name;
    }
    match dialect {
        Some(Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::OpenAiResponses) => "openai",
        Some(Dialect::Anthropic) => "anthropic",
        Some(Dialect::Gemini | Dialect::GeminiInteractions) => "gcp.gemini",
        Some(Dialect::Cohere) => "cohere",
        Some(dialect @ (Dialect::Ollama | Dialect::Custom(_))) => dialect.name(),
        None => "_OTHER",
    }
}

/// What an answer took, as the conventions count it: what was cached is input, and reasoning is output
pub(crate) struct Spent {
    /// `gen_ai.usage.input_tokens`
    pub(crate) input: u64,
    /// `gen_ai.usage.output_tokens`
    pub(crate) output: u64,
    /// The parts of these, by kind
    pub(crate) tokens: Tokens,
}

impl Spent {
    /// `None` where the provider counted no tokens
    pub(crate) fn of(turn: &Turn) -> Option<Self> {
        let tokens = turn.usage.as_ref().and_then(Tokens::of)?;
        let Tokens { input, cached_input, cache_write, output, reasoning } = tokens;
        let input = input.saturating_add(cached_input).saturating_add(cache_write);
        Some(Self { input, output: output.saturating_add(reasoning), tokens })
    }
}

/// `error.type`, of few values: the status, the bound that was reached, or the kind of failure
pub(crate) fn error_type(kind: &ErrorKind) -> String {
    if let ErrorKind::Status(error) = kind {
        return error.status.as_u16().to_string();
    }
    if let ErrorKind::Timeout(timeout) = kind {
        return timeout.setting.to_owned();
    }
    kind.name().to_owned()
}

#[cfg(test)]
mod tests {
    use steadfast::outcome::Usage;

    use super::*;

    #[test]
    fn providers_are_known_by_host_and_then_by_dialect() {
        assert_eq!(provider(Some(Dialect::OpenAiChat), "api.deepseek.com"), "deepseek");
        assert_eq!(provider(Some(Dialect::OpenAiChat), "mine.openai.azure.com"), "azure.ai.openai");
        assert_eq!(
            provider(Some(Dialect::Gemini), "europe-west1-aiplatform.googleapis.com"),
            "gcp.vertex_ai"
        );
        assert_eq!(provider(Some(Dialect::OpenAiChat), "localhost"), "openai");
        assert_eq!(provider(Some(Dialect::Ollama), "localhost"), "ollama");
        assert_eq!(provider(None, "localhost"), "_OTHER");
    }

    #[test]
    fn operations_are_known_by_dialect_and_then_by_path() {
        assert_eq!(operation(Some(Dialect::Anthropic), "/v1/messages"), "chat");
        assert_eq!(operation(Some(Dialect::Gemini), "/v1beta/models/x:generateContent"), "generate_content");
        assert_eq!(operation(None, "/v1/embeddings"), "embeddings");
        assert_eq!(operation(None, "/v1beta/models/x:embedContent"), "embeddings");
        assert_eq!(operation(None, "/v1/files/file-1"), "request");
    }

    #[test]
    fn what_was_cached_is_input_whoever_counts_it_beside_it() {
        let raw = r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":5}"#.to_owned();
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(5), total_tokens: None, raw };
        let spent = Spent::of(&Turn { usage: Some(usage), ..Turn::default() }).expect("a count");
        assert_eq!((spent.input, spent.output, spent.tokens.cached_input), (100, 5, 90));
        assert!(Spent::of(&Turn::default()).is_none());
    }
}
