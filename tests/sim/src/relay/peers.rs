//! Both ends of an exchange: what has come from them, what they take, and when.

use std::time::Duration;

use steadfast::call::AttemptId;
use steadfast::time::Instant;

use super::messages::Request;
use super::plan::{Answered, End, Leaves, Plan, Takes, When};

/// Bytes on their way to the relay, each piece with the instant at which it has come
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    /// Up to where bytes have come at an instant, in order
    arrivals: Vec<(Instant, usize)>,
    pub(super) read: usize,
}

impl Stream {
    /// More is sent, to come at that instant or once what is before it has
    pub(super) fn send(&mut self, at: Instant, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.arrivals.push((at.max(self.last()), self.bytes.len()));
    }

    /// When all that was sent has come
    pub(super) fn last(&self) -> Instant {
        self.arrivals.last().map_or(Instant::ORIGIN, |(at, _)| *at)
    }

    /// What has come and is not read
    pub(super) fn unread(&self, now: Instant) -> &[u8] {
        let upto = self.arrivals.iter().filter(|(at, _)| *at <= now).map(|(_, upto)| *upto).next_back();
        &self.bytes[self.read..upto.unwrap_or(0).clamp(self.read, self.bytes.len())]
    }

    pub(super) fn is_all_read(&self) -> bool {
        self.read == self.bytes.len()
    }

    /// When more comes
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.arrivals.iter().map(|(at, _)| *at).find(|at| *at > now)
    }
}

/// The app
pub(super) struct App {
    pub(super) stream: Stream,
    /// How many of its requests it has sent
    pub(super) sent: usize,
    /// Where each request begins in what it sends
    pub(super) starts: Vec<usize>,
    /// What it got
    pub(super) got: Vec<u8>,
    takes: Takes,
    takes_from: Instant,
    /// It leaves at that instant
    pub(super) leaves: Option<(Instant, Leaves)>,
    pub(super) has_left: bool,
    /// It never sends what it still owes
    is_stuck: bool,
}

impl App {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            stream: Stream::default(),
            sent: 0,
            starts: Vec::new(),
            got: Vec::new(),
            takes: plan.takes,
            takes_from: Instant::ORIGIN,
            leaves: plan.leaves_after.map(|after| (Instant::ORIGIN + after, Leaves::Fin)),
            has_left: false,
            is_stuck: false,
        }
    }

    /// Sends what it can, `over` of its requests being answered
    pub(super) fn send(&mut self, plan: &Plan, over: usize, now: Instant) {
        while let Some(sent) = plan.requests.get(self.sent) {
            let may_send = self.sent == 0 || sent.is_pipelined || over >= self.sent;
            if self.is_stuck || !may_send {
                return;
            }
            let (mut wire, head) = sent.request.wire();
            if let Some(half) = sent.half {
                wire.truncate(half);
                self.is_stuck = true;
            }
            self.starts.push(self.stream.bytes.len());
            let at = now.max(self.stream.last()) + sent.delay;
            let pause = match sent.pause {
                Some((behind, pause)) => (behind, pause),
                None if sent.request.expects => (head, Duration::from_secs(1)),
                None => (0, Duration::ZERO),
            };
            let (first, rest) = wire.split_at(pause.0.min(wire.len()));
            self.stream.send(at, first);
            self.stream.send(at + pause.1, rest);
            self.sent += 1;
            if let Some((behind, how)) = plan.leaves
                && self.stream.bytes.len() >= behind
                && self.leaves.is_none()
            {
                self.stream.bytes.truncate(behind.max(self.stream.read));
                self.leaves = Some((self.stream.last(), how));
                self.is_stuck = true;
            }
        }
    }

    /// How many bytes it takes now
    pub(super) fn room(&self, now: Instant) -> usize {
        match self.takes {
            _ if self.has_left => 0,
            Takes::All => usize::MAX,
            Takes::Stalls(behind) => behind.saturating_sub(self.got.len()),
            Takes::Slowly(most, _) => {
                if now < self.takes_from {
                    0
                } else {
                    most
                }
            }
            Takes::Pauses(behind, _) if self.got.len() < behind => behind - self.got.len(),
            Takes::Pauses(..) => {
                if now < self.takes_from {
                    0
                } else {
                    usize::MAX
                }
            }
        }
    }

    pub(super) fn takes(&mut self, bytes: &[u8], now: Instant) {
        let before = self.got.len();
        self.got.extend_from_slice(bytes);
        match self.takes {
            Takes::Slowly(_, pause) => self.takes_from = now + pause,
            Takes::Pauses(behind, pause) if before < behind && self.got.len() >= behind => {
                self.takes_from = now + pause;
            }
            Takes::All | Takes::Stalls(_) | Takes::Pauses(..) => {}
        }
    }

    pub(super) fn is_stalled(&self, now: Instant) -> bool {
        self.room(now) == 0
    }

    /// When something happens on its side
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let leaves = self.leaves.filter(|_| !self.has_left).map(|(at, _)| at);
        let all = [self.stream.next(now), leaves, Some(self.takes_from)];
        all.into_iter().flatten().filter(|at| *at > now).min()
    }
}

