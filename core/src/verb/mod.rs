//! The verbs of the providers: what each is called on the wire, and how often it may be tried.
//!
//! | file | what is in it |
//! |---|---|
//! | `service` | [`Service`]: where an API is, and the key to it |
//! | `path` | identifiers in a path, so encoded that nothing can end their segment |
//! | `retries` | [`retries_of`]: how often a request may be tried, by its method and path |
//! | [`openai`] | the verbs of OpenAI and of servers compatible with it |
//! | [`anthropic`] | the verbs of Anthropic |
//! | [`gemini`] | the verbs of Gemini |
//!
//! A verb is a value, and a provider's verbs are a table of them. Bodies are the caller's own: JSON of
//! any type that serialises, or bytes. Here is only what stands around them, so this goes under any
//! SDK's types.
//!
//! ```
//! use serde_json::json;
//! use steadfast::verb::{Service, Verb, anthropic, openai};
//!
//! let service = Service::openai("sk-example");
//! let body = json!({"model": "gpt-5", "stream": true, "messages": []});
//! let chat = service.request(&openai::CHAT, []).json(&body).stream().build()?;
//! let file = service.request(&openai::FILE_GET, ["file-abc"]).build()?;
//!
//! // One that is not in the tables: as many identifiers as its path has places, or it does not compile.
//! const CANCEL_EVAL: Verb<2> = Verb::post("/evals/{eval}/runs/{run}");
//! let cancel = service.request(&CANCEL_EVAL, ["eval_1", "run_2"]).json(&json!({})).build()?;
//! assert!(format!("{cancel:?}").contains("/v1/evals/eval_1/runs/run_2"));
//!
//! // A verb of another API is refused before anything is sent.
//! assert!(service.request(&anthropic::MESSAGES, []).build().is_err());
//! # Ok::<(), steadfast::call::RequestError>(())
//! ```
//!
//! # How often a verb may be tried
//!
//! Rule RTY-5: asking a model is tried again as the configuration says, and so are the upload of a file
//! and what only reads the list of models or counts tokens. Everything that makes, changes or runs
//! something on the provider's side has one attempt, and so has a verb of the caller's own until it says
//! [`Verb::retried`]. [`RequestBuilder::retries`](crate::call::RequestBuilder::retries) says otherwise for
//! one call.

