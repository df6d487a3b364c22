//! Whom a command line asks, and the request that it makes.

use steadfast_tokio::{Request, RequestError};

use crate::args::CallArgs;
use crate::provider::{PROFILES, Profile, Provider, Want};
use crate::usage::UsageError;

/// Whom to ask
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answering {
    /// A server of somebody else's
    Server,
    /// The embedded provider, since nothing is configured
    Embedded,
}

/// Who is to answer, and how to ask them
pub(crate) struct Asked {
    /// Who that is
    pub(crate) answering: Answering,
    /// Whose API is spoken
    pub(crate) profile: &'static Profile,
    base_url: String,
    key: Option<Key>,
}

/// An API key, and the variable it came from
struct Key {
    variable: &'static str,
    value: String,
}

impl Asked {
    /// Whom `args` ask, where `environment` gives the value of a variable
    ///
    /// The provider is the one named; OpenAI's API where only a base URL or a Unix socket is given; else the first
    /// whose key is set. Where there is none of these and no key, the embedded provider
    /// answers in the place of the one named, or of OpenAI.
    pub(crate) fn choose(
        args: &CallArgs,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UsageError> {
        let is_at_a_server = args.base_url.is_some() || args.connect.is_to_socket();
        let with_key = PROFILES.iter().find(|profile| key(profile, &environment).is_some());
        let profile = match (args.provider, with_key) {
            (Some(provider), _) => provider.profile(),
            (None, Some(profile)) if !is_at_a_server => profile,
            (None, _) => Provider::OpenAi.profile(),
        };
        let key = key(profile, &environment);
        let (answering, base_url) = match (&args.base_url, &key) {
            (Some(base_url), _) => (Answering::Server, checked(base_url)?.to_owned()),
            (None, _) if is_at_a_server => (Answering::Server, plain(&profile.base_url())),
            (None, Some(_)) => (Answering::Server, profile.base_url()),
            (None, None) if with_key.is_none() => (Answering::Embedded, String::new()),
            (None, None) => {
                return Err(UsageError::NoKey { provider: profile.name, keys: profile.keys.join(" or ") });
            }
        };
        Ok(Self { answering, profile, base_url, key })
    }

    /// Puts the server at `base_url` in the place of whoever was to answer
    pub(crate) fn at(self, base_url: String) -> Self {
        Self { base_url, ..self }
    }

    /// The request that asks `prompt` of that model, or of the provider's default
    pub(crate) fn request(
        &self,
        model: Option<&str>,
        prompt: &str,
        want: Want,
    ) -> Result<Request, UsageError> {
        let model = model.unwrap_or(self.profile.model);
        let key = self.key.as_ref().map(|key| key.value.as_str());
        let request = self.profile.ask(&self.base_url, key, model, prompt, want);
        request.build().map_err(|error| match (error, &self.key) {
            (RequestError::Url(what), _) => UsageError::BaseUrl(what),
            (RequestError::HeaderValue { .. }, Some(key)) => UsageError::UnusableKey(key.variable),
            (error, _) => UsageError::Request(error),
        })
    }
}

/// The same paths on this machine, in plain HTTP
fn plain(base_url: &str) -> String {
    let after_scheme = base_url.split_once("://").map_or("", |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("", |at| &after_scheme[at..]);
    format!("http://localhost{path}")
}

/// What only a base URL must not have; the rest is checked with the whole URL
fn checked(base_url: &str) -> Result<&str, UsageError> {
    let base_url = base_url.trim();
    let scheme = base_url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(UsageError::Scheme);
    }
    if base_url.contains(['?', '#']) {
        return Err(UsageError::Query);
    }
    Ok(base_url)
}

/// Whether a key of `profile` is set
pub(crate) fn has_key(profile: &Profile, environment: impl Fn(&str) -> Option<String>) -> bool {
    key(profile, environment).is_some()
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
        CallArgs::default()
    }

