//! Which provider a path belongs to, and what of it is asked for there.

use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::answer::{Code, Shape};
use super::limits::Limits;
use crate::call::{Origin, RequestError};
use crate::http1::Fields;

/// Names a route by its place in [`Routes`]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

impl RouteId {
    /// Its place, from 0
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A provider, and the paths that go to it
///
/// `/openai/v1/models` goes to `/v1/models` of the provider whose route is named `openai`.
#[derive(Clone)]
pub struct Route {
    /// The first segment of its paths
    name: Arc<str>,
    origin: Origin,
    /// What comes before the rest of the path; empty, or a path without a slash at its end
    base: String,
    /// Whose error shape the relay's own errors have
    pub shape: Shape,
    /// The bounds of its exchanges
    pub limits: Limits,
    /// The credential that takes the place of the app's; `None` passes the app's own on
    pub key: Option<(HeaderName, HeaderValue)>,
    /// Whether the app may be left to send again what may have been billed (rule RLY-3)
    pub may_resend: bool,
}

/// A route that cannot be; the text names the fix
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RouteError {
    /// The name is no path segment
    #[error("the route name {0:?} is no path segment: use letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// Two routes have the same name
    #[error("two routes are named {0:?}: give each a name of its own")]
    Twice(String),
    /// The name begins as the relay's own pages do
    #[error("the route name {0:?} is one of the relay's own paths: choose another")]
    Reserved(String),
    /// The upstream's URL
    #[error("upstream {name:?}: {source}")]
    Upstream {
        /// The route
        name: String,
        /// What is wrong with the URL
        source: RequestError,
    },
    /// The upstream's URL has a query
    #[error("upstream {0:?}: the URL has a query: leave it out")]
    Query(String),
}

impl Route {
    /// A route with the default limits, which passes the app's own credentials on
    ///
    /// Errors: a name that is no path segment; a URL that is none, or has a query.
    pub fn new(name: &str, upstream: &str, shape: Shape) -> Result<Self, RouteError> {
        let is_segment = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_segment) || name.bytes().all(|byte| byte == b'.') {
            return Err(RouteError::Name(name.to_owned()));
        }
        let (origin, target) = crate::call::parse_url(upstream)
            .map_err(|source| RouteError::Upstream { name: name.to_owned(), source })?;
        if target.query().is_some() {
            return Err(RouteError::Query(name.to_owned()));
        }
        let base = target.path().trim_end_matches('/').to_owned();
        Ok(Self {
            name: name.into(),
            origin,
            base,
            shape,
            limits: Limits::default(),
            key: None,
            may_resend: false,
        })
    }

    /// The first segment of its paths
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Where its provider is
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What takes the place of its name in a URL: the provider's origin, and the path where there is one
    pub fn upstream(&self) -> String {
        let scheme = if self.origin.is_tls() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.origin.authority(), self.base)
    }
}

/// A route without its key
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("name", &self.name)
            .field("origin", &self.origin)
            .field("base", &self.base)
            .field("key", &self.key.as_ref().map(|(name, _)| name))
            .finish_non_exhaustive()
    }
}

/// The field for the relay's own key, where the app's other credentials are the provider's; it is never
/// passed on
pub const APP_KEY_FIELD: &str = "x-steadfast-key";

/// The parameter of a query in which an app may show a key, as Google's APIs take theirs
pub const APP_KEY_PARAMETER: &str = "key";

/// Decides whether an app may use the relay, by the fields of its request
pub trait Gate: Send + Sync {
    /// Whose key the app showed, or `None` where it is none that is known
    ///
    /// `parameters` are the values of [`APP_KEY_PARAMETER`] in the query, decoded.
    fn admit(&self, fields: &Fields, parameters: &[Vec<u8>]) -> Option<AppKey>;
}

/// A key of the relay's own that an app showed
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppKey {
    /// What the key is called; no secret
    pub label: Arc<str>,
    /// The names of all fields that it came in, none of which is passed on
    pub fields: Vec<&'static str>,
    /// Whether it came in the query too, of which [`APP_KEY_PARAMETER`] is not passed on then
    pub is_in_query: bool,
}

/// All routes, and the paths that the relay serves itself
#[derive(Clone, Default)]
pub struct Routes {
    routes: Vec<Route>,
    /// Paths that the relay answers itself, each with all that lie below
    local: Vec<String>,
    /// Those of them that need no key, each by itself
    open: Vec<String>,
    gate: Option<Arc<dyn Gate>>,
}

