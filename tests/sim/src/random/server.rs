//! The servers of a run, and the connections that are left to later calls.

use std::time::Duration;

use steadfast::call::{AttemptId, CloseMode};
use steadfast::http1::{Tail, TailState};
use steadfast::machine::{Ended, FailureKind, IoFailure, Stage};
use steadfast::time::Instant;

use super::coverage::{Coverage, Fault};
use super::plan::{Connect, End, Exchange, Plan};
use super::wire::{Asked, SURPLUS, Wire};

/// One connection in use
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: AttemptId,
    /// Which of the plan's exchanges it plays
    pub(crate) exchange: usize,
    connect: Connect,
    asked_at: Instant,
    pub(crate) open: bool,
    pub(crate) reused: bool,
    pub(crate) facts: bool,
    /// The head was told of, as a fact
    pub(crate) head_told: bool,
    /// The end of the body was told of, as a fact
    pub(crate) body_end_told: bool,
    /// The server's end was told of
    pub(crate) end_told: bool,
    /// That writing broke was told of
    pub(crate) break_told: bool,
    /// Bytes of the request that the server has taken
    taken: u32,
    /// When the answer began
    begun_at: Option<Instant>,
    next_send: usize,
    available: u32,
    /// Bytes of the exchange before that come first, and when
    pub(crate) left_over: Option<Instant>,
}

/// A connection that was left, and what will come on it
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// When its message has ended
    from: Instant,
    surplus: Option<Instant>,
    end: Option<(Instant, End)>,
}

/// What has come over a connection
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    Open,
    Reused,
    NotOpen(IoFailure),
    /// Bytes that were left over from another exchange
    LeftOver,
    /// So many bytes of the wire
    Bytes(u32),
    Head,
    BodyEnd,
    Eof(Ended),
    Reset,
    /// The connection took so many bytes
    Took(usize),
    WriteBroke,
}

/// What a call has to write
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: u32,
    /// They are the last of the request
    pub(crate) is_last: bool,
}

/// More connections than a run leaves
const MAX_IDLE: usize = 8;

/// All servers of a run
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub(crate) wire: Wire,
    pub(crate) link: Option<Link>,
    idle: Vec<Idle>,
    /// Attempts so far, in all calls
    attempts: u32,
}

impl Server {
    pub(crate) fn clear(&mut self) {
        self.link = None;
        self.idle.clear();
        self.attempts = 0;
    }

    /// Which of the plan's exchanges the next attempt gets
    pub(crate) fn next_exchange(&self, plan: &Plan) -> usize {
        self.attempts as usize % plan.exchanges.len()
    }

    /// The number of the next attempt in the run, from 1
    pub(crate) fn next_instance(&self) -> u32 {
        self.attempts + 1
    }

    /// A connection is asked for: one that was left, or a new one
    pub(crate) fn connect(
        &mut self,
        id: AttemptId,
        now: Instant,
        plan: &Plan,
        call: usize,
        coverage: &mut Coverage,
    ) {
        let index = self.next_exchange(plan);
        let exchange = &plan.exchanges[index];
        self.attempts += 1;
        let call = &plan.calls[call];
        let idle = if id.may_be_reused() { self.take_idle(now, call.client.looks, coverage) } else { None };
        let facts = exchange.facts && idle.is_none();
        if exchange.connect == Connect::Silent && idle.is_none() {
            coverage.fault(Fault::ConnectSilent);
        }
        let mut link = Link {
            id,
            exchange: index,
            connect: exchange.connect,
            asked_at: now,
            open: false,
            reused: idle.is_some(),
            facts,
            head_told: false,
            body_end_told: false,
            end_told: false,
            break_told: false,
            taken: 0,
            begun_at: None,
            next_send: 0,
            available: 0,
            left_over: None,
        };
        let asked = Asked {
            dialect: call.dialect,
            shape: call.shape,
            config: &plan.config,
            unix_seconds: plan.unix_seconds,
            instance: self.attempts,
            facts,
        };
        let ends = idle.and_then(|idle| exchange.stale.or(idle.end.map(|(at, end)| (at - now, end))));
        if let Some(idle) = idle {
            link.connect = Connect::Opens(Duration::ZERO);
            link.left_over = idle.surplus;
        }
        match ends {
            Some(end) => {
                let is_mute = end.1 == End::Open;
                coverage.fault(if is_mute { Fault::HalfOpen } else { Fault::StaleConnection });
                self.wire.only_end(end);
                link.begun_at = Some(now);
            }
            None => self.wire.render(exchange, asked),
        }
        self.link = Some(link);
    }