/// The verbs of one API: a constant for each, and the table of all of them
macro_rules! verbs {
    ($api:ident: $($(#[$doc:meta])* $name:ident = $method:ident $path:literal $(, $property:ident $(($argument:expr))?)*;)+) => {
        $(
            $(#[$doc])*
            pub const $name: $crate::verb::Verb<{ $crate::verb::path::places($path) }> =
                $crate::verb::Verb::$method($path)
                    .of($crate::verb::Api::$api, stringify!($name))
                    $(.$property($($argument)?))*;
        )+

        /// All of them
        pub const ALL: &[&$crate::verb::Row] = &[$($name.row()),+];
    };
}

pub mod anthropic;
pub mod gemini;
pub mod openai;
mod path;
mod retries;
mod service;

use http::Method;

use crate::call::{Retries, Shape};
use crate::dialect::Dialect;

pub use retries::retries_of;
pub use service::Service;

/// Whose API a verb belongs to, and so how its requests are authorised
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI, and the servers compatible with it
    OpenAi,
    /// Anthropic
    Anthropic,
    /// Gemini
    Gemini,
}

impl Api {
    /// The name in lower case, as it appears in messages
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// A verb whose path has places for so many identifiers
#[derive(Clone, Copy, Debug)]
pub struct Verb<const IDS: usize>(Row);

/// What there is to know of a verb
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The API it belongs to; none for a verb of the caller's own, which goes to any
    pub api: Option<Api>,
    /// The name of its constant; empty for a verb of the caller's own
    pub name: &'static str,
    /// Path and query after the base URL, with `{…}` for each identifier
    pub path: &'static str,
    /// Header fields that it needs beside those of the service
    pub headers: &'static [(&'static str, &'static str)],
    /// What its answer may be, as `Accept` says
    pub accept: &'static str,
    /// What its answer means; none where it is handed out as it is
    pub dialect: Option<Dialect>,
    /// How its answer comes, unless the request says [`stream`](crate::call::RequestBuilder::stream)
    pub shape: Shape,
    /// Whether it may be tried again (rule RTY-5)
    pub retries: Retries,
    method: Name,
}

/// The methods that verbs have; [`Method`] itself cannot stand in a constant table
#[derive(Clone, Copy, Debug)]
enum Name {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Row {
    /// The method
    pub const fn method(&self) -> Method {
        match self.method {
            Name::Get => Method::GET,
            Name::Post => Method::POST,
            Name::Put => Method::PUT,
            Name::Patch => Method::PATCH,
            Name::Delete => Method::DELETE,
        }
    }

    /// For how many identifiers its path has places
    pub const fn ids(&self) -> usize {
        path::places(self.path)
    }
}

/// # Panics
///
/// The constructors, where the path has not as many places as the type says, a place is not closed, or
/// the path does not begin with a slash. In a constant that is an error of the compiler.
impl<const IDS: usize> Verb<IDS> {
    /// A verb by GET: path and query after the base URL, with `{…}` for each identifier
    pub const fn get(path: &'static str) -> Self {
        Self::new(Name::Get, path)
    }

    /// A verb by POST, see [`Verb::get`]
    pub const fn post(path: &'static str) -> Self {
        Self::new(Name::Post, path)
    }

    /// A verb by PUT, see [`Verb::get`]
    pub const fn put(path: &'static str) -> Self {
        Self::new(Name::Put, path)
    }

    /// A verb by PATCH, see [`Verb::get`]
    pub const fn patch(path: &'static str) -> Self {
        Self::new(Name::Patch, path)
    }

    /// A verb by DELETE, see [`Verb::get`]
    pub const fn delete(path: &'static str) -> Self {
        Self::new(Name::Delete, path)
    }

    const fn new(method: Name, path: &'static str) -> Self {
        assert!(path::places(path) == IDS, "a verb takes as many identifiers as its path has places");
        assert!(matches!(path.as_bytes().first(), Some(b'/')), "a verb's path begins with a slash");
        Self(Row {
            api: None,
            name: "",
            path,
            headers: &[],
            accept: "application/json",
            dialect: None,
            shape: Shape::Unary,
            retries: Retries::Never,
            method,
        })
    }

    /// The same, tried again as the rules say (rule RTY-1)
    pub const fn retried(mut self) -> Self {
        self.0.retries = Retries::Allowed;
        self
    }

    /// The same, whose answer means this
    pub const fn dialect(mut self, dialect: Dialect) -> Self {
        self.0.dialect = Some(dialect);
        self
    }

    /// The same, whose answer comes as a stream; it needs a dialect
    pub const fn stream(mut self) -> Self {
        self.0.shape = Shape::Stream;
        self
    }

    /// The same, whose answer is handed out as it comes, see [`RequestBuilder::raw`](crate::call::RequestBuilder::raw)
    pub const fn raw(mut self) -> Self {
        self.0.shape = Shape::Raw;
        self
    }

    /// The same, which takes an answer of this media type in the place of JSON
    pub const fn accept(mut self, media_type: &'static str) -> Self {
        self.0.accept = media_type;
        self
    }

    /// The same, with these header fields
    pub const fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.0.headers = headers;
        self
    }

    /// What there is to know of it
    pub const fn row(&self) -> &Row {
        &self.0
    }

    const fn of(mut self, api: Api, name: &'static str) -> Self {
        self.0.api = Some(api);
        self.0.name = name;
        self
    }
}

#[cfg(test)]
mod tests;