/// Where a request goes
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To the provider of this route, which is asked for this target
    Upstream(RouteId, String),
    /// To the relay itself; some paths need no key
    Local { is_open: bool },
}

impl Routes {
    /// These routes
    ///
    /// Errors: two of the same name, or one whose name is the first segment of a local path.
    pub fn new(routes: Vec<Route>, local: &[&str]) -> Result<Self, RouteError> {
        for (at, route) in routes.iter().enumerate() {
            if routes[..at].iter().any(|earlier| earlier.name == route.name) {
                return Err(RouteError::Twice(route.name.to_string()));
            }
            if local.iter().any(|path| path.trim_start_matches('/') == &*route.name) {
                return Err(RouteError::Reserved(route.name.to_string()));
            }
        }
        let local = local.iter().map(|&path| path.to_owned()).collect();
        Ok(Self { routes, local, open: Vec::new(), gate: None })
    }

    /// Lets anyone in to these of the relay's own paths, without what lies below them
    ///
    /// They are for those who watch over the process, and have no key.
    pub fn opened(mut self, paths: &[&str]) -> Self {
        self.open = paths.iter().map(|&path| path.to_owned()).collect();
        self
    }

    /// Lets in only those apps whose key the gate knows
    pub fn gated(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The gate, where there is one
    pub fn gate(&self) -> Option<&dyn Gate> {
        self.gate.as_deref()
    }

    /// A route by its name
    pub fn named(&self, name: &str) -> Option<RouteId> {
        let at = self.routes.iter().position(|route| &*route.name == name)?;
        Some(RouteId(at as u32))
    }

    /// A route
    pub fn get(&self, id: RouteId) -> &Route {
        &self.routes[id.index()]
    }

    /// All routes, in their order
    pub fn iter(&self) -> impl Iterator<Item = (RouteId, &Route)> {
        self.routes.iter().enumerate().map(|(at, route)| (RouteId(at as u32), route))
    }

    /// Where a request with this target goes
    ///
    /// What decides is the path as a server would read it: escapes of ordinary characters decoded. A path
    /// that climbs, by `..` in any spelling, is refused, not resolved: no SDK has one. The part that is
    /// passed on stays as it came, byte for byte.
    pub(super) fn find(&self, target: &str) -> Result<Destination, Code> {
        let path = &target[..target.find('?').unwrap_or(target.len())];
        let rest = path.strip_prefix('/').ok_or(Code::NotFound)?;
        if rest.split('/').any(climbs) {
            return Err(Code::BadPath);
        }
        let first = rest.split('/').next().unwrap_or_default();
        let name = decode(first).ok_or(Code::BadPath)?;
        if self.local.iter().any(|local| is_below(path, local)) {
            return Ok(Destination::Local { is_open: self.open.iter().any(|open| open == path) });
        }
        let id = std::str::from_utf8(&name).ok().and_then(|name| self.named(name)).ok_or(Code::NotFound)?;
        let below = &target[1 + first.len()..];
        let slash = if below.starts_with('/') { "" } else { "/" };
        Ok(Destination::Upstream(id, format!("{}{slash}{below}", self.get(id).base)))
    }
}

/// The names of the routes
impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.routes.iter().map(|route| &route.name)).finish()
    }
}

fn is_below(path: &str, local: &str) -> bool {
    path.strip_prefix(local).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a segment, as some server may read it, names this folder or the one above
fn climbs(segment: &str) -> bool {
    let Some(decoded) = decode(segment) else { return true };
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| matches!(part, b"." | b".."))
        || decoded.contains(&0)
}

/// So often a path may have been percent-encoded
const MAX_ENCODINGS: usize = 4;

/// Percent-decodes, as often as there is something to decode: `%252e` is a dot to a server that decodes
/// twice. `None` past [`MAX_ENCODINGS`]
fn decode(segment: &str) -> Option<Vec<u8>> {
    let mut bytes = segment.as_bytes().to_vec();
    for _ in 0..MAX_ENCODINGS {
        match decode_once(&bytes) {
            Some(decoded) => bytes = decoded,
            None => return Some(bytes),
        }
    }
    decode_once(&bytes).is_none().then_some(bytes)
}

