//! The providers: where they are, how they want to be asked, and where their keys lie.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::{Value, json};
use steadfast_tokio::{Dialect, Request, RequestBuilder};

/// Whose API to speak
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// OpenAI Chat Completions, and the many servers compatible with it
    OpenAi,
    /// OpenAI Responses
    Responses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini `generateContent`
    Gemini,
}

/// In what form an answer is wanted
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// As it comes
    Stream,
    /// As it comes, after as much reasoning as the provider lets be asked for
    ReasoningStream,
    /// In one piece
    Whole,
}

/// What has to be known of a provider
#[derive(Debug)]
pub(crate) struct Profile {
    /// The provider this is about
    pub(crate) provider: Provider,
    /// Its name on the command line
    pub(crate) name: &'static str,
    /// What its answers mean
    pub(crate) dialect: Dialect,
    /// Where its API is
    pub(crate) base_url: &'static str,
    /// The path and query for a streamed answer; `{model}` stands for the model
    stream_target: &'static str,
    /// The path and query for an answer in one piece
    unary_target: &'static str,
    /// The model to ask by default
    pub(crate) model: &'static str,
    /// The environment variables that may hold the key, the first one set wins
    pub(crate) keys: &'static [&'static str],
    /// The header that carries the key, and what comes before the key in it
    pub(crate) key_header: (&'static str, &'static str),
    /// Headers that every request needs
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// All providers, in the order in which a key is looked for
pub(crate) static PROFILES: [Profile; 4] = [
    Profile {
        provider: Provider::OpenAi,
        name: "openai",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.openai.com/v1",
        stream_target: "/chat/completions",
        unary_target: "/chat/completions",
        model: "gpt-5-nano",
        keys: &["OPENAI_API_KEY"],
        key_header: ("authorization", "Bearer "),
        headers: &[],
    },
    Profile {
        provider: Provider::Responses,
        name: "responses",
        dialect: Dialect::OpenAiResponses,
        base_url: "https://api.openai.com/v1",
        stream_target: "/responses",
        unary_target: "/responses",
        model: "gpt-5-nano",
        keys: &["OPENAI_API_KEY"],
        key_header: ("authorization", "Bearer "),
        headers: &[],
    },
    Profile {
        provider: Provider::Anthropic,
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        stream_target: "/v1/messages",
        unary_target: "/v1/messages",
        model: "claude-haiku-4-5",
        keys: &["ANTHROPIC_API_KEY"],
        key_header: ("x-api-key", ""),
        headers: &[("anthropic-version", "2023-06-01")],
    },
    Profile {
        provider: Provider::Gemini,
        name: "gemini",
        dialect: Dialect::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        stream_target: "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        unary_target: "/v1beta/models/{model}:generateContent",
        model: "gemini-2.5-flash",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        // A key in the query would end up in the logs of every proxy.
        key_header: ("x-goog-api-key", ""),
        headers: &[],
    },
];

/// Anthropic wants a limit; this one is within what each of its models allows
const ANTHROPIC_MAX_TOKENS: u32 = 4096;

impl Provider {
    /// What has to be known of this provider
    pub(crate) const fn profile(self) -> &'static Profile {
        match self {
            Self::OpenAi => &PROFILES[0],
            Self::Responses => &PROFILES[1],
            Self::Anthropic => &PROFILES[2],
            Self::Gemini => &PROFILES[3],
        }
    }

    /// The body that asks `model` to answer `prompt`
    fn body(self, model: &str, prompt: &str, want: Want) -> Value {
        let mut body = self.plain_body(model, prompt, want.is_stream());
        if want == Want::ReasoningStream
            && let (Some(body), Value::Object(reasoning)) = (body.as_object_mut(), self.reasoning())
        {
            body.extend(reasoning);
        }
        body
    }

    fn plain_body(self, model: &str, prompt: &str, stream: bool) -> Value {
        let message = json!({ "role": "user", "content": prompt });
        match self {
            // Without the option, a streamed answer has no usage.
            Self::OpenAi if stream => json!({
                "model": model,
                "messages": [message],
                "stream": true,
                "stream_options": { "include_usage": true },
            }),
            Self::OpenAi => json!({ "model": model, "messages": [message], "stream": false }),
            Self::Responses => json!({ "model": model, "input": prompt, "stream": stream }),
            Self::Anthropic => json!({
                "model": model,
                "max_tokens": ANTHROPIC_MAX_TOKENS,
                "messages": [message],
                "stream": stream,
            }),
            Self::Gemini => json!({ "contents": [{ "role": "user", "parts": [{ "text": prompt }] }] }),
        }
    }

    /// The fields that ask for reasoning, and to see it where that can be
    fn reasoning(self) -> Value {
        match self {
            Self::OpenAi => json!({ "reasoning_effort": "high" }),
            Self::Responses => json!({ "reasoning": { "effort": "high", "summary": "auto" } }),
            // The budget has to be below the limit.
            Self::Anthropic => json!({
                "max_tokens": 4 * ANTHROPIC_MAX_TOKENS,
                "thinking": { "type": "enabled", "budget_tokens": 2 * ANTHROPIC_MAX_TOKENS },
            }),
            Self::Gemini => json!({ "generationConfig": { "thinkingConfig": { "includeThoughts": true } } }),
        }
    }
}

