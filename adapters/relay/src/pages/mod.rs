//! Seeing it: the relay's own paths.
//!
//! | path | what it tells | key |
//! |---|---|---|
//! | `/healthz` | that the process serves | none |
//! | `/readyz` | whether it takes calls: 503 while it drains | none |
//! | `/metrics` | counters and histograms, for Prometheus | asked for, where keys are set |
//! | `/_steadfast/` | calls under way and recent ones, each as a waterfall, with filters in the query | likewise |
//! | `/_steadfast/calls/NUMBER` | one call: its timeline, and its limits | likewise |
//!
//! A browser asks for the key as a password. The page needs no script, and shows no body; it is made anew every
//! two seconds. A database that takes no records does not make a relay unready, for no call fails by it: see
//! `steadfast_relay_records_troubled`.
//!
//! `docs/page.png` in this crate's folder shows it: a live stream, and calls that passed and that did not.
//!
//! | file | what is in it |
//! |---|---|
//! | `calls` | the calls that are shown, bounded in number |
//! | `metrics` | what is counted |
//! | `html` | the pages |

mod calls;
mod html;
mod metrics;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use steadfast::http::{Method, StatusCode};
use steadfast::http1::IncomingRequest;
use steadfast::relay::Served;

pub(crate) use self::calls::{Follower, Watch};
pub use self::calls::{MAX_LIVE_CALLS, MAX_RECENT_CALLS};
use self::html::Filter;
use crate::record::Recorder;
use crate::shared::{Pages, Relay};

/// Paths that need no key
pub const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Nothing from elsewhere, no script, and no frame around it
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

const STYLE: &str = include_str!("style.css");

/// The relay's own paths, and what they show of its calls
///
/// Set by [`Relay::with_own_pages`].
pub(crate) struct OwnPages {
    watch: Arc<Watch>,
    recorder: Option<Recorder>,
}

impl OwnPages {
    pub(crate) fn new(recorder: Option<Recorder>) -> (Self, Arc<Watch>) {
        let watch = Arc::new(Watch::new());
        (Self { watch: watch.clone(), recorder }, watch)
    }

    fn answer(&self, relay: &Relay, request: &IncomingRequest) -> Served {
        if request.method != Method::GET && request.method != Method::HEAD {
            let mut served = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            served.fields.push(("allow", "GET, HEAD".to_owned()));
            return served;
        }
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let now = relay.0.client.timekeeper().now();
        match path {
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" if relay.is_draining() => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
            "/readyz" => text(StatusCode::OK, "ready\n"),
            "/metrics" => {
                let metrics = self.watch.metrics.text(relay, self.watch.counts(), self.recorder.as_ref());
                served(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics)
            }
            "/_steadfast" | "/_steadfast/" => {
                let page = html::calls(&self.watch.all(), &Filter::of(query), &self.note(relay), now);
                served(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            "/_steadfast/style.css" => served(StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned()),
            path => {
                let number = path.strip_prefix("/_steadfast/calls/").and_then(|number| number.parse().ok());
                let found = number.and_then(|number: u64| self.watch.find(number));
                match found {
                    Some(call) => served(StatusCode::OK, "text/html; charset=utf-8", html::call(&call, now)),
                    None => text(StatusCode::NOT_FOUND, "nothing here, or no longer\n"),
                }
            }
        }
    }

    /// What is worth knowing besides the calls
    fn note(&self, relay: &Relay) -> String {
        let (live, not_shown) = self.watch.counts();
        let mut notes = Vec::new();
        if relay.is_draining() {
            notes.push("draining".to_owned());
        }
        if live >= MAX_LIVE_CALLS {
            notes.push(format!("{not_shown} calls were not shown while they went on"));
        }
        if let Some(recorder) = self.recorder.as_ref().filter(|recorder| recorder.dropped() > 0) {
            notes.push(format!("{} parts of records were dropped", recorder.dropped()));
        }
        notes.join(" · ")
    }
}

impl Pages for OwnPages {
    fn serve(&self, relay: &Relay, request: IncomingRequest) -> Pin<Box<dyn Future<Output = Served> + Send>> {
        Box::pin(ready(self.answer(relay, &request)))
    }
}

fn text(status: StatusCode, body: &str) -> Served {
    served(status, "text/plain; charset=utf-8", body.to_owned())
}

fn served(status: StatusCode, content_type: &str, body: String) -> Served {
    let fields = [
        ("content-type", content_type),
        ("cache-control", "no-store"),
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ];
    let fields = fields.map(|(name, value)| (name, value.to_owned())).to_vec();
    Served { status, fields, body: body.into_bytes() }
}
