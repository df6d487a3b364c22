//! What holds at each step of an exchange.

use std::time::Duration;

use steadfast::call::{AttemptId, Origin};
use steadfast::relay::{Closing, Code, KEEP_ALIVE, LINGER, Limits, REQUEST_HEAD, State, Timer};
use steadfast::time::{Bound, Instant};

use super::messages::Goes;
use super::peers::{Opening, Up};
use super::world::{Side, Wants};
use super::{Invariant, Violation};

/// What was seen of the exchange under way
#[derive(Debug)]
pub(super) struct Watch {
    /// How many exchanges are over
    pub(super) overs: usize,
    pub(super) began: Option<Instant>,
    pub(super) idle_since: Instant,
    pub(super) linger_at: Instant,
    pub(super) connect_at: Instant,
    /// The head of an answer came, or a part of one last reached the app
    pub(super) part_at: Instant,
    is_behind_head: bool,
    /// Where in what the app got this exchange begins
    pub(super) app_from: usize,
    /// Where its connections begin
    pub(super) ups_from: usize,
    pub(super) route: Option<usize>,
    pub(super) refused: Option<Code>,
    /// The answer before said that the connection closes
    pub(super) said_close: bool,
    pub(super) is_draining: bool,
    pub(super) is_cancelled: bool,
    pub(super) tapped_request: Vec<u8>,
    pub(super) tapped_answer: Vec<u8>,
    /// How many requests, and answers, were tapped
    pub(super) taps: (u32, u32),
    /// The app's connection may only end by a reset
    pub(super) must_reset: bool,
    pub(super) done: Option<Closing>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            overs: 0,
            began: None,
            idle_since: Instant::ORIGIN,
            linger_at: Instant::ORIGIN,
            connect_at: Instant::ORIGIN,
            part_at: Instant::ORIGIN,
            is_behind_head: false,
            app_from: 0,
            ups_from: 0,
            route: None,
            refused: None,
            said_close: false,
            is_draining: false,
            is_cancelled: false,
            tapped_request: Vec::new(),
            tapped_answer: Vec::new(),
            taps: (0, 0),
            must_reset: false,
            done: None,
        }
    }

    /// The exchange is over, and the next may begin
    pub(super) fn again(&mut self, now: Instant, app_from: usize, ups_from: usize) {
        self.overs += 1;
        self.began = None;
        self.idle_since = now;
        self.is_behind_head = false;
        (self.app_from, self.ups_from) = (app_from, ups_from);
        (self.route, self.refused) = (None, None);
        self.tapped_request.clear();
        self.tapped_answer.clear();
        self.taps = (0, 0);
    }
}

/// Bytes that are held beside what was read last and the body that is kept: heads, and own answers
const HEADS: usize = 2_000;

