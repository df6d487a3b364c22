//! What must be known of one attempt by whoever has read as far as the client, by the rules alone.

use std::sync::Arc;
use std::time::Duration;

use steadfast::body::WINDOW_BYTES;
use steadfast::call::Shape;
use steadfast::dialect::Dialect;
use steadfast::machine::{Ended, Stage};
use steadfast::outcome::ErrorKind;
use steadfast::time::Instant;

use super::plan::{ContentType, Framing, Head, Problem, RetryAfter};
use super::wire::{Mark, Marked, has_body};

/// Ways in which an attempt may rightly end
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends(u16);

impl Ends {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const WELL: Self = Self(1);
    pub(crate) const TIMEOUT: Self = Self(1 << 1);
    pub(crate) const STATUS: Self = Self(1 << 2);
    pub(crate) const IN_BAND: Self = Self(1 << 3);
    pub(crate) const TRUNCATED: Self = Self(1 << 4);
    pub(crate) const EMPTY: Self = Self(1 << 5);
    pub(crate) const BLOCKED: Self = Self(1 << 6);
    pub(crate) const TRANSPORT: Self = Self(1 << 7);
    pub(crate) const PROXY: Self = Self(1 << 8);
    pub(crate) const PROTOCOL: Self = Self(1 << 9);
    pub(crate) const CANCELLED: Self = Self(1 << 10);
    pub(crate) const CONSUMER: Self = Self(1 << 11);

    const NAMES: [&'static str; 12] = [
        "success",
        "timeout",
        "status",
        "in_band",
        "truncated",
        "empty",
        "blocked",
        "transport",
        "proxy",
        "protocol",
        "cancelled",
        "consumer",
    ];

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }

    pub(crate) fn of(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Timeout(_) => Self::TIMEOUT,
            ErrorKind::Status(_) => Self::STATUS,
            ErrorKind::InBand(_) => Self::IN_BAND,
            ErrorKind::Truncated(_) => Self::TRUNCATED,
            ErrorKind::Empty => Self::EMPTY,
            ErrorKind::Blocked { .. } => Self::BLOCKED,
            ErrorKind::Transport(_) => Self::TRANSPORT,
            ErrorKind::Proxy(_) => Self::PROXY,
            ErrorKind::Protocol(_) => Self::PROTOCOL,
            ErrorKind::Cancelled => Self::CANCELLED,
            ErrorKind::Consumer(_) => Self::CONSUMER,
            _ => Self::NONE,
        }
    }

    pub(crate) fn names(self) -> String {
        let names = Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

/// Where an attempt is, as far as bytes tell
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// No connection yet
    Connecting,
    /// No final head yet
    Waiting,
    /// In the body of a unary answer
    Unary,
    /// In the body of a stream
    Stream,
    /// In a body that is handed out as it comes
    Raw,
    /// In the body of an answer that is no success
    Refused,
}

/// One attempt, as the wire and the rules have it
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) shape: Shape,
    pub(crate) head: Head,
    pub(crate) facts: bool,
    /// A proxy forwards the request
    pub(crate) forwarded: bool,
    pub(crate) place: Place,
    /// When the attempt began; that of the first connection where that was replaced at no cost
    pub(crate) began: Instant,
    pub(crate) reused: bool,
    /// What is to go out of the request, but for a body that is read; none before its head is whole
    pub(crate) outgoing: Option<Arc<[u8]>>,
    /// Bytes of that
    pub(crate) whole: u64,
    pub(crate) sent: u64,
    /// Bytes of a body that is read as it goes out, what frames them included
    pub(crate) framed: u64,
    /// Those without what frames them
    pub(crate) supplied: u32,
    /// All of the body is there
    pub(crate) body_ended: bool,
    /// Since when more of the body is asked for
    pub(crate) asked_since: Option<Instant>,
    pub(crate) received: u64,
    /// Bytes of the wire that the call was told of
    pub(crate) fed: u32,
    marks_met: usize,
    pub(crate) head_at: Instant,
    /// The last byte of a stream, or the consumer's return
    pub(crate) quiet_since: Instant,
    pub(crate) largest_gap: Duration,
    /// When the answer was last extended, or the consumer came back from that
    pub(crate) content_since: Instant,
    pub(crate) had_content: bool,
    /// When the completion marker came that stands
    pub(crate) marked_at: Option<Instant>,
    /// How many pieces of the answer have come
    pub(crate) said: usize,
    /// The last completion marker says that the provider stopped the model early
    pub(crate) stopped_early: bool,
    pub(crate) deltas: u32,
    pub(crate) may_break: bool,
    /// Bytes came that belong to no response, or to another call's
    pub(crate) polluted: bool,
    /// Bytes of an answer to a request that was not sent came on a connection that was left
    pub(crate) unasked: bool,
    pub(crate) peer_ended: bool,
    pub(crate) read_failed: bool,
    pub(crate) write_failed: bool,
    /// How the attempt must end, now
    pub(crate) fate: Option<Ends>,
    /// What the in-band error is about
    pub(crate) problem: Option<Problem>,
    /// The certificate, or whoever asks, was not accepted
    pub(crate) hopeless: bool,
}

