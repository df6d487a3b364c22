//! What rules RLY-1 to 7 say of one connection of an app, and the exchanges that come over it.

use steadfast::relay::{Shape, Timer};

use super::state::{Ends, Passing, Phase, State, Up};
use super::terms::{Act, Case, Framing, Input, SECOND, Seen, Takes, Told, Waits};

/// The rules, and one connection under them
#[derive(Clone)]
pub(super) struct Model<'c> {
    pub(super) case: &'c Case,
    pub(super) state: State,
}

impl<'c> Model<'c> {
    /// A connection that has just been accepted, and what is seen of it
    pub(super) fn new(case: &'c Case) -> (Self, Seen) {
        let model = Self { case, state: State::default() };
        let mut seen = Seen::default();
        model.told(&mut seen);
        (model, seen)
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.is_over
    }

    /// When `input` happens
    pub(super) fn time_of(&self, input: Input) -> u64 {
        match (input, self.deadline()) {
            (Input::Elapse, Some((at, _))) => at.max(self.state.now),
            (Input::Tick, _) => self.state.now + SECOND,
            _ => self.state.now,
        }
    }

    /// Lets `input` happen; what is seen of it
    ///
    /// `pause` is when the exchange says that its pause ends, of which a part is drawn.
    pub(super) fn step(&mut self, input: Input, pause: Option<u64>) -> Seen {
        use Input::*;
        self.state.now = self.time_of(input);
        let mut seen = Seen::default();
        let out = &mut seen;
        match input {
            Ask | AskTwice | AskRest => {
                self.state.waiting = u32::from(input == AskTwice);
                self.begin();
                self.asked(true, out);
            }
            AskHalf => self.begin(),
            AskHead => {
                self.begin();
                self.asked(false, out);
            }
            AskBad => {
                self.begin();
                self.state.keeps = false;
                self.refuse(400, "bad_request", out);
            }
            AskNowhere => {
                self.begin();
                // It is told at the head, whatever follows.
                self.state.is_asked = true;
                self.state.keeps = !self.case.is_old;
                self.refuse(404, "not_found", out);
            }
            AskBody => self.body_came(),
            AskBadBody => {
                self.state.keeps = false;
                if self.state.has_status {
                    self.leave("app_left", out);
                } else {
                    self.refuse(400, "bad_request", out);
                }
            }
            AppTakes => self.app_takes(),
            AppLeaves => self.leave("app_left", out),
            Cancel => self.leave("stopped", out),
            Drain => {
                self.state.is_draining = true;
                if self.state.phase == Phase::Idle && self.state.began.is_none() {
                    self.end(false, out);
                }
            }
            Full => {
                self.state.up = None;
                self.refuse(503, "gateway_overloaded", out);
            }
            Connected | Reused => {
                self.state.up = Some(Up {
                    is_open: true,
                    is_reused: input == Reused,
                    has_begun: false,
                    head_sent: false,
                    write_failed: false,
                });
                self.enter(Phase::Waiting);
            }
            ConnectFails => self.connect_failed(out),
            SentPart | SentAll => self.sent(input == SentAll),
            WriteFails => match &mut self.state.up {
                // The answer may lie in the socket already.
                Some(up) if up.has_begun => up.write_failed = true,
                _ => self.connect_failed(out),
            },
            Interim | Tick => {}
            Busy => self.refused(503, pause, out),
            Overloaded => self.refused(529, pause, out),
            Limited => self.refused(429, pause, out),
            Head => self.pass_on(200),
            Part => self.part(self.case.answer.part()),
            Last => self.last(true, out),
            LastAndMore => self.last(false, out),
            Whole => {
                self.pass_on(200);
                if self.case.answer == Framing::UntilClose {
                    self.part(self.case.answer.part());
                } else {
                    let body = [self.case.answer.part(), self.case.answer.last()].concat();
                    self.pass(&body, true);
                    self.answer_ended(true, out);
                }
            }
            Garbage => self.broke(out),
            Eof => self.up_ended(out),
            Reset => match self.state.up {
                Some(up) if up.has_begun => self.broke(out),
                _ => self.connect_failed(out),
            },
            Elapse => self.elapsed(out),
        }
        if self.case.takes == Takes::All {
            self.app_takes();
        }
        self.flushed(out);
        self.told(out);
        seen
    }