    fn choose(args: &CallArgs, environment: &[(&str, &str)]) -> Result<Asked, UsageError> {
        Asked::choose(args, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn refusal(args: &CallArgs, environment: &[(&str, &str)]) -> String {
        let refused = choose(args, environment).and_then(|asked| asked.request(None, "Hi.", Want::Stream));
        refused.expect_err("this must be refused").to_string()
    }

    #[test]
    fn with_nothing_configured_the_embedded_provider_answers() {
        for (provider, expected) in
            [(None, Provider::OpenAi), (Some(Provider::Anthropic), Provider::Anthropic)]
        {
            let asked = choose(&CallArgs { provider, ..args() }, &[("OPENAI_API_KEY", " \n")]).unwrap();
            assert_eq!((asked.answering, asked.profile.provider), (Answering::Embedded, expected));
        }
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
            let asked = choose(&args(), environment).unwrap();
            assert_eq!((asked.answering, asked.profile.provider), (Answering::Server, provider));
        }
    }

    #[test]
    fn a_provider_is_asked_at_its_own_address_with_its_key() {
        let ask = |provider, environment| {
            let args = CallArgs { provider: Some(provider), ..args() };
            let asked = choose(&args, environment).unwrap();
            let request = asked.request(None, "Hi.", Want::Stream).unwrap();
            (request.origin().authority(), asked.key.unwrap().value)
        };
        let expected = |host: &str, key: &str| (host.to_owned(), key.to_owned());
        assert_eq!(ask(Provider::OpenAi, &[("OPENAI_API_KEY", "sk\n")]), expected("api.openai.com", "sk"));
        assert_eq!(ask(Provider::Responses, &[("OPENAI_API_KEY", "sk")]), expected("api.openai.com", "sk"));
        assert_eq!(
            ask(Provider::Anthropic, &[("ANTHROPIC_API_KEY", "ant")]),
            expected("api.anthropic.com", "ant")
        );
        assert_eq!(
            ask(Provider::Gemini, &[("GOOGLE_API_KEY", "goo"), ("GEMINI_API_KEY", "gem")]),
            expected("generativelanguage.googleapis.com", "gem")
        );
    }

    #[test]
    fn a_base_url_needs_no_key_and_means_the_openai_api() {
        let args = CallArgs { base_url: Some("http://[::1]:8097/v1/".to_owned()), ..args() };
        let asked = choose(&args, &[("ANTHROPIC_API_KEY", "ant")]).unwrap();
        assert_eq!((asked.answering, asked.profile.provider), (Answering::Server, Provider::OpenAi));
        assert!(asked.key.is_none());
        assert_eq!(asked.request(None, "Hi.", Want::Stream).unwrap().origin().authority(), "[::1]:8097");
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_secret_is_not() {
        let gemini = CallArgs { provider: Some(Provider::Gemini), ..args() };
        assert_eq!(
            refusal(&gemini, &[("OPENAI_API_KEY", "sk")]),
            "gemini needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY, or name a server without one by --base-url"
        );
        assert_eq!(
            refusal(&args(), &[("OPENAI_API_KEY", "sk\r\nx-evil: 1")]),
            "OPENAI_API_KEY holds a character that a header cannot carry"
        );
        let cases = [
            ("localhost:8080", "--base-url has to begin with http:// or https://"),
            ("ftp://h", "--base-url has to begin with http:// or https://"),
            ("http://me:pass@h", "--base-url: it holds a user name or password; use a header instead"),
            (
                "http://h/v1?key=k",
                "--base-url cannot hold a query or a fragment: it is what the endpoints' paths are added to",
            ),
            ("http://h:0", "--base-url: port 0 cannot be connected to"),
            ("http://a b", "--base-url: not a URL"),
        ];
        for (base_url, message) in cases {
            let args = CallArgs { base_url: Some(base_url.to_owned()), ..args() };
            assert_eq!(refusal(&args, &[]), message);
        }
    }
}
