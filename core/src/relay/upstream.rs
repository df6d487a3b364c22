//! The provider's side: attempts, and what each comes to (rule RLY-2).

use std::time::Duration;

use super::answer::Code;
use super::event::{Command, Ending, State};
use super::limits::is_overload;
use super::route::APP_KEY_FIELD;
use super::{Exchange, Told};
use crate::call::{AttemptId, CloseMode};
use crate::http1::{ForwardedRequest, Http1Error, Limits as DecoderLimits, ResponseDecoder, ResponseHead};
use crate::machine::{Ended, IoFailure, Misuse, Stage};
use crate::outcome::{AttemptRecord, Reason, SpanKind};
use crate::time::Instant;

/// A connection to a provider, and what goes over it
pub(super) struct Upstream {
    pub(super) id: AttemptId,
    pub(super) is_open: bool,
    is_reused: bool,
    began: Instant,
    /// What goes out before the body
    head: Vec<u8>,
    head_sent: usize,
    /// Bytes that the connection took
    bytes_sent: u64,
    bytes_received: u64,
    pub(super) write_failed: bool,
    pub(super) decoder: ResponseDecoder,
    status: Option<u16>,
}

impl Upstream {
    /// What of the head is still to be written
    pub(super) fn head(&self) -> &[u8] {
        &self.head[self.head_sent..]
    }

    /// The connection took so many bytes of the body
    pub(super) fn sent(&mut self, bytes: usize) {
        self.bytes_sent += bytes as u64;
    }

    /// Bytes that it holds
    pub(super) fn held(&self) -> usize {
        self.head.len() + self.decoder.held()
    }
}

impl Exchange {
    /// Asks for a connection to the provider
    pub(super) fn connect(&mut self, reuse: bool) {
        let (Some(route), Some(request)) = (self.current.route, &self.current.request) else { return };
        let origin = self.routes.get(route).origin().clone();
        let decoder = ResponseDecoder::new(&request.method, DecoderLimits::default()).keep_fields();
        self.last_id = self.last_id.next();
        let id = self.last_id;
        self.current.body.rewind();
        self.current.up = Some(Box::new(Upstream {
            id,
            is_open: false,
            is_reused: false,
            began: self.now,
            head: Vec::new(),
            head_sent: 0,
            bytes_sent: 0,
            bytes_received: 0,
            write_failed: false,
            decoder,
            status: None,
        }));
        self.commands.push(Command::Connect { id, origin, reuse });
        self.enter(State::Connecting);
    }

