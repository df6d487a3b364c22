//! The app's side: its requests, and the bytes for it.

use std::ops::Range;
use std::sync::Arc;

use http::Method;

use super::answer::{Code, OwnAnswer, Served};
use super::body::Body;
use super::event::{Command, Ending, Link, State};
use super::query;
use super::route::{APP_KEY_PARAMETER, Destination, Routes};
use super::{Bytes, Closing, Exchange, Found, Told};
use crate::http1::{IncomingRequest, RequestDecoder, RequestLimits, RequestPart};
use crate::outcome::Reason;

/// The most bytes that are read and dropped behind an answer of the relay's own: 64 MiB
///
/// Many a client reads no answer before all of its request is written.
pub const MAX_LINGER_BYTES: u64 = 64 * 1024 * 1024;

/// Has a browser ask for the key, of whoever opens one of the relay's own pages (RFC 7617)
const ASK_PERSON: &str = "Basic realm=\"steadfast: any name, and a key as the password\", charset=\"UTF-8\"";

/// The app's connection
pub(super) struct Front {
    decoder: RequestDecoder,
    /// What is to be written to it
    window: Vec<u8>,
    /// How much of that is
    written: usize,
    /// What came behind the end of a request
    surplus: Vec<u8>,
    /// How much of that is parsed
    parsed: usize,
    /// Bytes that were dropped behind an answer
    dropped: u64,
    pub(super) keeps_alive: bool,
    /// What the app sends can no longer be told apart
    pub(super) is_broken: bool,
    pub(super) closing: Closing,
    pub(super) is_done: bool,
    pub(super) next_routes: Option<Arc<Routes>>,
}

impl Front {
    pub(super) fn new() -> Self {
        Self {
            decoder: RequestDecoder::new(RequestLimits::default()),
            window: Vec::new(),
            written: 0,
            surplus: Vec::new(),
            parsed: 0,
            dropped: 0,
            keeps_alive: true,
            is_broken: false,
            closing: Closing::Orderly,
            is_done: false,
            next_routes: None,
        }
    }

    /// Ready for the next request
    pub(super) fn again(&mut self) {
        // Where the length told of the end, the decoder has yet to.
        _ = self.decoder.next(&[]);
        self.decoder.again();
        self.keeps_alive = true;
    }

    /// What is to be written
    pub(super) fn window(&self) -> &[u8] {
        &self.window[self.written..]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.window.extend_from_slice(bytes);
    }

    /// Where bytes can be written that go to the app
    pub(super) fn window_mut(&mut self) -> &mut Vec<u8> {
        &mut self.window
    }

    /// The app's connection took so many bytes
    pub(super) fn sent(&mut self, bytes: usize) {
        self.written += bytes;
        if self.window().is_empty() {
            // An idle stream holds no buffer.
            self.window = Vec::new();
            self.written = 0;
        }
    }

    /// What is not written yet is never written
    pub(super) fn drop_window(&mut self) {
        self.window = Vec::new();
        self.written = 0;
    }

    pub(super) fn has_surplus(&self) -> bool {
        self.parsed < self.surplus.len()
    }

    pub(super) fn surplus(&self, range: Range<usize>) -> &[u8] {
        &self.surplus[range]
    }

    /// Bytes that it holds
    pub(super) fn held(&self) -> usize {
        self.window.len() + self.surplus.len() + self.decoder.held()
    }
}

impl Exchange {
    /// Parses what came behind the request before
    pub(super) fn read_surplus(&mut self) -> Found {
        let surplus = std::mem::take(&mut self.front.surplus);
        let from = self.front.parsed;
        let (parsed, body) = self.parse_request(&surplus[from..]);
        self.front.parsed = from + parsed;
        let body = body.map(|range| from + range.start..from + range.end);
        if let Some(range) = &body {
            self.current.body.push(&surplus[range.clone()]);
        }
        if self.front.parsed < surplus.len() || (body.is_some() && self.has_taps) {
            self.front.surplus = surplus;
        } else {
            self.front.parsed = 0;
        }
        match body {
            Some(range) if self.has_taps => Found::TapRequest(Bytes::Surplus(range)),
            Some(_) | None => Found::Again,
        }
    }

    /// Parses what the app sent
    pub(super) fn read_app(&mut self, input: &[u8], used: &mut usize) -> Found {
        let rest = &input[*used..];
        if self.current.state == State::Lingering {
            self.front.dropped += rest.len() as u64;
            *used = input.len();
            if self.front.dropped > MAX_LINGER_BYTES {
                self.enter(State::Over);
            }
            return Found::Dry;
        }
        if self.front.is_broken {
            // What follows a fault is no request, and no other fault.
            *used = input.len();
            return Found::Dry;
        }
        let is_between = self.current.state == State::Idle || !self.current.body.has_ended();
        if !is_between || self.front.has_surplus() {
            self.front.surplus.drain(..std::mem::take(&mut self.front.parsed));
            self.front.surplus.extend_from_slice(rest);
            *used = input.len();
            return Found::Dry;
        }
        if rest.is_empty() && self.current.body.has_ended() {
            return Found::Dry;
        }
        let at = *used;
        let (parsed, body) = self.parse_request(rest);
        *used += parsed;
        let Some(range) = body else {
            // The end of a body may be known without another byte.
            let may_go_on = parsed > 0 || self.current.body.has_ended();
            return if may_go_on { Found::Again } else { Found::Dry };
        };
        let range = at + range.start..at + range.end;
        let is_head_out = self.current.up.as_ref().is_some_and(|up| up.is_open && up.head().is_empty());
        if is_head_out && self.current.body.may_pass() && !self.has_taps {
            self.current.body.passed(range.len());
            let up = self.current.up.as_ref().expect("its head is out").id;
            return Found::Pass(Link::Up(up), range);
        }
        self.current.body.push(&input[range.clone()]);
        if self.has_taps { Found::TapRequest(Bytes::Input(range)) } else { Found::Again }
    }

