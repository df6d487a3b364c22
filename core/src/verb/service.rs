//! Where an API is, and the key to it.

use std::borrow::Cow;
use std::fmt;

use http::Method;

use super::{Api, Row, Verb, path};
use crate::call::{Request, RequestBuilder, RequestError, Retries, Shape, without_secrets};

/// A provider's API: its base URL, the key, and the header fields that go with every request
///
/// Makes a [`RequestBuilder`] of a verb; what is left to add is the body. A mistake, such as a key with a
/// line break in it, is told when the request is built. Its `Debug` form shows no value of a header, and no
/// user name or password in the base URL.
#[derive(Clone)]
pub struct Service {
    api: Api,
    base_url: String,
    key: Option<Key>,
    headers: Vec<(Cow<'static, str>, String)>,
}

/// A key, and how it is shown
#[derive(Clone)]
enum Key {
    Bearer(String),
    Header(&'static str, String),
}

impl Service {
    /// The version of Anthropic's API that is asked for
    pub const ANTHROPIC_VERSION: &'static str = "2023-06-01";

    /// OpenAI's own API, with this key as `Authorization: Bearer`
    pub fn openai(key: &str) -> Self {
        Self::openai_compatible("https://api.openai.com/v1").bearer(key)
    }

    /// A server that is compatible with OpenAI: its base URL is what `/chat/completions` follows
    ///
    /// Without a key until [`Service::bearer`] or [`Service::header`] gives one.
    pub fn openai_compatible(base_url: &str) -> Self {
        Self::new(Api::OpenAi, base_url)
    }

    /// Anthropic's API, with this key as `x-api-key`
    pub fn anthropic(key: &str) -> Self {
        let service = Self::new(Api::Anthropic, "https://api.anthropic.com");
        let service = service.header("anthropic-version", Self::ANTHROPIC_VERSION);
        Self { key: Some(Key::Header("x-api-key", key.to_owned())), ..service }
    }

    /// Gemini's API, with this key as `x-goog-api-key`: in a query it would end up in every proxy's log
    pub fn gemini(key: &str) -> Self {
        let service = Self::new(Api::Gemini, "https://generativelanguage.googleapis.com");
        Self { key: Some(Key::Header("x-goog-api-key", key.to_owned())), ..service }
    }

    fn new(api: Api, base_url: &str) -> Self {
        let user_agent = concat!("steadfast/", env!("CARGO_PKG_VERSION"));
        Self { api, base_url: String::new(), key: None, headers: Vec::new() }
            .at(base_url)
            .header("user-agent", user_agent)
    }

    /// The same API at another base URL: of a gateway, or of a server that speaks it too
    #[must_use]
    pub fn at(self, base_url: &str) -> Self {
        Self { base_url: base_url.trim().trim_end_matches('/').to_owned(), ..self }
    }

    /// The same with this key as `Authorization: Bearer`, in the place of the one it had
    #[must_use]
    pub fn bearer(self, key: &str) -> Self {
        Self { key: Some(Key::Bearer(key.to_owned())), ..self }
    }

    /// The same without a key, for a server that asks for none
    #[must_use]
    pub fn without_key(self) -> Self {
        Self { key: None, ..self }
    }

    /// The same with one more header field, such as `OpenAI-Organization`, or `api-key` on Azure
    ///
    /// It replaces one of the same name.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: &str) -> Self {
        let name = name.into();
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Where it is: what the paths of verbs follow
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Whose API it is
    pub fn api(&self) -> Api {
        self.api
    }

    /// A request by this verb, with an identifier for each place in its path
    ///
    /// Identifiers are percent-encoded. Gemini's may bear the name of their collection, as in `files/abc`.
    ///
    /// Errors, when it is built: [`RequestError::OtherApi`], [`RequestError::Id`], and those of the base
    /// URL, of the key and of header fields.
    pub fn request<const IDS: usize>(&self, verb: &Verb<IDS>, ids: [&str; IDS]) -> RequestBuilder {
        self.row(verb.row(), &ids)
    }

    /// As [`Service::request`], by a verb that is chosen as the program runs
    ///
    /// Errors, when it is built: also [`RequestError::Ids`], where there are not as many identifiers as
    /// places.
    pub fn row(&self, verb: &Row, ids: &[&str]) -> RequestBuilder {
        let Row { api, name, .. } = *verb;
        if let Some(api) = api.filter(|api| *api != self.api) {
            let (of, service) = (api.name(), self.api.name());
            return RequestBuilder::broken(RequestError::OtherApi { verb: name, of, service });
        }
        if ids.len() != verb.ids() {
            return RequestBuilder::broken(RequestError::Ids { places: verb.ids(), given: ids.len() });
        }
        let Ok(path) = path::filled(verb.path, ids, self.api == Api::Gemini) else {
            return RequestBuilder::broken(RequestError::Id);
        };
        let request = self.at_path(verb.method(), &path).header("accept", verb.accept).retries(verb.retries);
        let request = verb.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = verb.dialect.into_iter().fold(request, RequestBuilder::dialect);
        match verb.shape {
            Shape::Unary => request,
            Shape::Stream => request.stream(),
            Shape::Raw => request.raw(),
        }
    }

    /// A request to a path that nothing is known of, which follows the base URL as it is
    ///
    /// It has one attempt until [`RequestBuilder::retries`] says otherwise. What comes from outside does
    /// not belong in `path`: a [`Verb`] of one's own encodes it.
    pub fn other(&self, method: Method, path: &str) -> RequestBuilder {
        if !path.starts_with('/') {
            return RequestBuilder::broken(RequestError::Url("a path begins with a slash"));
        }
        self.at_path(method, path).header("accept", "application/json").retries(Retries::Never)
    }

    fn at_path(&self, method: Method, path: &str) -> RequestBuilder {
        if self.base_url.contains(['?', '#']) {
            return RequestBuilder::broken(RequestError::Url(
                "a base URL has no query and no fragment: add a query to the request by query(…)",
            ));
        }
        let request = Request::builder(method, &format!("{}{path}", self.base_url));
        let request = match &self.key {
            None => request,
            Some(Key::Bearer(key)) => request.bearer(key),
            Some(Key::Header(name, key)) => request.key(name, key),
        };
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.iter().map(|(name, _)| name.as_ref());
        f.debug_struct("Service")
            .field("api", &self.api)
            .field("base_url", &without_secrets(&self.base_url))
            .field("headers", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
