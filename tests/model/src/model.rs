//! The model: what the rules say about one call, and nothing of how the machine keeps to them.

use std::time::Duration;

use steadfast::call::{Retries, Shape, Timer};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::machine::Stage;
use steadfast::outcome::Billing;
use steadfast::time::{Bound, Instant};

use crate::mutation::Mutation;
use crate::state::{Begun, Phase, Sent, State, Stream};
use crate::terms::{
    BODY_BYTES, Case, Ended, Framing, Input, LATE, Mode, Outcome, RETRY_AFTER, RETRY_AFTER_LONG, Seen,
    THOUGHT_BYTES, TICK, Upload, Waiting,
};

/// How long the body of an error answer may take (STR-6)
const ERROR_BODY: Bound = Bound::Limited(Duration::from_secs(5));

/// One call, as the rules have it
#[derive(Clone)]
pub struct Model<'c> {
    pub(crate) case: &'c Case,
    mutation: Option<Mutation>,
    pub(crate) state: State,
    seen: Vec<Seen>,
    /// When the call under test says that its pause ends: chance decides that within bounds (RTY-3)
    hint: Option<Instant>,
}

/// Whether a failure allows another attempt (RTY-1)
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    /// Not before this has passed
    After(Option<Duration>),
}

const AT_ONCE: Retry = Retry::After(None);

impl<'c> Model<'c> {
    /// A call that has not begun, and which rule the model gets wrong
    pub fn new(case: &'c Case, mutation: Option<Mutation>) -> Self {
        let state = State::default();
        Self { case, mutation, state, seen: Vec::new(), hint: None }
    }

    /// The time
    pub fn now(&self) -> Instant {
        self.state.now
    }

    /// Whether the call is over
    pub fn is_over(&self) -> bool {
        self.state.phase == Phase::Over
    }

    /// The state with its instants counted from now: equal states have equal futures
    pub fn state(&self) -> State {
        self.state.relative()
    }

    /// When `input` would happen
    pub fn time_of(&self, input: Input) -> Instant {
        let now = self.state.now;
        match (input, self.deadline()) {
            (Input::StartLate, _) => now.after(self.config().total_deadline()).unwrap_or(now),
            (Input::Tick, _) => now + TICK,
            (Input::Oversleep, Some((at, _))) => at + LATE,
            (Input::Elapse, Some((at, _))) => now.max(at),
            _ => now,
        }
    }

    /// What is seen when `input` happens; `hint` is when the call under test says that its pause ends
    pub fn step(&mut self, input: Input, hint: Option<Instant>) -> Vec<Seen> {
        self.hint = hint;
        self.state.now = self.time_of(input);
        let was_over = self.is_over();
        if !was_over {
            self.happen(input);
        }
        if was_over || !self.is_over() {
            let io =
                self.is_open().then(|| (self.state.link, !self.state.item_out, self.writes(), self.wants()));
            self.seen.push(Seen::Wait(Waiting { deadline: self.deadline(), io, taken: self.state.item_out }));
        }
        std::mem::take(&mut self.seen)
    }