    pub(super) fn connected(&mut self, is_reused: bool) -> Result<(), Misuse> {
        let Exchange { routes, current, front, .. } = self;
        let (Some(up), Some(request), Some(route)) = (&mut current.up, &current.request, current.route)
        else {
            return Ok(());
        };
        if up.is_open {
            return Err(Misuse::OutOfOrder(
                "that connection was reported open before: feed Event::Connected or Reused once",
            ));
        }
        up.is_open = true;
        up.is_reused = is_reused;
        let route = routes.get(route);
        let mut dropped = vec![APP_KEY_FIELD];
        dropped.extend(current.key.iter().flat_map(|key| &key.fields));
        if route.key.is_some() {
            dropped.extend(CREDENTIALS);
        }
        let forwarded = ForwardedRequest {
            method: &request.method,
            target: &current.target,
            host: &route.origin().authority(),
            fields: &request.fields,
            replaced: route.key.as_slice(),
            dropped: &dropped,
            body: request.body,
        };
        if forwarded.encode(&mut up.head).is_err() {
            self.refuse(Code::BadPath);
            return Ok(());
        }
        let is_held_back = request.expects_continue && current.body.payload() == 0;
        if is_held_back && !current.body.has_ended() && !std::mem::replace(&mut current.said_continue, true) {
            front.push(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let since = current.since;
        self.span(SpanKind::Connect, since, Reason::Done);
        self.enter(State::Waiting);
        Ok(())
    }

    /// The connection took bytes of the head, then of the body
    pub(super) fn sent_up(&mut self, sent: usize) -> Result<(), Misuse> {
        let Some(up) = &mut self.current.up else { return Ok(()) };
        let outgoing = up.head().len() + self.current.body.unsent().len();
        if sent > outgoing {
            return Err(Misuse::SentTooMuch { sent, outgoing });
        }
        if up.bytes_sent == 0 && sent > 0 {
            self.current.sends += 1;
        }
        let of_head = sent.min(up.head().len());
        up.head_sent += of_head;
        up.bytes_sent += sent as u64;
        if up.head().is_empty() {
            up.head = Vec::new();
            up.head_sent = 0;
        }
        self.current.body.sent(sent - of_head);
        Ok(())
    }

    /// Bytes came; whether they can be an answer
    ///
    /// What comes before a byte of the request is written is none, and belongs to whoever had the
    /// connection before: it is replaced, as one that is stale.
    pub(super) fn received_up(&mut self, bytes: usize) -> bool {
        let Some(up) = &mut self.current.up else { return false };
        up.bytes_received += bytes as u64;
        let is_answer = up.bytes_sent > 0;
        if !is_answer {
            self.connect_failed(Reason::Protocol);
        }
        is_answer
    }

    /// No connection was to be had: once more, on a new one
    pub(super) fn connect_failed(&mut self, reason: Reason) {
        let was_reused = self.current.up.as_ref().is_some_and(|up| up.is_reused);
        self.attempt_ended(reason);
        // One that an earlier exchange had left, and nothing was written to: that one was just stale.
        if !was_reused {
            self.current.failed_connects += 1;
        }
        if self.current.failed_connects > self.current.limits.retries.connects {
            self.refuse(Code::UpstreamUnreachable);
        } else {
            self.connect(false);
        }
    }

    /// Opening, reading or writing failed
    pub(super) fn upstream_failed(&mut self, failure: &IoFailure) {
        let Some(up) = &mut self.current.up else { return };
        if up.bytes_sent == 0 {
            return self.connect_failed(Reason::Failed(failure.stage));
        }
        if failure.stage == Stage::Write {
            // The answer may lie in the socket already.
            up.write_failed = true;
            return;
        }
        if planted!(RelayResendsBroken) && self.current.passing.is_none() {
            return self.connect_failed(Reason::Failed(failure.stage));
        }
        self.broke(Reason::Failed(failure.stage));
    }

    /// The provider sends no more
    pub(super) fn upstream_ended(&mut self, ended: Ended) {
        let Some(up) = &mut self.current.up else { return };
        if up.bytes_sent == 0 {
            return self.connect_failed(Reason::Ended);
        }
        match up.decoder.eof() {
            // Where only the end ends it, one that is not authenticated may have come too early.
            Ok(_) if ended == Ended::Clean => self.answer_ended(false),
            Ok(_) | Err(_) => self.broke(Reason::Ended),
        }
    }

    /// What came is no HTTP
    pub(super) fn upstream_broke_protocol(&mut self, _: Http1Error) {
        self.broke(Reason::Protocol);
    }

    /// The exchange with the provider broke off
    pub(super) fn broke(&mut self, reason: Reason) {
        self.attempt_ended(reason);
        if self.current.passing.is_none() {
            self.refuse(Code::UpstreamFailed);
        } else {
            self.front.keeps_alive = false;
            self.flush(Ending::Broken);
        }
    }

    /// The head of an answer came: to be passed on, or a refusal that allows another send
    pub(super) fn answered(&mut self, head: ResponseHead) {
        let overloads = self.current.limits.retries.overloads + u32::from(planted!(RelayOneSendTooMany));
        if let Some(up) = &mut self.current.up {
            up.status = Some(head.status.as_u16());
        }
        let may_send_again = is_overload(head.status, self.current.shape)
            && self.current.sends <= overloads
            && self.current.body.can_be_sent_again();
        if !may_send_again {
            self.span(SpanKind::Request, self.current.since, Reason::Done);
            self.current.body.forget();
            self.pass_on(head);
            if self.has_taps && self.current.passing.is_some() {
                self.told.push(Told::Answer);
            }
            return;
        }
        self.attempt_ended(Reason::Status(head.status.as_u16()));
        let random = self.rng.f64();
        let pause = self.current.limits.retries.pause_after(self.current.sends, random);
        self.current.pause_until = Some(self.now + pause);
        self.enter(State::Pausing);
    }

    /// Whether the request went out whole, so that the connection may carry another one
    pub(super) fn is_request_out(&self) -> bool {
        let is_head_out = self.current.up.as_ref().is_some_and(|up| up.head().is_empty() && !up.write_failed);
        is_head_out && self.current.body.is_sent()
    }

    /// The attempt is over, if there is one: its connection is dropped
    pub(super) fn attempt_ended(&mut self, reason: Reason) {
        if let Some(up) = self.current.up.take() {
            self.record(&up, reason);
            self.commands.push(Command::Close(up.id, CloseMode::Abort));
        }
    }

    /// The attempt is over, and its connection may carry another request
    pub(super) fn attempt_kept(&mut self, mode: CloseMode) {
        if let Some(up) = self.current.up.take() {
            self.record(&up, Reason::EndOfBody);
            self.commands.push(Command::Close(up.id, mode));
        }
    }

    fn record(&mut self, up: &Upstream, reason: Reason) {
        self.note_gap();
        match self.current.state {
            State::Connecting => self.span(SpanKind::Connect, self.current.since, reason),
            State::Waiting => self.span(SpanKind::Request, self.current.since, reason),
            State::Answering => self.span(SpanKind::Body, self.current.since, reason),
            State::Idle
            | State::Serving
            | State::Pausing
            | State::Flushing
            | State::Lingering
            | State::Over => {}
        }
        self.current.timeline.attempt(AttemptRecord {
            number: self.current.timeline.attempt_count() + 1,
            began: up.began,
            ended: self.now,
            reused: up.is_reused,
            status: up.status,
            bytes_sent: up.bytes_sent,
            bytes_received: up.bytes_received,
            events: 0,
            malformed: 0,
            deltas: 0,
            largest_gap: self.current.longest_gap.map_or(Duration::ZERO, |gap| gap.lasted),
            reason,
        });
    }
}

/// The fields that carry a key, in whatever dialect: the app's own gives way to the route's
const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