impl Truth {
    pub(crate) fn new(dialect: Option<Dialect>, shape: Shape, head: Head, began: Instant) -> Self {
        Self {
            dialect,
            shape,
            head,
            facts: false,
            forwarded: false,
            place: Place::Connecting,
            began,
            reused: false,
            outgoing: None,
            whole: 0,
            sent: 0,
            framed: 0,
            supplied: 0,
            body_ended: true,
            asked_since: None,
            received: 0,
            fed: 0,
            marks_met: 0,
            head_at: began,
            quiet_since: began,
            largest_gap: Duration::ZERO,
            content_since: began,
            had_content: false,
            marked_at: None,
            said: 0,
            stopped_early: false,
            deltas: 0,
            may_break: false,
            polluted: false,
            unasked: false,
            peer_ended: false,
            read_failed: false,
            write_failed: false,
            fate: None,
            problem: None,
            hopeless: false,
        }
    }

    /// The head of the request is whole, and with it what goes out but for a body that is read
    pub(crate) fn goes_out(&mut self, outgoing: Arc<[u8]>) {
        self.whole = outgoing.len() as u64;
        self.outgoing = Some(outgoing);
    }

    /// Whether the connection took the whole request
    pub(crate) fn is_request_whole(&self) -> bool {
        self.outgoing.is_some() && self.body_ended && self.sent == self.whole + self.framed
    }

    /// How many more bytes of the body, or of header fields, a call is to ask for
    pub(crate) fn asks(&self) -> usize {
        let reads_on = match self.place {
            Place::Connecting | Place::Refused => false,
            Place::Waiting | Place::Unary | Place::Raw => true,
            Place::Stream => self.marked_at.is_none(),
        };
        if self.write_failed || self.peer_ended || !reads_on {
            return 0;
        }
        if self.outgoing.is_none() {
            return WINDOW_BYTES;
        }
        if self.body_ended || self.sent < self.whole {
            return 0;
        }
        let held = (self.whole + self.framed - self.sent) as usize;
        if held > WINDOW_BYTES / 2 { 0 } else { WINDOW_BYTES - held }
    }

    /// Whether the gaps between its bytes are bounded
    pub(crate) fn is_idle_watched(&self) -> bool {
        matches!(self.place, Place::Stream | Place::Raw)
    }

    /// The status of the response whose head has come
    pub(crate) fn status(&self) -> Option<u16> {
        let came = matches!(self.place, Place::Unary | Place::Stream | Place::Raw | Place::Refused);
        came.then_some(self.head.status)
    }

    /// The call was told of `count` more bytes at `now`, or of the head; `met` gets what they make known
    pub(crate) fn came(&mut self, now: Instant, count: u32, marks: &[Marked], mut met: impl FnMut(Mark)) {
        self.received += u64::from(count);
        if self.is_idle_watched() && count > 0 {
            self.largest_gap = self.largest_gap.max(now - self.quiet_since);
            self.quiet_since = now;
        }
        self.fed += count;
        while let Some(marked) = marks.get(self.marks_met).filter(|marked| marked.known <= self.fed) {
            self.marks_met += 1;
            if self.fate.is_none() {
                met(marked.mark);
                self.know(now, marked);
            }
        }
    }