impl Side<'_> {
    /// The connections of the exchange under way
    pub(super) fn attempts(&self) -> &[Up] {
        &self.ups[self.watch.ups_from..]
    }

    /// The bounds of the exchange under way
    pub(super) fn limits(&self) -> Limits {
        let route = self.attempts().last().map(|up| up.route);
        route.map_or_else(Limits::default, |route| self.plan.limits[route])
    }

    /// What holds where the exchange waits
    pub(super) fn check_wait(
        &mut self,
        state: State,
        wants: Wants,
        held: usize,
        (for_app, for_up): (usize, usize),
    ) -> Result<(), Violation> {
        self.state_met(state);
        let fed = self.app.stream.read;
        let is_under_way = !matches!(state, State::Idle | State::Lingering | State::Over);
        let has_begun =
            state == State::Idle && self.app.starts.get(self.watch.overs).is_some_and(|start| fed > *start);
        if self.watch.began.is_none() && (is_under_way || has_begun) {
            self.watch.began = Some(self.now);
            if self.watch.overs > 0 {
                self.coverage.met("second exchange");
            }
            if self.watch.said_close {
                let what = "an exchange begins behind an answer that said close".to_owned();
                return Err(self.wrong(Invariant::Answer, what));
            }
        }
        if matches!(state, State::Answering | State::Flushing) && !self.watch.is_behind_head {
            self.watch.is_behind_head = true;
            self.watch.part_at = self.now;
        }
        self.check_back_pressure(state, wants, for_app, for_up)?;
        self.check_held(held)?;
        self.check_deadline(state, wants.deadline)
    }

    fn check_back_pressure(
        &self,
        state: State,
        wants: Wants,
        for_app: usize,
        for_up: usize,
    ) -> Result<(), Violation> {
        let reads_on = matches!(state, State::Waiting | State::Answering) && wants.reads_app && for_up > 0;
        if (wants.reads_up && for_app > 0) || reads_on {
            let what =
                format!("it reads in {state:?} with {for_app} bytes for the app, {for_up} for the provider");
            return Err(self.wrong(Invariant::BackPressure, what));
        }
        if wants.writes_app != (for_app > 0) {
            return Err(
                self.wrong(Invariant::BackPressure, format!("{for_app} bytes wait for the app, {wants:?}"))
            );
        }
        Ok(())
    }

    fn check_held(&self, held: usize) -> Result<(), Violation> {
        let request = self.plan.requests.get(self.watch.overs).map(|sent| &sent.request);
        let kept = request.map_or(0, |request| {
            // Each byte may have come as a chunk of its own.
            let most = self.limits().retries.max_body_bytes;
            most.min(6 * request.payload.len() + 5)
        });
        let most = HEADS + 3 * self.plan.max_read.max(20) + kept;
        if held > most {
            return Err(self.wrong(Invariant::Memory, format!("{held} bytes are held, {most} is the most")));
        }
        Ok(())
    }

    fn check_deadline(&self, state: State, deadline: Option<(Instant, Timer)>) -> Result<(), Violation> {
        let watch = &self.watch;
        let limits = self.limits();
        let begun = watch.began.unwrap_or(self.now);
        let (total, first_byte) = (begun + time(limits.total), begun + time(limits.first_byte));
        let before_head = total.min(first_byte);
        let expected = match state {
            State::Idle if watch.began.is_some() => begun + time(REQUEST_HEAD),
            State::Idle => watch.idle_since + time(KEEP_ALIVE),
            State::Serving => total,
            State::Connecting => before_head.min(watch.connect_at + time(limits.connect)),
            State::Waiting => before_head,
            State::Pausing => return self.check_pause(before_head, deadline),
            State::Answering | State::Flushing => total.min(watch.part_at + time(limits.silence)),
            State::Lingering => watch.linger_at + time(LINGER),
            State::Over => return Ok(()),
        };
        if deadline.map(|(at, _)| at) == Some(expected) {
            return Ok(());
        }
        let expected = expected.since_origin();
        let what = format!("{state:?} waits until {deadline:?} in place of {expected:?}");
        Err(self.wrong(Invariant::Deadline, what))
    }

    fn check_pause(&self, most: Instant, deadline: Option<(Instant, Timer)>) -> Result<(), Violation> {
        let sends = self.attempts().iter().filter(|up| !up.got.is_empty()).count() as u32;
        let head_read = self.attempts().last().and_then(|up| up.head_read).unwrap_or(self.now);
        let (least, longest) = pauses(self.limits(), sends);
        let is_right = deadline.is_some_and(|(at, timer)| {
            let is_pause = timer == Timer::Pause && at >= head_read + least && at <= most;
            (is_pause || at == most) && at <= head_read + longest
        });
        if is_right {
            return Ok(());
        }
        let what = format!("{deadline:?} after {sends} sends, the pause is {least:?} to {longest:?}");
        Err(self.wrong(Invariant::Deadline, what))
    }

    /// What holds where a connection is asked for (rule RLY-2)
    pub(super) fn check_connect(&mut self, origin: &Origin, reuse: bool) -> Result<(), Violation> {
        let wrong = |side: &Self, what: &str| Err(side.wrong(Invariant::Resend, what.to_owned()));
        let Some(Goes::Up(route)) = self.goes() else {
            return wrong(self, "a connection for a request that goes nowhere");
        };
        if origin != self.origin_of(route) {
            return wrong(self, "a connection to another provider");
        }
        self.watch.route = Some(route);
        let Some(last) = self.attempts().last() else {
            return if reuse { Ok(()) } else { wrong(self, "a first connection that must be new") };
        };
        let got_answer = strip_continue(&self.app.got[self.watch.app_from..]).0;
        if !got_answer.is_empty() {
            return wrong(self, "another send behind a part of an answer");
        }
        if !last.is_closed {
            return Err(self.wrong(Invariant::Closed, "two connections at once".to_owned()));
        }
        let retries = self.limits().retries;
        if last.got.is_empty() {
            if reuse || self.failed_connects() > retries.connects as usize {
                return wrong(self, "more connections than may be tried");
            }
            return Ok(());
        }
        let sends = self.attempts().iter().filter(|up| !up.got.is_empty()).count() as u32;
        let is_overload = last.answered.as_ref().is_some_and(|answered| answered.answer.is_overload(route));
        let request = &self.plan.requests[self.watch.overs].request;
        let fits = request.payload.len() <= retries.max_body_bytes;
        let Some(head_read) = last.head_read.filter(|_| is_overload && fits && reuse) else {
            return wrong(self, "what began to go out is sent again");
        };
        if sends > retries.overloads {
            return wrong(self, "one send too many");
        }
        if self.now < head_read + pauses(self.limits(), sends).0 {
            return wrong(self, "the pause is too short");
        }
        self.coverage.met("sent again");
        Ok(())
    }

    /// New connections since the last send that came to nothing
    pub(super) fn failed_connects(&self) -> usize {
        let since = self.attempts().iter().rev().take_while(|up| up.got.is_empty());
        since.filter(|up| !(up.is_reused && up.opening == Opening::Open)).count()
    }

    /// What holds where a connection is closed
    pub(super) fn check_close(&self, id: AttemptId, keeps: bool) -> Result<(), Violation> {
        let wrong = |what: &str| Err(self.wrong(Invariant::Closed, format!("{id:?}: {what}")));
        let Some(up) = self.ups.iter().find(|up| up.id == id) else {
            return wrong("it was never asked for");
        };
        if up.is_closed {
            return wrong("it is closed twice");
        }
        let Some(sent) = self.plan.requests.get(self.watch.overs) else {
            return wrong("it is closed behind the last exchange");
        };
        let is_sent = sent.request.check_sent(&up.got);
        let is_sound = is_sent == Ok(true)
            && up.is_answer_read_whole()
            && up.stream.read == up.answer_length
            && !up.write_failed
            && !up.end_told;
        if keeps && !is_sound {
            return wrong("it is kept, and cannot carry another request");
        }
        Ok(())
    }
}

/// What the app got without the interim answers of the relay's own, and how many these were
pub(super) fn strip_continue(mut got: &[u8]) -> (&[u8], usize) {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut count = 0;
    while let Some(rest) = got.strip_prefix(CONTINUE) {
        (got, count) = (rest, count + 1);
    }
    if !got.is_empty() && CONTINUE.starts_with(got) { (&[], count) } else { (got, count) }
}

/// The shortest and the longest pause behind so many sends
fn pauses(limits: Limits, sends: u32) -> (Duration, Duration) {
    let doubled = limits.retries.pause * 2_u32.pow(sends.saturating_sub(1));
    let jitter = limits.retries.jitter;
    (doubled.mul_f64(1.0 - jitter), doubled.mul_f64(1.0 + jitter))
}

fn time(bound: Bound) -> Duration {
    bound.limit().expect("every limit of a plan is finite")
}