    /// What the app has got, and what is waited for
    fn told(&self, seen: &mut Seen) {
        seen.app.push_str(if self.state.has_first && self.state.window.starts_with('[') {
            "~"
        } else {
            &self.state.app
        });
        if self.state.is_over {
            return;
        }
        let up = self.state.up.filter(|up| up.is_open);
        seen.wait = Some(Waits {
            deadline: self.deadline(),
            app: self.app_interest(),
            up: up.map(|_| (self.state.window.is_empty(), self.writes_up())),
        });
    }

    /// The table of rule RLY, and the bounds on an app that asks for nothing or goes on sending
    pub(super) fn deadline(&self) -> Option<(u64, Timer)> {
        let State { phase, since, last_part, .. } = &self.state;
        let begun = self.state.began.unwrap_or(*since);
        let total = (begun + 3_600 * SECOND, Timer::Total);
        let first = (begun + 610 * SECOND, Timer::FirstByte);
        let set = match phase {
            Phase::Idle if self.state.began.is_some() => vec![(begun + 30 * SECOND, Timer::RequestHead)],
            Phase::Idle => vec![(since + 75 * SECOND, Timer::KeepAlive)],
            Phase::Connecting => vec![total, first, (since + 10 * SECOND, Timer::Connect)],
            Phase::Waiting => vec![total, first],
            Phase::Pausing(until) => vec![total, first, (*until, Timer::Pause)],
            Phase::Answering | Phase::Flushing(_) => vec![total, (last_part + 900 * SECOND, Timer::Silence)],
            Phase::Lingering => vec![(since + 10 * SECOND, Timer::Linger)],
        };
        set.into_iter().min()
    }

    pub(super) fn app_interest(&self) -> (bool, bool) {
        let reads = match self.state.phase {
            Phase::Idle | Phase::Lingering => true,
            Phase::Waiting | Phase::Answering => {
                let is_ready = |up: Up| up.is_open && up.head_sent && !up.write_failed;
                !self.state.body.has_come && self.state.up.is_some_and(is_ready)
            }
            Phase::Connecting | Phase::Pausing(_) | Phase::Flushing(_) => false,
        };
        (reads, !self.state.window.is_empty())
    }

    /// Whether the provider's connection is to take something
    pub(super) fn writes_up(&self) -> bool {
        let body_waits = self.state.body.has_come && !self.state.body.is_sent;
        self.state.up.is_some_and(|up| up.is_open && !up.write_failed && (!up.head_sent || body_waits))
    }

    fn enter(&mut self, phase: Phase) {
        self.state.phase = phase;
        self.state.since = self.state.now;
    }

    fn begin(&mut self) {
        self.state.began.get_or_insert(self.state.now);
    }

    /// The head of a request is there, for a route
    fn asked(&mut self, with_body: bool, out: &mut Seen) {
        self.state.is_asked = true;
        self.state.keeps = !self.case.is_old;
        self.state.body.has_come = with_body;
        self.connect(true, out);
    }

    fn connect(&mut self, reuse: bool, out: &mut Seen) {
        self.state.body.is_sent = false;
        self.state.up = Some(Up {
            is_open: false,
            is_reused: reuse,
            has_begun: false,
            head_sent: false,
            write_failed: false,
        });
        out.commands.push(Act::Connect(reuse));
        self.enter(Phase::Connecting);
    }

    /// Nothing was sent over it: once more, on a new one (RLY-2)
    fn connect_failed(&mut self, out: &mut Seen) {
        let was_reused = self.state.up.is_some_and(|up| up.is_open && up.is_reused);
        self.abort(out);
        self.state.failed_connects += u32::from(!was_reused);
        if self.state.failed_connects > 1 {
            self.refuse(502, "upstream_unreachable", out);
        } else {
            self.connect(false, out);
        }
    }

    fn sent(&mut self, all: bool) {
        let Some(up) = &mut self.state.up else { return };
        if !std::mem::replace(&mut up.has_begun, true) {
            self.state.sends += 1;
        }
        if all {
            up.head_sent = true;
            self.state.body.is_sent = self.state.body.has_come;
        }
    }

    /// The body, which goes straight on where it needs not be kept (RLY-4)
    fn body_came(&mut self) {
        self.state.body.has_come = true;
        let goes_straight_on = self.state.passing.is_some() && self.case.request != Framing::Chunked;
        self.state.body.is_sent = goes_straight_on && self.case.takes == Takes::All;
    }