    /// The transport says that the message has ended
    pub(crate) fn message_ended(&mut self, now: Instant, marks: &[Marked]) {
        for marked in &marks[self.marks_met.min(marks.len())..] {
            if self.fate.is_none() {
                self.know(now, marked);
            }
        }
        self.marks_met = marks.len();
    }

    /// The final head has come
    pub(crate) fn head_came(&mut self, now: Instant) {
        self.hopeless |= self.forwarded && self.head.status == 407;
        self.place = if !self.head.is_answer(self.dialect.is_some()) {
            Place::Refused
        } else {
            match self.shape {
                Shape::Unary => Place::Unary,
                Shape::Stream => Place::Stream,
                Shape::Raw => Place::Raw,
            }
        };
        (self.head_at, self.quiet_since, self.content_since) = (now, now, now);
    }

    fn know(&mut self, now: Instant, marked: &Marked) {
        let mark = marked.mark;
        self.said = self.said.max(marked.said as usize);
        match mark {
            Mark::Interim | Mark::Noise(_) => {}
            Mark::Head => self.head_came(now),
            Mark::Delta | Mark::OpensChoice => {
                self.deltas += 1;
                if mark == Mark::OpensChoice {
                    self.marked_at = None;
                } else if self.marked_at.is_some() {
                    self.marked_at = Some(now);
                }
            }
            Mark::Marker(early) | Mark::MarkerAgain(early) => {
                self.marked_at.get_or_insert(now);
                self.stopped_early = early;
            }
            Mark::Sentinel => self.fate = Some(self.at_sentinel()),
            Mark::InBand(problem) => {
                self.problem = Some(problem);
                self.fate = Some(Ends::IN_BAND);
            }
            Mark::Blocked => self.fate = Some(Ends::BLOCKED),
            // After the terminal state it is only noted (STR-8).
            Mark::NotJson | Mark::SecondMessage if self.marked_at.is_some() => {}
            Mark::NotJson | Mark::SecondMessage => self.fate = Some(Ends::PROTOCOL),
            Mark::MayBreak => self.may_break = true,
            Mark::Broken => self.fate = Some(self.broken()),
            Mark::BodyEnd => self.fate = Some(self.body_over()),
        }
    }

    fn at_sentinel(&self) -> Ends {
        let says_how = !matches!(
            self.dialect,
            Some(Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Anthropic)
        );
        if self.marked_at.is_some() || self.deltas > 0 || says_how { Ends::WELL } else { Ends::EMPTY }
    }

    /// How an attempt ends whose peer broke a protocol or a bound
    pub(crate) fn broken(&self) -> Ends {
        match self.place {
            Place::Refused => self.refused(),
            // A terminal state stands, whatever becomes of the connection.
            _ if self.marked_at.is_some() => Ends::WELL,
            Place::Connecting | Place::Waiting | Place::Unary | Place::Stream | Place::Raw => Ends::PROTOCOL,
        }
    }

    /// How an answer ends that is no success, once its body is over or is not awaited any longer
    pub(crate) fn refused(&self) -> Ends {
        if self.forwarded && self.head.status == 407 {
            return Ends::PROXY;
        }
        let is_foreign = (200..300).contains(&self.head.status) && has_body(self.head.status);
        if is_foreign { Ends::PROTOCOL } else { Ends::STATUS }
    }

    fn body_over(&self) -> Ends {
        match self.place {
            Place::Connecting | Place::Waiting => Ends::PROTOCOL,
            Place::Refused => self.refused(),
            Place::Unary | Place::Raw => Ends::WELL,
            Place::Stream => self.concluded(),
        }
    }

    fn concluded(&self) -> Ends {
        if self.marked_at.is_some() {
            Ends::WELL
        } else if self.deltas > 0 {
            Ends::TRUNCATED
        } else {
            Ends::EMPTY.or(Ends::TRUNCATED)
        }
    }