impl Want {
    const fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::ReasoningStream)
    }
}

impl Profile {
    /// A request to the API at `base_url` that asks `model` to answer `prompt`; it lacks the key
    pub(crate) fn ask(&self, base_url: &str, model: &str, prompt: &str, want: Want) -> RequestBuilder {
        let stream = want.is_stream();
        let url = format!("{}{}", base_url.trim_end_matches('/'), self.target(model, stream));
        let request = Request::post(&url)
            .header("accept", if stream { "text/event-stream" } else { "application/json" })
            .header("user-agent", concat!("steadfast/", env!("CARGO_PKG_VERSION")))
            .json(&self.provider.body(model, prompt, want))
            .dialect(self.dialect);
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        if stream { request.stream() } else { request }
    }

    /// The path and query of a request, to follow the base URL
    fn target(&self, model: &str, stream: bool) -> String {
        let target = if stream { self.stream_target } else { self.unary_target };
        target.replace("{model}", &percent_encoded(model))
    }
}

impl ValueEnum for Provider {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.profile().name))
    }
}

/// A path segment in which nothing can end it (RFC 3986, 2.3)
fn percent_encoded(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_its_profile() {
        let providers = Provider::value_variants();
        assert_eq!(providers.len(), PROFILES.len());
        for (provider, profile) in providers.iter().zip(&PROFILES) {
            assert_eq!(provider.profile().provider, *provider);
            assert_eq!(profile.provider, *provider);
            let request = profile.ask(profile.base_url, profile.model, "Hi.", Want::Stream).build().unwrap();
            assert!(request.origin().is_tls());
            assert_eq!(request.dialect(), Some(profile.dialect));
        }
    }

    #[test]
    fn targets_are_those_of_the_providers() {
        let target = |provider: Provider, stream| provider.profile().target("some/model?x", stream);
        for stream in [true, false] {
            assert_eq!(target(Provider::OpenAi, stream), "/chat/completions");
            assert_eq!(target(Provider::Responses, stream), "/responses");
            assert_eq!(target(Provider::Anthropic, stream), "/v1/messages");
        }
        let gemini = "/v1beta/models/some%2Fmodel%3Fx";
        assert_eq!(target(Provider::Gemini, true), format!("{gemini}:streamGenerateContent?alt=sse"));
        assert_eq!(target(Provider::Gemini, false), format!("{gemini}:generateContent"));
        assert_eq!(percent_encoded("gemini-2.5_x~é\r\n"), "gemini-2.5_x~%C3%A9%0D%0A");
    }

    #[test]
    fn bodies_are_those_the_providers_document() {
        let body = |provider: Provider, stream| {
            let want = if stream { Want::Stream } else { Want::Whole };
            provider.body("m", "Say \"hello\".", want).to_string()
        };
        let message = r#"{"content":"Say \"hello\".","role":"user"}"#;
        assert_eq!(
            body(Provider::OpenAi, true),
            format!(
                r#"{{"messages":[{message}],"model":"m","stream":true,"stream_options":{{"include_usage":true}}}}"#
            )
        );
        assert_eq!(
            body(Provider::OpenAi, false),
            format!(r#"{{"messages":[{message}],"model":"m","stream":false}}"#)
        );
        for stream in [true, false] {
            assert_eq!(
                body(Provider::Responses, stream),
                format!(r#"{{"input":"Say \"hello\".","model":"m","stream":{stream}}}"#)
            );
            assert_eq!(
                body(Provider::Anthropic, stream),
                format!(r#"{{"max_tokens":4096,"messages":[{message}],"model":"m","stream":{stream}}}"#)
            );
            assert_eq!(
                body(Provider::Gemini, stream),
                r#"{"contents":[{"parts":[{"text":"Say \"hello\"."}],"role":"user"}]}"#
            );
        }
    }

    #[test]
    fn reasoning_is_asked_for_in_each_providers_words() {
        let body = |provider: Provider| provider.body("m", "p", Want::ReasoningStream);
        assert_eq!(body(Provider::OpenAi)["reasoning_effort"], "high");
        assert_eq!(body(Provider::Responses)["reasoning"]["effort"], "high");
        let gemini = body(Provider::Gemini);
        assert_eq!(gemini["generationConfig"]["thinkingConfig"]["includeThoughts"], true);
        assert_eq!(gemini["contents"][0]["parts"][0]["text"], "p");
        let anthropic = body(Provider::Anthropic);
        let limit = anthropic["max_tokens"].as_u64().unwrap();
        assert!(anthropic["thinking"]["budget_tokens"].as_u64().unwrap() < limit);
        assert_eq!(anthropic["stream"], true);
    }
}
