//! The checks: every step of a call against what happened, and against the rules.

use std::sync::Arc;
use std::time::Duration;

use steadfast::call::{AttemptId, CloseMode, Held, Item, Retries, Shape, Timer};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::outcome::{Delta, Turn};
use steadfast::retry::Backoff;
use steadfast::time::{Bound, Instant};

use super::invariants::{Invariant, Violation};
use super::plan::{ContentType, Exchange, Plan, Problem, Streamed};
use super::spoken::Answer;
use super::truth::{Ends, Place, Truth};
use super::wire::{Wire, has_body};

/// What a call was told last
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Start,
    /// A deadline of the last wait had come
    Elapsed(Option<Timer>),
    Taken,
    Cancel,
    ConsumerFailed,
    /// Something of a connection in use
    Link,
    /// The retry that was announced is refused
    RetryRefused,
    /// Something of one that is closed, or nothing at all
    Nothing,
}

/// What an attempt came to, as the driver has it
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) began: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) reused: bool,
    pub(crate) status: Option<u16>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) largest_gap: Duration,
}

/// A pause before another attempt
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) until: Instant,
}

/// Whether a failure is tried again
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) may: bool,
    pub(crate) must: bool,
}

/// One call, watched from outside
pub(crate) struct Watch {
    pub(crate) call: usize,
    pub(crate) config: RequestConfig,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) shape: Shape,
    pub(crate) retries: Retries,
    pub(crate) streamed: Option<Streamed>,
    /// Some of the body was read that is read as it goes out
    pub(crate) body_read: bool,
    pub(crate) unix_seconds: u64,
    pub(crate) began: Instant,
    /// The instant of the last event
    pub(crate) told_at: Instant,
    pub(crate) told: Told,
    pub(crate) truth: Truth,
    /// The connection asked for and not closed
    pub(crate) live: Option<AttemptId>,
    last_id: u32,
    pub(crate) attempts: u32,
    pub(crate) seen: Vec<Seen>,
    /// The present attempt's number in the run
    pub(crate) instance: u32,
    /// What goes out of each attempt, but for header fields that are made for it and a body that is read
    pub(crate) outgoing: Arc<[u8]>,
    pub(crate) makes_fields: bool,
    pub(crate) forwarded: bool,
    /// Its calls share a retry budget
    pub(crate) has_budget: bool,
    /// The next retry was announced
    pub(crate) announced: bool,
    /// The retry that was announced was refused
    pub(crate) refused: bool,
    pub(crate) sent: u64,
    /// The transport said that a response came, so the request was sent
    pub(crate) heard: bool,
    pub(crate) turn: Turn,
    /// What the server has said in the present attempt, as far as the call was told
    pub(crate) answer: Answer,
    /// After how many deltas, and how many pieces of the answer, the two were last found the same
    pub(crate) agreed: Option<(u32, usize)>,
    pub(crate) delivered: u32,
    pub(crate) finished: u32,
    pub(crate) item_out: bool,
    /// An item was out in which the answer was extended
    delta_out: bool,
    pub(crate) pause: Option<Pause>,
    /// How the last attempt rightly ended, what it says of another one, and how long it asks to wait
    pub(crate) last_end: Ends,
    pub(crate) again: Again,
    pub(crate) floor: Option<Duration>,
    /// Bytes that the call was told of may not have been parsed
    pub(crate) pending: bool,
    /// The caller gave up while that was so, and how the attempt may have ended before
    pub(crate) is_blurred: bool,
    pub(crate) unseen: Ends,
    /// What the last attempt ended by, and when
    pub(crate) ended_by: Told,
    pub(crate) ended_at: Instant,
    pub(crate) stale: u32,
    /// The most bytes that the call was given at a time
    pub(crate) largest_read: usize,
    /// What it held after its last step
    pub(crate) held: Held,
    /// The body that was handed out as it came
    pub(crate) raw: Vec<u8>,
    /// Bytes of the deltas that were delivered
    pub(crate) said: usize,
    /// Bytes that had come on the connection closed last
    pub(crate) fed_at_close: u32,
    pub(crate) done: bool,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let head = super::plan::Head::new(200);
        Self {
            call: 0,
            config: RequestConfig::default(),
            dialect: None,
            shape: Shape::Unary,
            retries: Retries::Allowed,
            streamed: None,
            body_read: false,
            unix_seconds: 0,
            began: Instant::ORIGIN,
            told_at: Instant::ORIGIN,
            told: Told::Start,
            truth: Truth::new(None, Shape::Unary, head, Instant::ORIGIN),
            live: None,
            last_id: 0,
            attempts: 0,
            seen: Vec::new(),
            instance: 0,
            outgoing: Arc::default(),
            makes_fields: false,
            forwarded: false,
            has_budget: false,
            announced: false,
            refused: false,
            sent: 0,
            heard: false,
            turn: Turn::default(),
            answer: Answer::default(),
            agreed: None,
            delivered: 0,
            finished: 0,
            item_out: false,
            delta_out: false,
            pause: None,
            last_end: Ends::NONE,
            again: Again { may: false, must: false },
            floor: None,
            pending: false,
            is_blurred: false,
            unseen: Ends::NONE,
            ended_by: Told::Start,
            ended_at: Instant::ORIGIN,
            stale: 0,
            largest_read: 0,
            held: Held::default(),
            raw: Vec::new(),
            said: 0,
            fed_at_close: 0,
            done: false,
        }
    }

    /// Another call begins
    pub(crate) fn begin(&mut self, plan: &Plan, number: usize, now: Instant, outgoing: Arc<[u8]>) {
        let call = &plan.calls[number];
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        let mut answer = std::mem::take(&mut self.answer);
        answer.clear();
        *self = Self {
            call: number + 1,
            config: plan.config,
            dialect: call.dialect,
            shape: call.shape,
            retries: call.retries,
            streamed: call.streamed,
            outgoing,
            makes_fields: call.made.is_some(),
            forwarded: call.forwarded,
            has_budget: plan.budget.is_some(),
            unix_seconds: plan.unix_seconds,
            began: now,
            told_at: now,
            seen,
            answer,
            ..Self::new()
        };
    }

    /// The check itself
    pub(crate) fn ensure(
        &self,
        holds: bool,
        invariant: Invariant,
        what: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if holds { Ok(()) } else { Err(self.violation(invariant, what())) }
    }

    pub(crate) fn violation(&self, invariant: Invariant, what: String) -> Violation {
        Violation { invariant, what, call: self.call, at: self.told_at }
    }

    /// The call was told something at `now`
    pub(crate) fn told(&mut self, now: Instant, told: Told) {
        // What was told before may have been acted on already, though nothing has shown yet.
        if self.pending && matches!(told, Told::Cancel | Told::ConsumerFailed) {
            self.unseen = self.unseen.or(if self.live.is_some() { self.end() } else { self.last_end });
            self.is_blurred = true;
        }
        self.told_at = self.told_at.max(now);
        self.told = told;
        self.pending = true;
        if told == Told::Taken && std::mem::take(&mut self.item_out) {
            let extended = std::mem::take(&mut self.delta_out);
            if self.truth.is_idle_watched() {
                self.truth.quiet_since = now;
                if extended {
                    self.truth.content_since = now;
                }
            }
        }
    }

    /// How the present attempt rightly ends now
    fn end(&self) -> Ends {
        let truth = &self.truth;
        let marked = truth.marked_at.is_some();
        match self.told {
            Told::Cancel if self.is_blurred => Ends::CANCELLED.or(Ends::WELL).or(self.unseen),
            Told::Cancel if marked => Ends::WELL,
            Told::Cancel => Ends::CANCELLED,
            Told::ConsumerFailed => Ends::CONSUMER.or(self.unseen),
            Told::Elapsed(Some(timer)) => match (timer, truth.place) {
                (_, Place::Refused) => truth.refused(),
                _ if marked => Ends::WELL,
                (timer, _) if timer.breach().is_some() => Ends::TIMEOUT,
                _ => Ends::NONE,
            },
            Told::Start
            | Told::Elapsed(None)
            | Told::Taken
            | Told::Link
            | Told::RetryRefused
            | Told::Nothing => {
                let fate = truth.fate.unwrap_or(Ends::NONE);
                let broken = if truth.may_break || truth.polluted { truth.broken() } else { Ends::NONE };
                fate.or(broken)
            }
        }
    }

    /// Whether what failed so may, and must, be tried again (rule RTY-1), the gates aside
    fn again(&self, ends: Ends) -> Again {
        let truth = &self.truth;
        let told = truth.status().and(truth.head.should_retry);
        let (mut may, mut must) = (false, true);
        let mut one = |end: Ends, is: bool, surely: bool| {
            if ends.has(end) {
                may |= is || !surely;
                must &= is && surely;
            }
        };
        one(Ends::WELL, false, true);
        one(Ends::BLOCKED.or(Ends::PROTOCOL).or(Ends::CANCELLED).or(Ends::CONSUMER), false, true);
        let is_passing = told.unwrap_or(true);
        let timer = if let Told::Elapsed(timer) = self.told { timer } else { None };
        one(Ends::TIMEOUT, is_passing && matches!(timer, Some(Timer::Connect | Timer::Request)), true);
        one(Ends::EMPTY.or(Ends::TRUNCATED), is_passing, true);
        one(Ends::TRANSPORT.or(Ends::PROXY), is_passing && !truth.hopeless, true);
        let in_band = match (truth.problem, truth.dialect) {
            (Some(Problem::Quota), _) | (None, _) => false,
            (Some(Problem::Overload), _) => told.unwrap_or(true),
            (Some(Problem::Invalid), _) => told.unwrap_or(false),
        };
        one(Ends::IN_BAND, in_band, true);
        let is_quota = truth.head.problem == Problem::Quota && has_body(truth.head.status);
        let by_status = told.unwrap_or(is_passing_status(truth.head.status));
        // Only a body that came whole says for certain that no money is left.
        let is_html = truth.head.content_type == ContentType::Html;
        one(Ends::STATUS, by_status && (!is_quota || is_html), !is_quota || is_html);
        Again { may, must: must && may }
    }

    /// How long a pause after the present number of attempts may be beyond what the server asks
    pub(crate) fn ceiling(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        Backoff::BASE.saturating_mul(doubled).min(Backoff::CAP)
    }

    /// The end of the deadlines that hold for the whole call
    pub(crate) fn whole_call(&self) -> Option<Instant> {
        let streams = self.shape != Shape::Unary;
        let stream = if streams { self.config.stream_deadline() } else { Bound::Unbounded };
        let ends = [self.began.after(self.config.total_deadline()), self.began.after(stream)];
        ends.into_iter().flatten().min()
    }

    /// Whether the gates for another attempt are open: delivery, count, and the caller's word
    pub(crate) fn gates(&self) -> bool {
        let billed = self.sent > 0 || self.heard;
        let allowed = match self.retries {
            Retries::Allowed => true,
            Retries::UnlessBilled => !billed,
            Retries::Never => false,
        };
        allowed
            && !(self.body_read && self.streamed.is_some_and(|streamed| streamed.once))
            && self.delivered == 0
            && self.finished == 0
            && self.attempts < self.config.max_attempts().get()
    }

    pub(crate) fn closes(&mut self, id: AttemptId, mode: &CloseMode, wire: &Wire) -> Result<(), Violation> {
        self.ensure(self.live == Some(id), Invariant::Leak, || {
            format!("{id:?} is closed, and {:?} is in use", self.live)
        })?;
        self.live = None;
        self.fed_at_close = self.truth.fed;
        (self.ended_by, self.ended_at) = (self.told, self.told_at);
        // Bytes that nobody asked for end an attempt, unless there is no time for another connection.
        let is_unasked = self.truth.unasked && self.told == Told::Link;
        self.last_end = if is_unasked { Ends::PROTOCOL } else { self.end() };
        self.again = self.again(self.last_end);
        let unix_now = Duration::from_secs(self.unix_seconds) + self.told_at.since_origin();
        self.floor = self.truth.retry_after(self.unix_seconds, unix_now);
        let truth = &self.truth;
        let may_live_on =
            truth.is_request_whole() && !truth.write_failed && !truth.peer_ended && !truth.facts;
        let at_end = Some(truth.fed) == wire.body_end;
        match mode {
            CloseMode::Abort => {}
            CloseMode::Keep | CloseMode::KeepFor(_) => {
                self.ensure(may_live_on && at_end, Invariant::Stranger, || {
                    format!(
                        "{id:?} is kept after {} bytes, its message ends at {:?}",
                        truth.fed, wire.body_end
                    )
                })?
            }
            CloseMode::Finish(_) => self.ensure(may_live_on, Invariant::Stranger, || {
                format!("{id:?} is to be used again, though it is broken: {truth:?}")
            })?,
        }
        let seen = Seen {
            began: truth.began,
            ended: Some(self.told_at),
            reused: truth.reused,
            status: truth.status(),
            sent: truth.sent,
            received: truth.received,
            largest_gap: truth.largest_gap,
        };
        if let Some(last) = self.seen.last_mut() {
            *last = seen;
        }
        Ok(())
    }

    /// `instance` is the attempt's number in the run
    pub(crate) fn connects(
        &mut self,
        id: AttemptId,
        exchange: &Exchange,
        instance: u32,
    ) -> Result<(), Violation> {
        let now = self.told_at;
        self.ensure(self.live.is_none(), Invariant::Leak, || {
            format!("{id:?} is asked for while {:?} is in use", self.live)
        })?;
        self.ensure(id.number() == self.last_id + 1, Invariant::Leak, || {
            format!("{id:?} follows connection {}", self.last_id)
        })?;
        let is_first = self.last_id == 0;
        self.last_id = id.number();
        self.ensure(self.delivered == 0 && self.finished == 0, Invariant::Gate, || {
            format!("{id:?} is asked for after {} deltas", self.delivered)
        })?;
        self.ensure(is_first || self.truth.marked_at.is_none(), Invariant::Gate, || {
            format!("{id:?} is asked for after a terminal state")
        })?;
        if let Some(end) = self.whole_call() {
            self.ensure(now < end, Invariant::Attempts, || {
                format!("{id:?} is asked for at {now:?}, and the call has until {end:?}")
            })?;
        }
        let mut began = now;
        let mut is_new_attempt = true;
        if let Some(pause) = self.pause.take() {
            self.ensure(now >= pause.until, Invariant::Pause, || {
                format!("{id:?} is asked for at {now:?}, in a pause until {:?}", pause.until)
            })?;
            self.is_paid_for()?;
            self.announced = false;
        } else if !is_first {
            let truth = &self.truth;
            let is_dead = truth.unasked || (truth.received == 0 && self.last_end.has(Ends::TRANSPORT));
            self.ensure(truth.reused && is_dead, Invariant::Retry, || {
                format!(
                    "{id:?} is asked for at once, and the last attempt ended by {}",
                    self.last_end.names()
                )
            })?;
            if truth.sent == 0 {
                began = truth.began;
                is_new_attempt = false;
            }
        } else {
            self.ensure(self.told == Told::Start, Invariant::Contract, || {
                format!("{id:?} is asked for after {:?}", self.told)
            })?;
        }
        if is_new_attempt {
            self.ensure(is_first || self.gates(), Invariant::Retry, || {
                format!(
                    "{id:?} is asked for though retries are {:?}, after {} bytes",
                    self.retries, self.sent
                )
            })?;
            self.attempts += 1;
            let max = self.config.max_attempts();
            self.ensure(self.attempts <= max.get(), Invariant::Attempts, || {
                format!("attempt {} of {max}", self.attempts)
            })?;
            self.seen.push(Seen {
                began,
                ended: None,
                reused: false,
                status: None,
                sent: 0,
                received: 0,
                largest_gap: Duration::ZERO,
            });
        }
        self.live = Some(id);
        self.truth = Truth::new(self.dialect, self.shape, exchange.head, began);
        self.answer.clear();
        self.agreed = None;
        self.truth.body_ended = self.streamed.is_none();
        self.truth.forwarded = self.forwarded;
        if !self.makes_fields {
            self.truth.goes_out(Arc::clone(&self.outgoing));
        }
        self.instance = instance;
        Ok(())
    }

    /// The connection takes the first `bytes` of what the call has to write
    pub(crate) fn takes(&mut self, id: AttemptId, parts: [&[u8]; 2], bytes: usize) -> Result<(), Violation> {
        let from = self.truth.sent as usize;
        let first = bytes.min(parts[0].len());
        let taken = [&parts[0][..first], &parts[1][..bytes - first]];
        let mut expected = self.truth.outgoing.as_deref().and_then(|all| all.get(from..)).unwrap_or_default();
        let is_so = taken.into_iter().all(|part| {
            // What is read of a body follows.
            let known = part.len().min(expected.len());
            let is_so = part[..known] == expected[..known];
            expected = &expected[known..];
            is_so
        });
        self.truth.sent += bytes as u64;
        self.sent += bytes as u64;
        self.ensure(is_so, Invariant::Request, || {
            let taken = taken.concat();
            let taken = String::from_utf8_lossy(&taken);
            let right = String::from_utf8_lossy(self.truth.outgoing.as_deref().unwrap_or_default());
            format!("{taken:?} goes out on {id:?}, from byte {from} of {right:?}")
        })
    }

    /// Whether `id` is the connection asked for last
    pub(crate) fn is_last(&self, id: AttemptId) -> bool {
        id.number() == self.last_id
    }

    pub(crate) fn delivers(&mut self, item: &Item<'_>) -> Result<(), Violation> {
        self.ensure(self.live.is_some(), Invariant::Stranger, || {
            "an item of a closed connection".to_owned()
        })?;
        self.item_out = true;
        match item {
            Item::Delta(delta) => {
                self.turn.apply(delta);
                self.delivered += 1;
                self.said += delta.len();
                let most = self.config.max_body_bytes();
                self.ensure(self.said <= most, Invariant::Memory, || {
                    format!("an answer of {} bytes, with max_body_bytes {most}", self.said)
                })?;
                self.delta_out = true;
                self.truth.had_content = true;
                self.truth.content_since = self.told_at;
                self.ensure(!delta.is_empty() || is_call(delta), Invariant::Terminal, || {
                    "a delta that brings nothing".to_owned()
                })
            }
            Item::Bytes(bytes) => {
                self.raw.extend_from_slice(bytes);
                self.delivered += 1;
                let is_right = !bytes.is_empty() && self.shape == Shape::Raw;
                self.ensure(is_right, Invariant::Terminal, || format!("{} bytes are handed out", bytes.len()))
            }
            Item::Unknown { .. } => Ok(()),
            Item::Finished(turn) => {
                self.finished += 1;
                let is_marked = self.truth.marked_at.is_some() || self.truth.fate == Some(Ends::WELL);
                self.ensure(is_marked || self.pending, Invariant::Terminal, || {
                    "a turn is finished that no marker finished".to_owned()
                })?;
                self.same_turn(turn)
            }
        }
    }

    /// The deltas make this turn (rule STR-8)
    pub(crate) fn same_turn(&self, turn: &Turn) -> Result<(), Violation> {
        let said =
            |turn: &'_ Turn| -> usize { turn.choices.iter().filter(|choice| !choice.is_empty()).count() };
        let same = said(turn) == said(&self.turn)
            && self.turn.choices.iter().all(|ours| {
                turn.choices.iter().any(|theirs| {
                    theirs.index == ours.index
                        && theirs.text == ours.text
                        && theirs.reasoning == ours.reasoning
                        && theirs.refusal == ours.refusal
                        && theirs.tool_calls == ours.tool_calls
                })
            });
        self.ensure(same, Invariant::Terminal, || {
            format!("the deltas make {:?}, and the turn is {:?}", self.turn.choices, turn.choices)
        })
    }

    /// Whether the call is pausing before another attempt
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some()
    }
}

fn is_call(delta: &Delta<'_>) -> bool {
    matches!(delta, Delta::ToolCall { .. })
}

/// Whether an answer of that status passes (rule RTY-1)
fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529)
}