    /// The server's side ended by a FIN, which the call was told of
    pub(crate) fn eof(
        &mut self,
        now: Instant,
        ended: Ended,
        marks: &[Marked],
        is_whole: bool,
        body_start: u32,
    ) {
        if std::mem::replace(&mut self.peer_ended, true) || self.fate.is_some() {
            return;
        }
        let by_eof = !self.facts && self.head.framing == Framing::Eof && self.status().is_some_and(has_body);
        let proper = by_eof && ended == Ended::Clean;
        self.take_tail(now, marks, proper);
        if self.fate.is_some() {
            return;
        }
        let is_empty = self.fed <= body_start;
        self.fate = Some(match self.place {
            Place::Connecting | Place::Waiting => Ends::TRANSPORT,
            Place::Refused => self.refused(),
            Place::Stream if by_eof && self.is_document() && !is_empty && proper => Ends::PROTOCOL,
            Place::Stream if by_eof && self.is_document() && !is_empty => Ends::TRUNCATED,
            Place::Stream if by_eof => self.concluded(),
            _ if self.marked_at.is_some() => Ends::WELL,
            Place::Raw if proper => Ends::WELL,
            Place::Unary if by_eof && (self.dialect.is_none() || is_whole) => Ends::WELL,
            Place::Unary if by_eof && is_empty => Ends::EMPTY,
            Place::Unary if proper => Ends::PROTOCOL,
            Place::Unary | Place::Stream | Place::Raw => Ends::TRUNCATED,
        });
    }

    /// Reading failed, which the call was told of
    pub(crate) fn failed(&mut self, now: Instant, marks: &[Marked]) {
        if std::mem::replace(&mut self.peer_ended, true) || self.fate.is_some() {
            return;
        }
        self.read_failed = true;
        self.take_tail(now, marks, false);
        if self.fate.is_some() {
            return;
        }
        self.fate = Some(match self.place {
            Place::Refused => self.refused(),
            _ if self.marked_at.is_some() => Ends::WELL,
            Place::Connecting | Place::Waiting | Place::Unary | Place::Stream | Place::Raw => Ends::TRANSPORT,
        });
    }

    /// One JSON document comes in place of events
    fn is_document(&self) -> bool {
        self.head.content_type == ContentType::WholeJson
            && !matches!(self.dialect, Some(Dialect::Gemini | Dialect::Ollama))
    }

    /// The connection was not made
    pub(crate) fn not_connected(&mut self, stage: Stage) {
        self.fate = Some(if stage == Stage::Proxy { Ends::PROXY } else { Ends::TRANSPORT });
    }

    /// Takes what lies behind the last blank line, where that counts (STR-9)
    fn take_tail(&mut self, now: Instant, marks: &[Marked], proper: bool) {
        for marked in &marks[self.marks_met.min(marks.len())..] {
            if self.place != Place::Stream || marked.there > self.fed || self.fate.is_some() {
                return;
            }
            let is_last_line = self.dialect == Some(Dialect::Ollama)
                && (matches!(marked.mark, Mark::Sentinel | Mark::InBand(_))
                    || self.head.content_type == ContentType::WholeJson);
            let is_no_event =
                matches!(marked.mark, Mark::NotJson | Mark::BodyEnd | Mark::MayBreak | Mark::Broken);
            let counts = !is_no_event && (proper || is_last_line);
            if counts {
                self.know(now, marked);
            }
        }
    }

    /// How long the response asks to wait, counted from `unix_now` where that is known
    ///
    /// `Some(Duration::MAX)` is too long for any budget.
    pub(crate) fn retry_after(&self, unix_seconds: u64, unix_now: Duration) -> Option<Duration> {
        self.status()?;
        match self.head.retry_after {
            RetryAfter::None | RetryAfter::Garbage(_) => None,
            RetryAfter::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
            RetryAfter::Tenths(tenths) => Some(Duration::from_millis(u64::from(tenths) * 100)),
            RetryAfter::Millis(millis) | RetryAfter::MillisAndSeconds(millis) => {
                Some(Duration::from_millis(millis.into()))
            }
            RetryAfter::Date(seconds) => {
                Some(Duration::from_secs(unix_seconds + u64::from(seconds)).saturating_sub(unix_now))
            }
            RetryAfter::Past => Some(Duration::ZERO),
            RetryAfter::Huge => Some(Duration::MAX),
        }
    }
}