    /// One step of the request's decoder: how much it took, and where a piece of the body lies
    fn parse_request(&mut self, bytes: &[u8]) -> (usize, Option<Range<usize>>) {
        if self.current.began.is_none() {
            self.current.began = Some(self.now);
            self.current.timeline.began = self.now;
        }
        match self.front.decoder.next(bytes) {
            Ok((parsed, Some(RequestPart::Head(request)))) => {
                self.requested(request);
                (parsed, None)
            }
            Ok((parsed, Some(RequestPart::Body(range)))) => (parsed, Some(range)),
            Ok((parsed, Some(RequestPart::End))) => {
                self.current.body.end();
                (parsed, None)
            }
            Ok((parsed, None)) => (parsed, None),
            Err(fault) => {
                self.front.is_broken = true;
                self.front.keeps_alive = false;
                if self.current.ending.is_some() {
                    // It is answered already, and that answer stays.
                } else if self.current.passing.is_some() || self.current.status.is_some() {
                    // Part of an answer is out: nothing can be added to it.
                    self.leave(Ending::AppLeft);
                } else {
                    self.refuse(Code::BadRequest(fault));
                }
                (bytes.len(), None)
            }
        }
    }

    /// The head of a request is whole
    fn requested(&mut self, request: IncomingRequest) {
        let Exchange { routes, current, front, .. } = self;
        front.keeps_alive = request.keeps_alive;
        current.key =
            routes.gate().and_then(|gate| gate.admit(&request.fields, &query::keys(&request.target)));
        let needs_key = routes.gate().is_some() && current.key.is_none();
        let found = match routes.find(&request.target) {
            Ok(destination) if needs_key && destination != (Destination::Local { is_open: true }) => {
                current.is_for_person = matches!(destination, Destination::Local { .. });
                Err(Code::Unauthorized)
            }
            found => found,
        };
        let mut max_kept = 0;
        if let Ok(Destination::Upstream(id, target)) = &found {
            let route = routes.get(*id);
            current.route = Some(*id);
            current.shape = route.shape;
            current.limits = route.limits;
            current.may_resend = route.may_resend;
            let dropped: &[&str] = match &current.key {
                _ if route.key.is_some() => &query::CREDENTIALS,
                Some(key) if key.is_in_query => &[APP_KEY_PARAMETER],
                Some(_) | None => &[],
            };
            current.target = query::without(target, dropped);
            max_kept = route.limits.retries.max_body_bytes;
        }
        current.body = Body::new(request.body, max_kept);
        current.request = Some(Box::new(request));
        if self.has_taps {
            self.told.push(Told::Request);
        }
        match found {
            Ok(Destination::Upstream(..)) => self.connect(true),
            Ok(Destination::Local { .. }) => {
                let request = self.current.request.clone().expect("its head was just read");
                self.commands.push(Command::Serve(request));
                self.enter(State::Serving);
            }
            Err(code) => self.refuse(code),
        }
    }

    /// An answer of the relay's own to its own paths
    pub(super) fn served(&mut self, answer: &Served) {
        if self.current.state != State::Serving {
            self.stale_events = self.stale_events.saturating_add(1);
            return;
        }
        let (keeps_alive, to_head) = (self.keeps_app(), self.is_to_head());
        self.front.keeps_alive = keeps_alive;
        answer.write(keeps_alive, to_head, self.front.window_mut());
        self.current.status = Some(answer.status);
        self.current.last_part = self.now;
        self.flush(Ending::Served);
    }

    /// Answers with an error of the relay's own, and gives the provider up
    pub(super) fn refuse(&mut self, code: Code) {
        self.attempt_ended(Reason::Cancelled);
        let Exchange { current, .. } = self;
        let mut answer = OwnAnswer::new(code, current.shape, &current.request_id, current.may_resend);
        if code == Code::Unauthorized && current.is_for_person {
            answer.fields.push(("www-authenticate", ASK_PERSON.to_owned()));
        }
        current.status = Some(code.status());
        current.last_part = self.now;
        let (keeps_alive, to_head) = (self.keeps_app(), self.is_to_head());
        self.front.keeps_alive = keeps_alive;
        answer.write(keeps_alive, to_head, self.front.window_mut());
        self.flush(Ending::Refused(code));
    }

    /// The end of the answer is known; it is over once all of it is written
    pub(super) fn flush(&mut self, ending: Ending) {
        self.current.ending = Some(ending);
        self.current.body.discard();
        self.enter(State::Flushing);
    }

    /// Whether another request may follow on the app's connection
    pub(super) fn keeps_app(&self) -> bool {
        let is_read = self.current.body.has_ended() || self.current.request.is_none();
        self.front.keeps_alive && !self.is_draining && is_read && self.current.request.is_some()
    }

    fn is_to_head(&self) -> bool {
        self.current.request.as_ref().is_some_and(|request| request.method == Method::HEAD)
    }
}