    fn abort(&mut self, out: &mut Seen) {
        if self.state.up.take().is_some() {
            out.commands.push(Act::Abort);
        }
    }

    /// An answer of the relay's own (RLY-3)
    fn refuse(&mut self, status: u16, code: &'static str, out: &mut Seen) {
        self.abort(out);
        let keeps = self.may_go_on();
        self.state.keeps = keeps;
        self.state.has_status = true;
        self.state.last_part = self.state.now;
        self.state.window.push_str(&format!("[{status} {code}{}]", if keeps { "" } else { " close" }));
        self.enter(Phase::Flushing(Ends::Refused(code)));
    }

    /// Whether another request may follow on the app's connection
    fn may_go_on(&self) -> bool {
        self.state.keeps && !self.state.is_draining && self.state.body.has_come && self.state.is_asked
    }

    /// A status that is no success: an overload is sent again, twice (RLY-2)
    fn refused(&mut self, status: u16, pause: Option<u64>, out: &mut Seen) {
        let is_overload = status == 503 || (status == 529 && self.case.shape == Shape::Anthropic);
        // A body of unknown length may be longer than what is kept.
        let is_known = self.state.body.has_come || self.case.request != Framing::Chunked;
        if !is_overload || self.state.sends > 2 || !is_known {
            self.pass_on(status);
            self.pass("no", true);
            return self.answer_ended(true, out);
        }
        self.abort(out);
        let nominal = 200_000_000 << (self.state.sends - 1);
        let earliest = self.state.now + nominal * 9 / 10;
        let latest = self.state.now + nominal * 11 / 10;
        let until = pause.filter(|until| (earliest..=latest).contains(until)).unwrap_or(latest);
        self.enter(Phase::Pausing(until));
    }

    /// The head of an answer goes to the app (RLY-1)
    fn pass_on(&mut self, status: u16) {
        let is_framed = status != 200 || self.case.answer == Framing::Length;
        let until_close = self.case.is_old && !is_framed;
        self.state.keeps &= !self.state.is_draining && !until_close;
        let close = if self.state.keeps { "" } else { " close" };
        self.state.window.push_str(&format!("[{status}{close}]"));
        self.state.passing = Some(Passing { until_close, parts: 0 });
        self.state.has_status = true;
        self.state.last_part = self.state.now;
        self.enter(Phase::Answering);
    }

    /// A part of the body came
    fn part(&mut self, part: &str) {
        if let Some(passing) = &mut self.state.passing {
            passing.parts = (passing.parts + 1).min(1);
        }
        match (self.case.answer, self.case.is_old) {
            (Framing::UntilClose, false) => {
                // In chunks, so that a break is seen
                self.pass(&format!("{:x}\r\n{part}\r\n", part.len()), false);
            }
            (Framing::UntilClose, true) => self.pass(part, false),
            (Framing::Chunked | Framing::Length, _) => self.pass(part, true),
        }
    }

    /// What goes to the app; `straight` from the driver's buffer, or by way of ours
    fn pass(&mut self, bytes: &str, straight: bool) {
        // Without the framing, which an old app does not know
        let unframed = self.case.is_old && self.case.answer == Framing::Chunked && bytes != "no";
        let payload = bytes.replace("2\r\n", "").replace("0\r\n\r\n", "").replace("\r\n", "");
        let bytes = if unframed { payload.as_str() } else { bytes };
        self.state.window.push_str(bytes);
        if straight && !unframed {
            self.taken_at_once();
        }
    }

    /// The app's connection takes what it does of what is lent
    fn taken_at_once(&mut self) {
        match self.case.takes {
            Takes::All => self.app_takes(),
            Takes::Nothing => {}
            Takes::One => {
                self.state.last_part = self.state.now;
                self.state.has_first = true;
                if !self.state.window.starts_with('[') {
                    self.state.app.push(self.state.window.remove(0));
                }
            }
        }
    }

    fn app_takes(&mut self) {
        if !self.state.window.is_empty() {
            self.state.last_part = self.state.now;
            self.state.app.push_str(&std::mem::take(&mut self.state.window));
        }
        self.state.has_first = false;
    }

    fn last(&mut self, is_last: bool, out: &mut Seen) {
        self.pass(self.case.answer.last(), true);
        self.answer_ended(is_last, out);
    }