    /// The one used last of those that were left
    fn take_idle(&mut self, now: Instant, looks: bool, coverage: &mut Coverage) -> Option<Idle> {
        let mut at = self.idle.len();
        while at > 0 {
            at -= 1;
            if self.idle[at].from > now {
                continue;
            }
            let idle = self.idle.remove(at);
            let came = idle.surplus.is_some_and(|at| at <= now) || idle.end.is_some_and(|(at, _)| at <= now);
            if !(looks && came) {
                coverage.fault(Fault::Reused);
                return Some(idle);
            }
        }
        None
    }

    /// What has come by `now`, the first of it
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        plan: &Plan,
        reads: bool,
        outgoing: Outgoing,
        sizes: (u32, u32),
        fed: u32,
    ) -> Option<Arrival> {
        let Self { wire, link, .. } = self;
        let link = link.as_mut()?;
        let exchange = &plan.exchanges[link.exchange];
        let whole = |bytes: u32| if bytes == 0 { u32::MAX } else { bytes };
        let (read_bytes, write_bytes) = (whole(sizes.0), whole(sizes.1));
        if !link.open {
            return match link.connect {
                Connect::Opens(after) if link.asked_at + after <= now => {
                    link.open = true;
                    if link.begun_at.is_none() && exchange.reads == Some(0) {
                        link.begun_at = Some(now);
                    }
                    Some(if link.reused { Arrival::Reused } else { Arrival::Open })
                }
                Connect::Fails(after, stage, kind) if link.asked_at + after <= now => {
                    link.connect = Connect::Silent;
                    let message = "not connected".to_owned();
                    Some(Arrival::NotOpen(IoFailure { stage, kind, message }))
                }
                Connect::Opens(_) | Connect::Fails(..) | Connect::Silent => None,
            };
        }
        if reads {
            if let Some(at) = link.left_over {
                if at <= now {
                    link.left_over = None;
                    return Some(Arrival::LeftOver);
                }
            } else if let Some(arrival) = link.read(now, wire, fed, read_bytes) {
                return Some(arrival);
            }
        }
        if outgoing.bytes > 0 {
            return link.write(now, exchange, outgoing, write_bytes);
        }
        None
    }

    /// When something comes next by itself
    pub(crate) fn next_at(&self, reads: bool) -> Option<Instant> {
        let link = self.link.as_ref()?;
        if !link.open {
            return match link.connect {
                Connect::Opens(after) | Connect::Fails(after, ..) => Some(link.asked_at + after),
                Connect::Silent => None,
            };
        }
        if !reads {
            return None;
        }
        if let Some(at) = link.left_over {
            return Some(at);
        }
        let begun_at = link.begun_at?;
        match self.wire.sends.get(link.next_send) {
            Some((after, _)) => Some(begun_at + *after),
            None if link.end_told || self.wire.end.1 == End::Open => None,
            None => Some(begun_at + self.wire.end.0),
        }
    }

    /// A connection is closed; returns whether it may be used again though more of its message came
    /// than that
    pub(crate) fn close(&mut self, now: Instant, mode: CloseMode, fed: u32, coverage: &mut Coverage) -> bool {
        let Some(link) = self.link.take() else { return true };
        let Some(begun_at) = link.begun_at else { return true };
        let (from, upto) = match mode {
            CloseMode::Abort => return true,
            CloseMode::Keep | CloseMode::KeepFor(_) => (now, fed),
            CloseMode::Finish(tail) => {
                coverage.fault(Fault::LateEnd);
                match self.finish(now, begun_at, *tail, fed) {
                    Some(ended) => ended,
                    None => return true,
                }
            }
        };
        let end = (self.wire.end.1 != End::Open).then(|| (begun_at + self.wire.end.0, self.wire.end.1));
        let rest = (self.wire.bytes.len() as u32).saturating_sub(upto);
        let last = self.wire.sends.last().map_or(Duration::ZERO, |(at, _)| *at);
        let surplus = (rest > 0).then(|| begun_at + last);
        if self.idle.len() < MAX_IDLE {
            self.idle.push(Idle { from, surplus, end });
        }
        Some(upto) == self.wire.body_end
    }

    /// When the message has ended for the pool, and after how many bytes of it
    fn finish(&self, now: Instant, begun_at: Instant, mut tail: Tail, fed: u32) -> Option<(Instant, u32)> {
        let mut read = fed;
        for (after, upto) in &self.wire.sends {
            let at = now.max(begun_at + *after);
            if *upto <= read {
                continue;
            }
            if tail.until().is_some_and(|until| at > until) {
                return None;
            }
            match tail.receive(&self.wire.bytes[read as usize..*upto as usize]) {
                TailState::Open => read = *upto,
                TailState::Ended => return Some((at, *upto)),
                TailState::Broken => return None,
            }
        }
        None
    }
}

