//! The request that a command line asks for.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use crate::args::CallArgs;
use crate::base_url::BaseUrl;
use crate::provider::{PROFILES, Profile, Provider};
use crate::usage::UsageError;

/// A request, ready but for the connection
#[derive(Debug)]
pub(crate) struct Request {
    /// Whose API it speaks
    pub(crate) provider: Provider,
    /// Where it goes
    pub(crate) base_url: BaseUrl,
    /// Path and query
    pub(crate) path: String,
    /// Its headers, but for those of the connection; the key is marked sensitive
    pub(crate) headers: HeaderMap,
    /// Its body: JSON
    pub(crate) body: Vec<u8>,
    /// Whether the answer comes as a stream
    pub(crate) stream: bool,
}

/// An API key, and the variable it came from
struct Key {
    variable: &'static str,
    value: String,
}

impl Request {
    /// The request that `args` ask for, where `environment` gives the value of a variable
    ///
    /// The provider is the one named; OpenAI's API where only a base URL is given; else the first
    /// whose key is set. `None` where nothing is configured: the embedded provider is to answer.
    pub(crate) fn choose(
        args: &CallArgs,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, UsageError> {
        let base_url = args.base_url.as_deref().map(BaseUrl::parse).transpose()?;
        let profile = match (args.provider, &base_url) {
            (Some(provider), _) => provider.profile(),
            (None, Some(_)) => Provider::OpenAi.profile(),
            (None, None) => match PROFILES.iter().find(|profile| key(profile, &environment).is_some()) {
                Some(profile) => profile,
                None => return Ok(None),
            },
        };
        let key = key(profile, &environment);
        let base_url = match base_url {
            Some(base_url) => base_url,
            None if key.is_some() => BaseUrl::parse(profile.base_url)?,
            None => {
                return Err(UsageError::NoKey { provider: profile.name, keys: profile.keys.join(" or ") });
            }
        };
        Self::new(profile, base_url, key, args).map(Some)
    }

    /// A request that needs no key, to a server of `provider`'s API at `base_url`
    pub(crate) fn without_key(
        provider: Provider,
        base_url: BaseUrl,
        args: &CallArgs,
    ) -> Result<Self, UsageError> {
        Self::new(provider.profile(), base_url, None, args)
    }

    fn new(
        profile: &'static Profile,
        base_url: BaseUrl,
        key: Option<Key>,
        args: &CallArgs,
    ) -> Result<Self, UsageError> {
        let stream = !args.no_stream;
        let model = args.model.as_deref().unwrap_or(profile.model);
        let accept = if stream { "text/event-stream" } else { "application/json" };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("steadfast/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in profile.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = key {
            let (name, before) = profile.key_header;
            let mut value = HeaderValue::try_from(format!("{before}{}", key.value))
                .map_err(|_| UsageError::UnusableKey(key.variable))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Self {
            provider: profile.provider,
            path: format!("{}{}", base_url.prefix, profile.target(model, stream)),
            base_url,
            headers,
            body: profile.provider.body(model, &args.prompt, stream).to_string().into_bytes(),
            stream,
        })
    }
}

/// The first key of `profile` that is set; spaces and line ends around it are not part of it
fn key(profile: &Profile, environment: impl Fn(&str) -> Option<String>) -> Option<Key> {
    profile.keys.iter().find_map(|variable| {
        let value = environment(variable)?.trim().to_owned();
        (!value.is_empty()).then_some(Key { variable, value })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> CallArgs {
        CallArgs { prompt: "Hi.".to_owned(), ..CallArgs::default() }
    }

    fn choose(args: &CallArgs, environment: &[(&str, &str)]) -> Result<Option<Request>, UsageError> {
        Request::choose(args, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn request(args: &CallArgs, environment: &[(&str, &str)]) -> Request {
        choose(args, environment).unwrap().unwrap()
    }

    #[test]
    fn with_nothing_configured_the_embedded_provider_answers() {
        assert!(choose(&args(), &[]).unwrap().is_none());
        assert!(choose(&args(), &[("OPENAI_API_KEY", " \n")]).unwrap().is_none());
    }

    #[test]
    fn the_first_key_set_chooses_the_provider() {
        let cases: [(&[(&str, &str)], Provider); 4] = [
            (
                &[("GOOGLE_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")],
                Provider::OpenAi,
            ),
            (&[("GEMINI_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a")], Provider::Anthropic),
            (&[("GEMINI_API_KEY", "g")], Provider::Gemini),
            (&[("GOOGLE_API_KEY", "g")], Provider::Gemini),
        ];
        for (environment, provider) in cases {
            assert_eq!(request(&args(), environment).provider, provider);
        }
    }

    #[test]
    fn a_provider_is_asked_at_its_own_address_with_its_key() {
        let ask = |provider, environment| {
            let request = request(&CallArgs { provider: Some(provider), ..args() }, environment);
            let (name, _) = provider.profile().key_header;
            let key = &request.headers[name];
            assert!(key.is_sensitive());
            (request.base_url.authority(), request.path, key.to_str().unwrap().to_owned())
        };
        let expected = |host: &str, path: &str, key: &str| (host.to_owned(), path.to_owned(), key.to_owned());
        assert_eq!(
            ask(Provider::OpenAi, &[("OPENAI_API_KEY", "sk\n")]),
            expected("api.openai.com", "/v1/chat/completions", "Bearer sk")
        );
        assert_eq!(
            ask(Provider::Responses, &[("OPENAI_API_KEY", "sk")]),
            expected("api.openai.com", "/v1/responses", "Bearer sk")
        );
        assert_eq!(
            ask(Provider::Anthropic, &[("ANTHROPIC_API_KEY", "ant")]),
            expected("api.anthropic.com", "/v1/messages", "ant")
        );
        assert_eq!(
            ask(Provider::Gemini, &[("GOOGLE_API_KEY", "goo"), ("GEMINI_API_KEY", "gem")]),
            expected(
                "generativelanguage.googleapis.com",
                "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
                "gem"
            )
        );
    }

    #[test]
    fn headers_are_those_the_providers_want() {
        let request = request(
            &CallArgs { provider: Some(Provider::Anthropic), ..args() },
            &[("ANTHROPIC_API_KEY", "ant")],
        );
        let headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(
            headers,
            [
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                ("user-agent", concat!("steadfast/", env!("CARGO_PKG_VERSION"))),
                ("anthropic-version", "2023-06-01"),
                ("x-api-key", "ant"),
            ]
        );
    }

    #[test]
    fn a_base_url_needs_no_key_and_means_the_openai_api() {
        let local = CallArgs {
            base_url: Some("http://[::1]:8097/v1/".to_owned()),
            model: Some("smollm2".to_owned()),
            no_stream: true,
            ..args()
        };
        let request = request(&local, &[("ANTHROPIC_API_KEY", "ant")]);
        assert_eq!(request.provider, Provider::OpenAi);
        assert_eq!(request.base_url.authority(), "[::1]:8097");
        assert_eq!(request.path, "/v1/chat/completions");
        assert!(!request.stream);
        assert_eq!(request.headers["accept"], "application/json");
        assert_eq!(request.headers.len(), 3);
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body, Provider::OpenAi.body("smollm2", "Hi.", false));
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_secret_is_not() {
        let gemini = CallArgs { provider: Some(Provider::Gemini), ..args() };
        assert_eq!(
            choose(&gemini, &[("OPENAI_API_KEY", "sk")]).unwrap_err().to_string(),
            "gemini needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY, or name a server without one by --base-url"
        );
        assert_eq!(
            choose(&args(), &[("OPENAI_API_KEY", "sk\r\nx-evil: 1")]).unwrap_err().to_string(),
            "OPENAI_API_KEY holds a character that a header cannot carry"
        );
        let elsewhere = CallArgs { base_url: Some("http://me:pass@h".to_owned()), ..args() };
        assert_eq!(
            choose(&elsewhere, &[]).unwrap_err().to_string(),
            "--base-url cannot hold a user name or password: keys come from the environment"
        );
        let debug = format!("{:?}", choose(&args(), &[("OPENAI_API_KEY", "sk-secret")]).unwrap());
        assert!(debug.contains("Sensitive") && !debug.contains("sk-secret"), "{debug}");
    }
}
