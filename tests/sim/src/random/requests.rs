//! The requests of a run, each made once.

use std::sync::Arc;
use std::time::Duration;

use steadfast::body::{Body, Ready, Waker};
use steadfast::call::{Call, Command, Env, HeaderSource, Request, Retries, Shape};
use steadfast::config::RequestConfig;
use steadfast::connect::Proxy;
use steadfast::dialect::Dialect;
use steadfast::http::{HeaderMap, HeaderName, HeaderValue, header};
use steadfast::machine::{Event, Machine, Step};
use steadfast::time::Instant;

use super::plan::CallPlan;

/// Where every request of a run goes
const URL: &str = "http://sim.invalid/v1/answers";

/// The proxy that forwards some of them, and the field by which it knows who asks
const PROXY: &str = "http://Aladdin:open%20sesame@proxy.invalid:3128";
const PROXY_FIELD: &[u8] = b"proxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";

/// All that a request depends on
#[derive(Clone, Copy, PartialEq)]
struct Kind {
    dialect: Option<Dialect>,
    shape: Shape,
    retries: Retries,
    body_bytes: u32,
    /// Of a body that is read as it goes out: whether its length is known, and whether it can be read once
    streamed: Option<(bool, bool)>,
    makes_fields: bool,
    forwarded: bool,
}

/// A request that was made before
struct Known {
    kind: Kind,
    request: Request,
    outgoing: Arc<[u8]>,
}

/// Requests that were made before: a call of each kind needs one
///
/// In places of few kinds each, so that finding one takes no longer than the call's own steps.
pub(crate) struct Requests([Vec<Known>; PLACES]);

/// As many as [`Kind::place`] tells apart
const PLACES: usize = 3 * 3 * 2 * 2 * 2;

impl Default for Requests {
    fn default() -> Self {
        Self([const { Vec::new() }; PLACES])
    }
}

impl Kind {
    fn place(&self) -> usize {
        let flags = [self.streamed.is_some(), self.makes_fields, self.forwarded];
        let place = 3 * self.shape as usize + self.retries as usize;
        flags.into_iter().fold(place, |place, flag| 2 * place + usize::from(flag))
    }
}

impl Requests {
    /// The request of a call, and what goes out of it: its head and body, but for header fields that are
    /// made for each attempt, and for a body that is read as it goes out
    pub(crate) fn get(&mut self, plan: &CallPlan) -> (Request, Arc<[u8]>) {
        let kind = Kind {
            dialect: plan.dialect,
            shape: plan.shape,
            retries: plan.retries,
            body_bytes: plan.body_bytes,
            streamed: plan.streamed.map(|streamed| (streamed.of_known_length, streamed.once)),
            makes_fields: plan.made.is_some(),
            forwarded: plan.forwarded,
        };
        let known = &mut self.0[kind.place()];
        if let Some(known) = known.iter().find(|known| known.kind == kind) {
            return (known.request.clone(), Arc::clone(&known.outgoing));
        }
        let builder = Request::post(URL).body(body(plan)).retries(plan.retries);
        let builder = match plan.dialect {
            Some(dialect) => builder.dialect(dialect),
            None => builder,
        };
        let builder = match plan.shape {
            Shape::Unary => builder,
            Shape::Stream => builder.stream(),
            Shape::Raw => builder.raw(),
        };
        let mut outgoing = outgoing(builder.clone().build().expect("a request that can be sent"));
        let builder = if kind.makes_fields {
            // The field that is made takes its place.
            builder.bearer("static").attempt_header_source(|_, _| Supplied)
        } else {
            builder
        };
        let mut request = builder.build().expect("a request that can be sent");
        if kind.forwarded {
            request = request.forwarded_by(&Proxy::new(PROXY).expect("the URL of a proxy"));
            outgoing = forwarded(&outgoing);
        }
        let outgoing: Arc<[u8]> = outgoing.into();
        known.push(Known { kind, request: request.clone(), outgoing: Arc::clone(&outgoing) });
        (request, outgoing)
    }
}

/// What makes header fields, in whose place the world supplies them
struct Supplied;

impl HeaderSource for Supplied {
    fn make(&mut self, _: &Waker) -> Option<Result<HeaderMap, String>> {
        None
    }
}

/// The header fields that are made for the attempt of that number in the run: no two have the same, nor as
/// many bytes of them
pub(crate) fn made_fields(instance: u32) -> HeaderMap {
    let value = |text: String| HeaderValue::try_from(text).expect("digits and letters");
    let token = format!("Bearer {instance}-{}", "x".repeat(instance as usize % 5));
    let mut fields = HeaderMap::new();
    fields.insert(header::AUTHORIZATION, value(token));
    if instance.is_multiple_of(2) {
        fields.insert(HeaderName::from_static("x-date"), value(format!("2026-{instance}")));
    }
    fields
}

/// What goes out with those fields
pub(crate) fn with_fields(outgoing: &[u8], fields: &HeaderMap) -> Arc<[u8]> {
    let (head, rest) = outgoing.split_at(head_end(outgoing));
    let mut all = head.to_vec();
    for (name, value) in fields {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            all.extend_from_slice(part);
        }
    }
    all.extend_from_slice(rest);
    all.into()
}

/// The same to a proxy: to the whole URL, and with its credentials (RFC 9112 3.2.2)
fn forwarded(outgoing: &[u8]) -> Vec<u8> {
    let (head, rest) = outgoing.split_at(head_end(outgoing));
    let line = head.iter().position(|byte| *byte == b'\n').expect("a request line");
    [format!("POST {URL} HTTP/1.1\r").as_bytes(), &head[line..], PROXY_FIELD, rest].concat()
}

/// Where the empty line is that ends the head
fn head_end(outgoing: &[u8]) -> usize {
    outgoing.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends") + 2
}

fn body(plan: &CallPlan) -> Body {
    let Some(streamed) = plan.streamed else { return vec![b' '; plan.body_bytes as usize].into() };
    // The world supplies it.
    let body = match streamed.once {
        true => Body::once(Ready(std::io::empty())),
        false => Body::source(|| Ok(Ready(std::io::empty()))),
    };
    if streamed.of_known_length { body.length(plan.body_bytes.into()) } else { body }
}

/// A request as a call sends it
fn outgoing(request: Request) -> Vec<u8> {
    let env = Env { seed: 0, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let mut id = None;
    if let Ok(mut drain) = call.handle(Instant::ORIGIN, Event::Start)
        && let Step::Do(Command::Connect(asked)) = drain.next()
    {
        id = Some(asked);
    }
    let id = id.expect("a call asks for a connection first");
    drop(call.handle(Instant::ORIGIN, Event::Connected(id)).expect("it was asked for"));
    call.outgoing(id).concat()
}