/// `None` where there is nothing to decode; the result is shorter
fn decode_once(bytes: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%')
            .then(|| Some(digit(bytes.get(at + 1)?)? * 16 + digit(bytes.get(at + 2)?)?))
            .flatten();
        decoded.push(escaped.map_or(byte, |value| value as u8));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    (decoded.len() < bytes.len()).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let routes = vec![
            Route::new("openai", "https://api.openai.com", Shape::OpenAi).unwrap(),
            Route::new("local", "http://127.0.0.1:8080/base/", Shape::OpenAi).unwrap(),
        ];
        Routes::new(routes, &["/healthz", "/_steadfast"]).unwrap()
    }

    fn upstream(target: &str) -> Option<(usize, String)> {
        match routes().find(target) {
            Ok(Destination::Upstream(id, target)) => Some((id.index(), target)),
            Ok(Destination::Local { .. }) | Err(_) => None,
        }
    }

    #[test]
    fn the_first_segment_names_the_provider_and_the_rest_stays_as_it_came() {
        for (target, expected) in [
            ("/openai/v1/chat/completions", (0, "/v1/chat/completions")),
            ("/openai/v1/models/a%2Fb?limit=2&x=%2e", (0, "/v1/models/a%2Fb?limit=2&x=%2e")),
            ("/%6Fpenai/v1", (0, "/v1")),
            ("/openai", (0, "/")),
            ("/openai?x=1", (0, "/?x=1")),
            ("/openai//v1", (0, "//v1")),
            ("/local/v1/x", (1, "/base/v1/x")),
            (
                "/openai/v1/models/gemini:streamGenerateContent?alt=sse&q=../..",
                (0, "/v1/models/gemini:streamGenerateContent?alt=sse&q=../.."),
            ),
        ] {
            let (id, rest) = expected;
            assert_eq!(upstream(target), Some((id, rest.to_owned())), "{target}");
        }
    }

    #[test]
    fn no_other_path_goes_anywhere() {
        for target in
            ["/", "/v1/chat/completions", "/openais/v1", "/OPENAI/v1", "//openai/v1", "/openai%2Fv1"]
        {
            assert_eq!(routes().find(target), Err(Code::NotFound), "{target}");
        }
        for target in ["/healthz", "/_steadfast", "/_steadfast/calls/1?x"] {
            assert_eq!(routes().find(target), Ok(Destination::Local { is_open: false }), "{target}");
        }
        let opened = routes().opened(&["/healthz"]);
        for (target, is_open) in [("/healthz?x", true), ("/healthz/x", false), ("/_steadfast", false)] {
            assert_eq!(opened.find(target), Ok(Destination::Local { is_open }), "{target}");
        }
        assert_eq!(routes().find("/healthzz"), Err(Code::NotFound));
    }

    #[test]
    fn a_path_that_climbs_is_refused_in_any_spelling() {
        for target in [
            "/openai/../admin",
            "/openai/v1/..",
            "/openai/./v1",
            "/openai/%2e%2E/admin",
            "/openai/.%2e/admin",
            "/openai/%252e%252e/admin",
            "/openai/a%2f..%2fb",
            "/openai/a%5C..%5cb",
            "/openai/a\\..\\b",
            "/openai/%00",
            "/openai/%252525252541",
            "/../openai/v1",
        ] {
            assert_eq!(routes().find(target), Err(Code::BadPath), "{target}");
        }
        assert!(upstream("/openai/v1/files/a..b/...").is_some());
    }

    #[test]
    fn what_cannot_be_a_route_says_why() {
        let error = |name, url| Route::new(name, url, Shape::OpenAi).unwrap_err();
        assert_eq!(error("a/b", "https://a"), RouteError::Name("a/b".into()));
        assert_eq!(error("..", "https://a"), RouteError::Name("..".into()));
        assert!(matches!(error("a", "ftp://a"), RouteError::Upstream { .. }));
        assert_eq!(error("a", "https://a/?key=1"), RouteError::Query("a".into()));
        let route = || Route::new("a", "https://a", Shape::OpenAi).unwrap();
        assert_eq!(Routes::new(vec![route(), route()], &[]).unwrap_err(), RouteError::Twice("a".into()));
        assert_eq!(Routes::new(vec![route()], &["/a"]).unwrap_err(), RouteError::Reserved("a".into()));
    }

    #[test]
    fn a_key_is_not_printed() {
        let mut route = Route::new("a", "https://a", Shape::OpenAi).unwrap();
        route.key = Some((http::header::AUTHORIZATION, HeaderValue::from_static("Bearer sk-secret")));
        assert!(!format!("{route:?}").contains("secret"), "{route:?}");
    }
}