    /// The answer is whole; the connection may carry another request where nothing is left of either
    fn answer_ended(&mut self, is_clean: bool, out: &mut Seen) {
        let is_out =
            self.state.body.is_sent && self.state.up.is_some_and(|up| up.head_sent && !up.write_failed);
        if is_clean && is_out {
            self.state.up = None;
            out.commands.push(Act::Keep);
        } else {
            self.abort(out);
        }
        self.enter(Phase::Flushing(Ends::Passed));
    }

    fn up_ended(&mut self, out: &mut Seen) {
        match self.state.up {
            Some(up) if !up.has_begun => self.connect_failed(out),
            _ if self.state.passing.is_some() && self.case.answer == Framing::UntilClose => {
                if !self.case.is_old {
                    self.state.window.push_str("0\r\n\r\n");
                }
                self.answer_ended(false, out);
            }
            _ => self.broke(out),
        }
    }

    /// It began to go out and broke: never again (RLY-2); an answer that began ends there
    fn broke(&mut self, out: &mut Seen) {
        self.abort(out);
        if self.state.passing.is_none() {
            self.refuse(502, "upstream_failed", out);
        } else {
            self.state.keeps = false;
            self.enter(Phase::Flushing(Ends::Broken));
        }
    }

    fn elapsed(&mut self, out: &mut Seen) {
        let Some((_, timer)) = self.deadline() else { return };
        match timer {
            Timer::Total | Timer::FirstByte if !self.state.has_status => {
                self.refuse(504, "upstream_timeout", out);
            }
            Timer::Total | Timer::FirstByte | Timer::Silence => {
                self.abort(out);
                self.state.window.clear();
                self.over(&format!("limit {}", timer.name()), out);
                let is_cut = self.state.passing.is_some_and(|passing| passing.until_close);
                self.end(is_cut, out);
            }
            Timer::Connect => self.connect_failed(out),
            Timer::RequestHead => {
                self.state.keeps = false;
                self.refuse(408, "request_timeout", out);
            }
            Timer::Pause => {
                self.state.failed_connects = 0;
                self.connect(true, out);
            }
            Timer::Linger | Timer::KeepAlive => self.end(false, out),
        }
    }

    /// The app is gone, or the relay is stopped: the provider is cancelled at once (RLY-5)
    fn leave(&mut self, ending: &str, out: &mut Seen) {
        let is_told = match self.state.phase {
            Phase::Idle => self.state.began.is_none(),
            Phase::Lingering => true,
            _ => false,
        };
        let is_cut = !is_told && self.state.passing.is_some_and(|passing| passing.until_close);
        if !is_told {
            self.abort(out);
            self.over(ending, out);
        }
        self.end(is_cut, out);
    }

    /// Told as over
    fn over(&mut self, ending: &str, out: &mut Seen) {
        out.over.push(Told { ending: ending.to_owned(), sends: self.state.sends });
        let has_first = std::mem::take(&mut self.state.has_first);
        let is_head_cut = has_first && self.state.app.is_empty();
        out.app.push_str(if is_head_cut { "~" } else { &self.state.app });
        self.state.app.clear();
    }

    /// The connection is over
    fn end(&mut self, reset: bool, out: &mut Seen) {
        self.state.is_over = true;
        out.reset = Some(reset);
    }

    /// The rest of an answer is written: what becomes of the app's connection
    fn flushed(&mut self, out: &mut Seen) {
        let Phase::Flushing(ends) = self.state.phase else { return };
        if self.state.is_over || !self.state.window.is_empty() {
            return;
        }
        match ends {
            Ends::Passed => self.over("passed", out),
            Ends::Broken => self.over("broken", out),
            Ends::Refused(code) => self.over(&format!("refused {code}"), out),
        }
        if ends == Ends::Broken {
            let is_cut = self.state.passing.is_some_and(|passing| passing.until_close);
            return self.end(is_cut, out);
        }
        if !self.may_go_on() {
            out.commands.push(Act::Finish);
            return self.enter(Phase::Lingering);
        }
        let State { now, waiting, .. } = self.state;
        let (mut fresh, _) = Self::new(self.case);
        fresh.state.now = now;
        fresh.state.since = now;
        fresh.state.last_part = now;
        *self = fresh;
        if waiting > 0 {
            self.begin();
            self.asked(true, out);
        }
    }
}