    fn config(&self) -> &'c RequestConfig {
        &self.case.config
    }

    pub(crate) fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn is_open(&self) -> bool {
        use Phase::{Reading, Refused, Streaming, Waiting};
        matches!(self.state.phase, Waiting { .. } | Reading | Refused { .. } | Streaming(_))
    }

    pub(crate) fn writes(&self) -> bool {
        let is_there = self.state.sent != Sent::All || self.state.held > 0;
        self.is_open() && is_there && !self.state.write_failed
    }

    fn is_raw(&self) -> bool {
        self.case.shape == Shape::Raw
    }

    fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.state.phase {
            Phase::Streaming(stream) => Some(stream),
            _ => None,
        }
    }

    pub(crate) fn is_marked(&self) -> bool {
        matches!(&self.state.phase, Phase::Streaming(stream) if stream.marked.is_some())
    }

    /// The clocks that run, each with when it began
    fn clocks(&self) -> Vec<(Instant, Bound, Timer)> {
        let (state, config) = (&self.state, self.config());
        let for_stream = |bound| if self.case.shape == Shape::Unary { Bound::Unbounded } else { bound };
        let whole = (state.began, for_stream(config.stream_deadline()), Timer::StreamDeadline);
        let total = if self.is(Mutation::DeadlinePerAttempt) { state.attempt_began } else { state.began };
        let total = (total, config.total_deadline(), Timer::Deadline);
        let request = (state.attempt_began, config.request_timeout(), Timer::Request);
        match &state.phase {
            Phase::Idle | Phase::Pausing { .. } | Phase::Over => vec![],
            Phase::Connecting => {
                vec![total, whole, request, (state.attempt_began, config.connect_timeout(), Timer::Connect)]
            }
            Phase::Waiting { .. } | Phase::Reading => vec![total, whole, request],
            Phase::Refused { since, .. } => {
                vec![total, whole, request, (*since, ERROR_BODY, Timer::ErrorBody)]
            }
            Phase::Streaming(_) if state.item_out && !self.is(Mutation::IdleUnderBackpressure) => vec![whole],
            Phase::Streaming(stream) if self.is_raw() => {
                vec![whole, (stream.quiet_since, config.stream_idle_timeout(), Timer::StreamIdle)]
            }
            Phase::Streaming(stream) => {
                let first = config.first_content_timeout();
                let mut clocks = vec![whole];
                let has_begun = first == Bound::Unbounded || stream.content.is_some();
                if has_begun {
                    let content = stream.content.unwrap_or(stream.head);
                    clocks.push((content, config.content_idle_timeout(), Timer::ContentIdle));
                    clocks.push((stream.quiet_since, config.stream_idle_timeout(), Timer::StreamIdle));
                } else {
                    clocks.push((stream.head, first, Timer::FirstContent));
                }
                if let Some(at) = stream.marked {
                    clocks.push((at, Bound::Limited(config.after_marker()), Timer::AfterMarker));
                }
                clocks
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<(Instant, Timer)> {
        if let Phase::Pausing { until, .. } = self.state.phase {
            return Some((until, Timer::Backoff));
        }
        self.clocks().into_iter().filter_map(|(from, bound, timer)| Some((from.after(bound)?, timer))).min()
    }

    fn happen(&mut self, input: Input) {
        use Input::*;
        let now = self.state.now;
        match input {
            Tick | Oversleep | Late => {}
            Start | StartLate => self.begin(),
            Cancel if self.is_marked() && !self.is(Mutation::CancelBeatsMarker) => self.complete(Mode::Abort),
            Cancel => self.fail(Outcome::Cancelled, Retry::Never, Mode::Abort),
            ConsumerFails => self.fail(Outcome::Consumer, Retry::Never, Mode::Abort),
            Taken => {
                self.state.item_out = false;
                if let Some(stream) = self.stream() {
                    stream.quiet_since = now;
                    if std::mem::take(&mut stream.content_out) {
                        stream.content = Some(now);
                    }
                }
            }
            Elapse => self.expire(),
            Connected | Reused => {
                self.state.reused = input == Reused;
                self.state.phase = Phase::Waiting { half_head: false };
            }
            Refused => self.fail(Outcome::Transport(Stage::Connect), AT_ONCE, Mode::Abort),
            SentPart | SentAll => {
                self.state.sent = if input == SentAll { Sent::All } else { Sent::Part };
                self.state.any_sent = !self.is(Mutation::SentIsFree);
                self.state.held = 0;
            }
            Supply | SupplyMuch | SupplyEnd | SupplyFails => self.supply(input),
            WriteFails => self.state.write_failed = true,
            _ if self.state.reused && self.state.sent == Sent::Nothing && !self.state.answered => {
                self.replace()
            }
            Eof | Cut | Reset => self.lose(input),
            _ => {
                self.state.answered = true;
                self.gap();
                let is_silence = input == Comment && self.is(Mutation::CommentsAreSilence);
                let extends = input == Comment && self.is(Mutation::CommentsExtendMarker);
                if let Some(stream) = self.stream() {
                    stream.quiet_since = if is_silence { stream.quiet_since } else { now };
                    stream.marked = if extends { stream.marked.map(|_| now) } else { stream.marked };
                }
                self.read(input);
            }
        }
    }

    fn read(&mut self, input: Input) {
        use Input::*;
        let now = self.state.now;
        match input {
            HalfHead => self.state.phase = Phase::Waiting { half_head: true },
            UnaryHead if self.case.shape == Shape::Unary => self.state.phase = Phase::Reading,
            UnaryHead | StreamHead => {
                self.state.phase = Phase::Streaming(Stream {
                    head: now,
                    quiet_since: now,
                    content: None,
                    content_out: false,
                    marked: None,
                    is_unary: input == UnaryHead,
                    begun: None,
                });
            }
            BusyHead | Busy | Limited | LimitedLong | Bad | BusyFinal | BadAgain | Quota => {
                self.state.phase = Phase::Refused { since: now, answer: input };
                if input != BusyHead {
                    self.refuse(true);
                }
            }
            Body if matches!(self.state.phase, Phase::Refused { .. }) => self.refuse(true),
            Body | BodyOverload | BodyNotJson if self.config().max_body_bytes() < BODY_BYTES => {
                self.fail(Outcome::Protocol, Retry::Never, Mode::Abort);
            }
            Body => {
                (self.state.pieces, self.state.has_reason, self.state.has_usage) = (1, true, true);
                if self.case.shape == Shape::Stream {
                    self.deliver(Seen::Delta);
                }
                let kept = self.kept();
                self.complete(kept);
            }
            BodyOverload => self.fail(Outcome::InBand, AT_ONCE, self.kept()),
            BodyNotJson => self.fail(Outcome::Protocol, Retry::Never, self.kept()),
            HalfDelta | OpenDelta => {
                let begun = if input == HalfDelta { Begun::Half } else { Begun::WithoutLineEnd };
                self.stream().expect("a stream").begun = Some(begun);
            }
            Delta | RestDelta | LineEnd => self.delta(),
            Thought => self.thought(),
            RawByte => self.deliver(Seen::RawByte),
            DeltaToEnd => {
                self.delta();
                if self.case.dialect != Dialect::Ollama {
                    self.marker(true);
                }
                let last = if self.case.dialect == Dialect::Gemini { BodyEnd } else { Sentinel };
                self.read(last);
            }
            TwoDeltas => {
                self.delta();
                self.delta();
            }
            Marker | LengthMarker => self.marker(input == Marker),
            MarkerAndEnd => {
                self.marker(true);
                self.end_body(self.kept());
            }
            Usage => self.state.has_usage = true,
            Sentinel => self.sentinel(),
            Overload | Invalid if self.is_marked() && self.is(Mutation::MarkerBeatsError) => {}
            Overload | Invalid => {
                let again = input == Overload && !self.is_marked();
                self.fail(Outcome::InBand, if again { AT_ONCE } else { Retry::Never }, Mode::Abort);
            }
            NotJson if self.is_marked() => {}
            NotJson => self.fail(Outcome::Protocol, Retry::Never, Mode::Abort),
            BodyEnd => self.end_body(self.kept()),
            BodyEndAndMore => self.end_body(Mode::Abort),
            _ => {}
        }
    }

    /// Bytes of a stream came after some silence (END-1)
    fn gap(&mut self) {
        let Phase::Streaming(stream) = &self.state.phase else { return };
        let gap = self.state.now - stream.quiet_since;
        if self.case.gaps {
            let largest =
                if self.is(Mutation::LastGapIsLargest) { gap } else { self.state.largest_gap.max(gap) };
            self.state.largest_gap = largest;
        }
    }

    fn begin(&mut self) {
        match self.left() {
            Some(Duration::ZERO) => self.time_out(Timer::Deadline, self.state.began, Retry::Never),
            _ => self.attempt(),
        }
    }

    fn attempt(&mut self) {
        self.state.attempts += 1;
        self.state.attempt_began = self.state.now;
        (self.state.has_reason, self.state.is_incomplete, self.state.has_usage) = (false, false, false);
        self.connect();
    }

    fn connect(&mut self) {
        let state = &mut self.state;
        state.link += 1;
        (state.reused, state.answered, state.sent, state.write_failed) = (false, false, Sent::Nothing, false);
        (state.held, state.supplied, state.body_over) = (0, 0, false);
        state.largest_gap = Duration::ZERO;
        state.phase = Phase::Connecting;
        self.seen.push(Seen::Connect(state.link));
    }

    /// RTY-6: what an earlier call left is replaced, and where nobody has seen the request at no cost
    fn replace(&mut self) {
        self.close(Mode::Abort);
        self.state.attempts += u32::from(self.is(Mutation::ReplacementCosts));
        self.connect();
    }

    /// The connection ended or broke
    fn lose(&mut self, how: Input) {
        let state = &self.state;
        let stage = if state.write_failed { Stage::Write } else { Stage::Read };
        let cut =
            if how == Input::Reset { Outcome::Transport(Stage::Read) } else { Outcome::TruncatedInBody };
        match &state.phase {
            Phase::Waiting { .. } if state.reused && !state.answered && self.may_retry() => {
                self.close(Mode::Abort);
                self.attempt();
            }
            Phase::Waiting { .. } => self.fail(Outcome::Transport(stage), AT_ONCE, Mode::Abort),
            Phase::Refused { .. } => self.refuse(false),
            Phase::Streaming(_) if self.is_raw() && self.case.framing == Framing::UntilEof => match how {
                Input::Cut if !self.is(Mutation::CutRawIsWhole) => self.fail(cut, AT_ONCE, Mode::Abort),
                Input::Reset => self.fail(cut, AT_ONCE, Mode::Abort),
                _ => self.complete(Mode::Abort),
            },
            Phase::Streaming(stream)
                if how != Input::Reset && !stream.is_unary && self.case.framing == Framing::UntilEof =>
            {
                if how == Input::Cut {
                    // What nobody has ended is not taken (STR-9).
                    self.stream().expect("a stream").begun = None;
                }
                self.end_body(Mode::Abort);
            }
            Phase::Streaming(_) if self.is_marked() && !self.is(Mutation::ResetBeatsMarker) => {
                self.complete(Mode::Abort);
            }
            _ => self.fail(cut, AT_ONCE, Mode::Abort),
        }
    }

    /// The body of an error answer is over (STR-6, RTY-1)
    fn refuse(&mut self, whole: bool) {
        use Input::*;
        let Phase::Refused { answer, .. } = self.state.phase else { return };
        let (status, retry) = match answer {
            Limited => (429, Retry::After(Some(RETRY_AFTER))),
            LimitedLong => (429, Retry::After(Some(RETRY_AFTER_LONG))),
            Quota => (429, Retry::Never),
            Bad => (400, Retry::Never),
            BadAgain => (400, AT_ONCE),
            BusyFinal => (503, Retry::Never),
            _ => (503, AT_ONCE),
        };
        let mode = if whole { self.kept() } else { Mode::Abort };
        self.fail(Outcome::Status(status, whole), retry, mode);
    }

    fn delta(&mut self) {
        self.state.pieces += 1;
        self.extend(Seen::Delta);
    }

    /// A piece of reasoning, which counts against `max_body_bytes` like any other
    fn thought(&mut self) {
        self.state.thoughts += 1;
        let held = self.state.thoughts * THOUGHT_BYTES;
        if held > self.config().max_body_bytes() && !self.is(Mutation::ThoughtsAreFree) {
            self.state.thoughts -= 1;
            // A terminal state stands (STR-4).
            return match self.is_marked() {
                true => self.complete(Mode::Abort),
                false => self.fail(Outcome::Protocol, Retry::Never, Mode::Abort),
            };
        }
        self.extend(Seen::Thought);
    }

    /// Whether any of the answer was delivered
    fn is_delivered(&self) -> bool {
        self.state.pieces + self.state.thoughts > 0 || (self.is_raw() && self.state.any_item)
    }

    fn extend(&mut self, piece: Seen) {
        let now = self.state.now;
        self.deliver(piece);
        let opens_block = self.case.dialect == Dialect::Anthropic;
        let stream = self.stream().expect("a stream");
        stream.begun = None;
        (stream.content, stream.content_out) = (Some(now), true);
        // A block that the marker did not know of: it no longer counts (STR-11).
        stream.marked = stream.marked.filter(|_| !opens_block).map(|_| now);
        if stream.marked.is_some() {
            self.deliver(Seen::Finished);
        }
    }

    fn deliver(&mut self, item: Seen) {
        (self.state.item_out, self.state.any_item) = (true, true);
        self.seen.push(item);
    }

    fn marker(&mut self, is_whole: bool) {
        let now = self.state.now;
        (self.state.has_reason, self.state.is_incomplete) = (true, !is_whole);
        let stream = self.stream().expect("a stream");
        if stream.marked.is_none() {
            stream.marked = Some(now);
            self.deliver(Seen::Finished);
        }
    }

    fn sentinel(&mut self) {
        self.state.has_reason |= self.case.dialect == Dialect::Ollama;
        if !self.is_delivered() && !self.state.has_reason {
            self.fail(Outcome::Empty, AT_ONCE, Mode::Abort);
        } else {
            self.complete(Mode::Finish);
        }
    }

    /// The body ended properly (STR-5, STR-9)
    fn end_body(&mut self, mode: Mode) {
        if self.stream().expect("a stream").begun == Some(Begun::WithoutLineEnd)
            && !self.is(Mutation::TailLost)
        {
            self.delta();
        }
        if self.is_marked() || self.is_raw() {
            self.complete(mode);
        } else if !self.is_delivered() {
            self.fail(Outcome::Empty, AT_ONCE, mode);
        } else {
            self.fail(Outcome::TruncatedAtEnd, AT_ONCE, mode);
        }
    }

    /// What becomes of a connection whose message has ended
    fn kept(&self) -> Mode {
        let by_eof = self.case.framing == Framing::UntilEof
            && matches!(&self.state.phase, Phase::Streaming(stream) if !stream.is_unary);
        let unsent = !self.is_sent() && !self.is(Mutation::KeptUnsent);
        if by_eof || unsent { Mode::Abort } else { Mode::Keep }
    }

    /// The first of the clocks that are due ends what it watches
    fn expire(&mut self) {
        let Some((_, timer)) = self.deadline() else { return };
        if let Phase::Pausing { failure, retry_after, .. } = self.state.phase {
            return match self.left() {
                Some(Duration::ZERO) => self.end(failure, retry_after),
                _ => self.attempt(),
            };
        }
        if matches!(self.state.phase, Phase::Refused { .. })
            && !(self.is(Mutation::TimeoutBeatsStatus) && timer.breach().is_some())
        {
            return self.refuse(false);
        }
        if self.is_marked() {
            return self.complete(Mode::Abort);
        }
        let from =
            self.clocks().into_iter().find(|clock| clock.2 == timer).map_or(self.state.now, |clock| clock.0);
        let per_attempt = matches!(timer, Timer::Connect | Timer::Request);
        self.time_out(timer, from, if per_attempt { AT_ONCE } else { Retry::Never });
    }

    fn time_out(&mut self, timer: Timer, from: Instant, retry: Retry) {
        let config = self.config();
        let bound = match timer {
            Timer::Deadline => config.total_deadline(),
            Timer::StreamDeadline => config.stream_deadline(),
            Timer::Connect => config.connect_timeout(),
            Timer::Request => config.request_timeout(),
            Timer::FirstContent => config.first_content_timeout(),
            Timer::ContentIdle => config.content_idle_timeout(),
            _ => config.stream_idle_timeout(),
        };
        let (phase, setting) = timer.breach().expect("a timer that ends a call");
        let limit = bound.limit().expect("a bound");
        let elapsed = self.state.now - from;
        self.fail(Outcome::Timeout { phase, elapsed, limit, setting }, retry, Mode::Abort);
    }

    fn close(&mut self, mode: Mode) {
        if self.is_open() || self.state.phase == Phase::Connecting {
            self.seen.push(Seen::Close(self.state.link, mode));
        }
    }

    fn complete(&mut self, mode: Mode) {
        let may_be_used = self.case.framing == Framing::Chunked && self.is_sent();
        self.close(if mode == Mode::Finish && !may_be_used { Mode::Abort } else { mode });
        self.end(if self.state.is_incomplete { Outcome::Incomplete } else { Outcome::Completed }, None);
    }

    /// An attempt failed: a pause and another one, or the end (RTY-1 to RTY-4)
    pub(crate) fn fail(&mut self, outcome: Outcome, retry: Retry, mode: Mode) {
        self.close(mode);
        let asked = match retry {
            Retry::After(asked) => asked,
            Retry::Never => None,
        };
        let too_long =
            asked.is_some_and(|asked| self.config().max_retry_after().limit().is_some_and(|max| asked > max));
        if retry != Retry::Never && (!too_long || self.is(Mutation::WaitsAsLongAsAsked)) && self.may_retry() {
            let (now, left) = (self.state.now, self.left());
            let least = asked.unwrap_or_default();
            let jitter =
                Duration::from_secs(60).min(Duration::from_secs(1 << (self.state.attempts - 1).min(6)));
            let room = left.map_or(jitter, |left| left.saturating_sub(least) / 2);
            let most = least + if asked.is_some() { jitter.min(room) } else { jitter };
            let within = |at: &Instant| *at >= now + least && *at <= now + most;
            let fits = |at: &Instant| left.is_none_or(|left| *at < now + left);
            let sleeps_past = self.is(Mutation::SleepsPastDeadline);
            let must_fit = left.is_none_or(|left| most < left) || sleeps_past;
            let until = self.hint.filter(within).or(must_fit.then_some(now + least));
            if let Some(until) = until.filter(|at| fits(at) || sleeps_past) {
                self.state.phase = Phase::Pausing { until, failure: outcome, retry_after: asked };
                return;
            }
        }
        self.end(outcome, asked);
    }

    fn may_retry(&self) -> bool {
        let state = &self.state;
        let may_bill_twice = match self.case.retries {
            Retries::Allowed => true,
            Retries::UnlessBilled => !state.any_sent,
            Retries::Never => false,
        };
        let most = self.config().max_attempts().get() + u32::from(self.is(Mutation::OneAttemptMore));
        let gate = !self.is_delivered() || self.is(Mutation::RetriesAfterDelivery);
        let is_once = self.case.upload == Upload::ChunkedOnce && !self.is(Mutation::OnceIsReplayed);
        let is_there = !(is_once && state.body_read);
        may_bill_twice && gate && is_there && state.attempts < most && self.left() != Some(Duration::ZERO)
    }

    /// What is left of the time in which an attempt may start
    fn left(&self) -> Option<Duration> {
        let config = self.config();
        let for_stream =
            if self.case.shape == Shape::Unary { Bound::Unbounded } else { config.stream_deadline() };
        let ends = [config.total_deadline(), for_stream]
            .into_iter()
            .filter_map(|bound| self.state.began.after(bound));
        Some(ends.min()?.since(self.state.now))
    }

    fn end(&mut self, result: Outcome, retry_after: Option<Duration>) {
        let state = &mut self.state;
        state.phase = Phase::Over;
        state.item_out = false;
        let billing = match (state.any_item, state.any_sent) {
            (true, _) => Billing::Delivered,
            (false, true) => Billing::MaybeBilled,
            (false, false) => Billing::NotSent,
        };
        self.seen.push(Seen::Done(Ended {
            result,
            billing: (!matches!(result, Outcome::Completed | Outcome::Incomplete)).then_some(billing),
            retry_after,
            attempts: state.attempts,
            pieces: state.pieces,
            has_reason: state.has_reason,
            has_usage: state.has_usage,
            largest_gap: self.case.gaps.then_some(state.largest_gap),
        }));
    }
}
