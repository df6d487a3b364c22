//! The providers: where they are, how they want to be asked, and where their keys lie.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::{Value, json};
use steadfast_tokio::RequestBuilder;
use steadfast_tokio::verb::{Row, Service, anthropic, gemini, openai};

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

/// What has to be known of a provider; how its verbs are called on the wire, the core knows
#[derive(Debug)]
pub(crate) struct Profile {
    /// The provider this is about
    pub(crate) provider: Provider,
    /// Its name on the command line
    pub(crate) name: &'static str,
    /// Its API, with a key
    service: fn(&str) -> Service,
    /// The verb of a streamed answer
    streamed: &'static Row,
    /// The verb of an answer in one piece
    whole: &'static Row,
    /// The model to ask by default
    pub(crate) model: &'static str,
    /// The environment variables that may hold the key, the first one set wins
    pub(crate) keys: &'static [&'static str],
}

/// All providers, in the order in which a key is looked for
pub(crate) static PROFILES: [Profile; 4] = [
    Profile {
        provider: Provider::OpenAi,
        name: "openai",
        service: Service::openai,
        streamed: openai::CHAT.row(),
        whole: openai::CHAT.row(),
        model: "gpt-5-nano",
        keys: &["OPENAI_API_KEY"],
    },
    Profile {
        provider: Provider::Responses,
        name: "responses",
        service: Service::openai,
        streamed: openai::RESPOND.row(),
        whole: openai::RESPOND.row(),
        model: "gpt-5-nano",
        keys: &["OPENAI_API_KEY"],
    },
    Profile {
        provider: Provider::Anthropic,
        name: "anthropic",
        service: Service::anthropic,
        streamed: anthropic::MESSAGES.row(),
        whole: anthropic::MESSAGES.row(),
        model: "claude-haiku-4-5",
        keys: &["ANTHROPIC_API_KEY"],
    },
    Profile {
        provider: Provider::Gemini,
        name: "gemini",
        service: Service::gemini,
        streamed: gemini::GENERATE_STREAM.row(),
        whole: gemini::GENERATE.row(),
        model: "gemini-2.5-flash",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
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
    /// Where the provider's own API is
    pub(crate) fn base_url(&self) -> String {
        (self.service)("").base_url().to_owned()
    }

    /// A request to the API at `base_url`, with `key` if there is one, that asks `model` to answer `prompt`
    pub(crate) fn ask(
        &self,
        base_url: &str,
        key: Option<&str>,
        model: &str,
        prompt: &str,
        want: Want,
    ) -> RequestBuilder {
        let service = (self.service)(key.unwrap_or_default()).at(base_url);
        let service = if key.is_some() { service } else { service.without_key() };
        let stream = want.is_stream();
        let verb = if stream { self.streamed } else { self.whole };
        // Where the path names no model, the body does.
        let ids = if verb.ids() == 0 { &[][..] } else { &[model] };
        let request = service.row(verb, ids).json(&self.provider.body(model, prompt, want));
        if stream { request.header("accept", "text/event-stream").stream() } else { request }
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

#[cfg(test)]
mod tests {
    use steadfast_tokio::{Dialect, Request};

    use super::*;

    fn ask(profile: &Profile, model: &str, want: Want) -> Request {
        profile.ask(&profile.base_url(), Some("k"), model, "Hi.", want).build().unwrap()
    }

    #[test]
    fn every_provider_has_its_profile() {
        let providers = Provider::value_variants();
        assert_eq!(providers.len(), PROFILES.len());
        let dialects = [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini];
        for ((provider, profile), dialect) in providers.iter().zip(&PROFILES).zip(dialects) {
            assert_eq!(provider.profile().provider, *provider);
            assert_eq!(profile.provider, *provider);
            for want in [Want::Stream, Want::Whole] {
                let request = ask(profile, profile.model, want);
                assert!(request.origin().is_tls());
                assert_eq!(request.dialect(), Some(dialect));
            }
        }
    }

    #[test]
    fn targets_are_those_of_the_providers() {
        let target =
            |provider: Provider, want| ask(provider.profile(), "some/model?x", want).path().to_owned();
        for want in [Want::Stream, Want::Whole] {
            assert_eq!(target(Provider::OpenAi, want), "/v1/chat/completions");
            assert_eq!(target(Provider::Responses, want), "/v1/responses");
            assert_eq!(target(Provider::Anthropic, want), "/v1/messages");
        }
        let gemini = "/v1beta/models/some%2Fmodel%3Fx";
        assert_eq!(target(Provider::Gemini, Want::Stream), format!("{gemini}:streamGenerateContent"));
        assert_eq!(target(Provider::Gemini, Want::Whole), format!("{gemini}:generateContent"));
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