impl Link {
    pub(crate) fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Whether the server takes no more of the request before it answers
    pub(crate) fn reads_no_more(&self, exchange: &Exchange) -> bool {
        exchange.reads == Some(self.taken)
    }

    fn read(&mut self, now: Instant, wire: &Wire, fed: u32, read_bytes: u32) -> Option<Arrival> {
        let begun_at = self.begun_at?;
        while let Some((after, upto)) = wire.sends.get(self.next_send)
            && begun_at + *after <= now
        {
            self.available = *upto;
            self.next_send += 1;
        }
        if self.facts && !self.head_told {
            if self.next_send == 0 {
                return None;
            }
            self.head_told = true;
            return Some(Arrival::Head);
        }
        if self.available > fed {
            return Some(Arrival::Bytes((self.available - fed).min(read_bytes)));
        }
        if self.facts && !self.body_end_told && wire.body_end == Some(fed) {
            self.body_end_told = true;
            return Some(Arrival::BodyEnd);
        }
        let (after, end) = wire.end;
        if self.next_send < wire.sends.len() || self.end_told || begun_at + after > now {
            return None;
        }
        let arrival = match end {
            End::Open => return None,
            End::Fin(ended) => Arrival::Eof(ended),
            End::FinTwice => Arrival::Eof(Ended::Clean),
            End::Reset => Arrival::Reset,
        };
        self.end_told = true;
        Some(arrival)
    }

    fn write(
        &mut self,
        now: Instant,
        exchange: &Exchange,
        Outgoing { bytes: outgoing, is_last }: Outgoing,
        write_bytes: u32,
    ) -> Option<Arrival> {
        let until_answer = match exchange.reads {
            Some(bytes) if self.begun_at.is_none() => bytes.saturating_sub(self.taken),
            _ => u32::MAX,
        };
        let until_break = exchange.write_breaks.map_or(u32::MAX, |bytes| bytes.saturating_sub(self.taken));
        if until_break == 0 {
            if self.break_told {
                return None;
            }
            self.break_told = true;
            self.begun_at.get_or_insert(now);
            return Some(Arrival::WriteBroke);
        }
        let took = outgoing.min(write_bytes).min(until_answer).min(until_break);
        self.taken += took;
        if took == until_answer || (took == outgoing && is_last) {
            self.begun_at.get_or_insert(now);
        }
        (took > 0).then_some(Arrival::Took(took as usize))
    }

    /// The request has ended with bytes that were taken before
    pub(crate) fn request_ended(&mut self, now: Instant) {
        self.begun_at.get_or_insert(now);
    }

    /// Bytes of another exchange came, in place of its own
    pub(crate) fn surplus() -> &'static [u8] {
        SURPLUS
    }
}

pub(crate) fn reset(stage: Stage) -> IoFailure {
    IoFailure { stage, kind: FailureKind::Reset, message: "connection reset by peer".to_owned() }
}