/// A connection to a provider, while it carries one request
pub(super) struct Up {
    pub(super) id: AttemptId,
    pub(super) route: usize,
    pub(super) opening: Opening,
    pub(super) is_reused: bool,
    pub(super) is_closed: bool,
    /// What it got
    pub(super) got: Vec<u8>,
    pub(super) answered: Option<Answered>,
    pub(super) stream: Stream,
    /// How many bytes of the stream are the answer, and of these the head
    pub(super) answer_length: usize,
    pub(super) head_length: usize,
    has_begun: bool,
    pub(super) end: Option<(Instant, End)>,
    pub(super) end_told: bool,
    pub(super) write_failed: bool,
    /// It ends behind so many bytes
    pub(super) stale: Option<usize>,
    /// When its final head was read
    pub(super) head_read: Option<Instant>,
}

/// How a connection is coming on
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Opens(Instant),
    Fails(Instant),
    Hangs,
    Refused(steadfast::relay::Code),
    Open,
    /// It failed, or was refused
    Over,
}

impl Up {
    pub(super) fn new(id: AttemptId, route: usize, opening: Opening) -> Self {
        Self {
            id,
            route,
            opening,
            is_reused: false,
            is_closed: false,
            got: Vec::new(),
            answered: None,
            stream: Stream::default(),
            answer_length: 0,
            head_length: 0,
            has_begun: false,
            end: None,
            end_told: false,
            write_failed: false,
            stale: None,
            head_read: None,
        }
    }

    /// Sends what it can
    pub(super) fn send(&mut self, request: &Request, now: Instant) {
        if self.opening != Opening::Open {
            return;
        }
        if let Some(behind) = self.stale {
            if self.got.len() >= behind && self.end.is_none() {
                self.end = Some((now, End::Fin));
            }
            return;
        }
        let Some(answered) = self.answered.as_mut().filter(|_| !self.has_begun) else { return };
        if request.is_head {
            // There is no body that could be broken.
            answered.answer.broken_at = None;
        }
        let is_due = match answered.when {
            When::Unasked => true,
            When::Early => !self.got.is_empty(),
            When::Whole => {
                self.got.len() > request.payload.len() && request.check_sent(&self.got) != Ok(false)
            }
        };
        if !is_due {
            return;
        }
        self.has_begun = true;
        let (mut wire, head_length) = answered.answer.wire(request.is_head);
        self.answer_length = wire.len();
        self.head_length = head_length;
        // Behind what is no HTTP there is no telling where anything ends.
        let surplus = if answered.answer.broken_at.is_some() { 0 } else { answered.surplus };
        wire.extend(std::iter::repeat_n(b'!', surplus));
        wire.truncate(answered.cut.unwrap_or(wire.len()));
        let (piece, pause) = answered.trickle.unwrap_or((wire.len().max(1), Duration::ZERO));
        let mut at = now + answered.delay;
        for piece in wire.chunks(piece) {
            self.stream.send(at, piece);
            at = at + pause;
        }
        let is_cut = wire.len() < self.answer_length;
        if answered.end != End::Keeps && !(is_cut && answered.delay.is_zero()) {
            self.end = Some((self.stream.last().max(now) + answered.delay, answered.end));
        }
    }

    /// How many bytes it takes now
    pub(super) fn room(&self) -> usize {
        let Some(answered) = &self.answered else { return usize::MAX };
        let got = self.got.len();
        let reads = answered.reads.map_or(usize::MAX, |most| most.saturating_sub(got));
        let breaks = answered.breaks.map_or(usize::MAX, |most| most.saturating_sub(got));
        if self.write_failed { 0 } else { reads.min(breaks) }
    }

    /// Whether writing to it fails now
    pub(super) fn is_broken(&self) -> bool {
        let breaks = self.answered.as_ref().and_then(|answered| answered.breaks);
        !self.write_failed && breaks.is_some_and(|most| self.got.len() >= most)
    }

    /// All of the answer was read, and nothing behind it
    pub(super) fn is_answer_read_whole(&self) -> bool {
        let is_sound = self.answered.as_ref().is_some_and(|answered| answered.answer.broken_at.is_none());
        is_sound && self.has_begun && self.stream.read >= self.answer_length
    }

    /// When something happens on its side
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let opening = match self.opening {
            Opening::Opens(at) | Opening::Fails(at) => Some(at),
            Opening::Hangs | Opening::Refused(_) | Opening::Open | Opening::Over => None,
        };
        let end = self.end.filter(|_| !self.end_told).map(|(at, _)| at);
        let all = [opening, end, self.stream.next(now)];
        all.into_iter().flatten().filter(|at| *at > now).min()
    }
}
