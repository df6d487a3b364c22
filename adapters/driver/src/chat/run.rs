//! A tool loop under way.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use steadfast::call::{Item, Piece, RequestError, Retries};
use steadfast::chat::{Cost, Exchange, LoopObservation, LoopWork, ToolDefinition};
use steadfast::config::{Overrides, RequestConfig, Scope};
use steadfast::outcome::{ErrorKind, Outcome, Phase};
use steadfast::time::{Bound, Instant};

use super::observers::Observers;
use super::running::{News, Running, Terms};
use super::{LoopEnd, ToolEvent, ToolLoop, ToolRecord, ToolReport};
use crate::calling::CallStream;
use crate::canceller::Canceller;
use crate::client::{Alarm, Calls, Client, Network};

/// A tool loop under way: a [`Stream`] of [`ToolEvent`]s, with a [`ToolReport`] at the end
///
/// Nothing happens unless it is polled. Dropping it closes the connection and drops the tools that
/// run; so does [`ToolRun::cancel`]. A future of one of its methods can be dropped at any point without
/// losing anything.
///
/// Each answer of the model that asked for tools is kept in the conversation with their results, once
/// there are all; the last one when it is there. Each is paid for at once, so its cost is there even
/// where the loop is given up before the results are. What failed later does not undo it: the conversation
/// can be gone on with, by another run whose input is `Vec::new()`.
#[must_use = "a tool loop does nothing unless it is polled"]
pub struct ToolRun<'c, N: Network> {
    tool_loop: ToolLoop,
    client: Client<N>,
    definitions: Vec<ToolDefinition>,
    terms: Terms,
    observers: Observers,
    /// When the whole loop is out of time
    deadline: Option<Instant>,
    alarm: Alarm<N>,
    exchange: Exchange<'c>,
    state: State<N>,
    turn: u32,
    outcomes: Vec<Outcome>,
    records: Vec<ToolRecord>,
    /// None until somebody asks for one, and once it was obeyed
    canceller: Option<Canceller>,
    is_cancelled: bool,
}

enum State<N: Network> {
    Calling(Box<CallStream<Calls<N>>>),
    Running(Running),
    Over(LoopEnd),
}

impl<'c, N: Network> ToolRun<'c, N> {
    pub(super) fn new(
        tool_loop: ToolLoop,
        client: Client<N>,
        exchange: Exchange<'c>,
    ) -> Result<Self, RequestError> {
        let definitions = tool_loop.definitions();
        let deadline = client.clock().now().after(tool_loop.deadline);
        // Held fast as it is now: what changes outside is not for this loop.
        let scope = Scope::new(&Overrides::new()).expect("what is in force was checked");
        let mut run = Self {
            terms: Terms { scope, timeout: Bound::Unbounded, max_parallel: tool_loop.max_parallel },
            observers: Observers::default(),
            tool_loop,
            client,
            definitions,
            deadline,
            alarm: Alarm::new(),
            exchange,
            state: State::Over(LoopEnd::Cancelled),
            turn: 0,
            outcomes: Vec::new(),
            records: Vec::new(),
            canceller: None,
            is_cancelled: false,
        };
        run.call()?;
        Ok(run)
    }

    /// What happens next; `None` once the loop is over
    pub async fn next(&mut self) -> Option<ToolEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The end of the loop, and what came of it
    pub async fn report(mut self) -> ToolReport {
        while self.next().await.is_some() {}
        let State::Over(end) = self.state else { unreachable!("a loop without a next event is over") };
        let cost = *self.exchange.cost();
        ToolReport { end, outcomes: self.outcomes, tools: self.records, cost }
    }

    /// A handle by which another task or thread can give the loop up, whatever it waits for
    pub fn canceller(&mut self) -> Canceller {
        self.canceller.get_or_insert_default().clone()
    }

    /// Gives up: drops the call or the tools that run, and runs no others
    ///
    /// An answer that is whole already, and asks for no tool, is kept all the same (rule STR-4).
    pub fn cancel(&mut self) {
        self.is_cancelled = true;
        match &mut self.state {
            // Its outcome is to say so.
            State::Calling(stream) => stream.cancel(),
            State::Running(_) => self.end(LoopEnd::Cancelled),
            State::Over(_) => {}
        }
    }

    /// What the loop has cost so far
    pub fn cost(&self) -> &Cost {
        self.exchange.cost()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<ToolEvent>> {
        if self.canceller.as_ref().is_some_and(|canceller| canceller.poll(cx)) {
            self.canceller = None;
            self.cancel();
        }
        loop {
            let turn = self.turn;
            match &mut self.state {
                State::Over(_) => return Poll::Ready(None),
                State::Calling(stream) => {
                    let piece = ready!(stream.poll_with(cx, &mut |item: Item<'_>| Piece::from(item)));
                    if let Some(piece) = piece {
                        return Poll::Ready(Some(ToolEvent::Piece { turn, piece }));
                    }
                    let outcome = stream.take_ended().expect("a call without a next piece is over");
                    self.answered(outcome);
                }
                State::Running(running) => {
                    let now = self.client.clock().now();
                    match running.poll(&self.terms, &mut self.observers, now, cx) {
                        Poll::Ready(Some(News::Called(call))) => {
                            return Poll::Ready(Some(ToolEvent::Called { turn, call }));
                        }
                        Poll::Ready(Some(News::Returned(result))) => {
                            return Poll::Ready(Some(ToolEvent::Returned { turn, result }));
                        }
                        Poll::Ready(None) => self.returned(),
                        Poll::Pending if self.deadline.is_some_and(|deadline| deadline <= now) => {
                            self.end(LoopEnd::Deadline { limit: self.limit() });
                        }
                        Poll::Pending => {
                            let wake = [running.deadline(), self.deadline].into_iter().flatten().min();
                            let Some(at) = wake else { return Poll::Pending };
                            ready!(self.alarm.poll_until(self.client.clock(), at, cx));
                        }
                    }
                }
            }
        }
    }

    /// Calls the model
    fn call(&mut self) -> Result<(), RequestError> {
        self.turn += 1;
        let left = self.deadline.map(|deadline| deadline - self.client.clock().now());
        if left.is_some_and(|left| left.is_zero()) {
            self.end(LoopEnd::Deadline { limit: self.limit() });
            return Ok(());
        }
        let is_retried = self.turn == 1 || self.tool_loop.retry_each_turn;
        let request = self.exchange.request_with(&self.definitions, |request| {
            if is_retried { request } else { request.retries(Retries::Never) }
        })?;
        if self.turn == 1 {
            self.observers = Observers::of(&self.tool_loop, &request);
        }
        let (client, scope) = (&self.client, &self.terms.scope);
        let (config, stream) = self.observers.around(LoopWork::Call, || {
            scope.in_scope(|| {
                let config = client.config_of(&request);
                let left = left.map_or(Overrides::new(), |left| within(&config, left));
                (config, client.stream_under(request, &left))
            })
        });
        self.terms.timeout = config.tool_timeout();
        self.state = State::Calling(Box::new(stream));
        Ok(())
    }

    /// A call of the model is over
    fn answered(&mut self, outcome: Outcome) {
        self.exchange.answered(&outcome);
        let failure = outcome.result.as_ref().err().map(|error| {
            let is_deadline =
                matches!(&error.kind, ErrorKind::Timeout(timeout) if timeout.phase == Phase::Deadline);
            if error.kind == ErrorKind::Cancelled {
                LoopEnd::Cancelled
            } else if is_deadline && self.is_out_of_time() {
                LoopEnd::Deadline { limit: self.limit() }
            } else {
                LoopEnd::Failed
            }
        });
        let is_completed = outcome.word() == "completed";
        let mut running = Running::new(self.turn, &outcome, &self.tool_loop.tools, &self.definitions);
        self.outcomes.push(outcome);
        if let Some(end) = failure {
            return self.end(end);
        }
        if !is_completed || running.is_empty() {
            self.exchange.keep();
            return self.end(LoopEnd::Answered);
        }
        if self.turn >= self.tool_loop.max_turns {
            running.refuse_all(&format!(
                "not run: the limit of {} calls of the model was reached",
                self.tool_loop.max_turns
            ));
        }
        self.state = State::Running(running);
        if self.is_cancelled {
            self.end(LoopEnd::Cancelled);
        }
    }

    /// All tools of an answer have returned
    fn returned(&mut self) {
        let State::Running(running) = &self.state else { return };
        self.exchange.results(&running.results());
        self.record();
        if self.turn >= self.tool_loop.max_turns {
            let limit = self.tool_loop.max_turns;
            return self.end(LoopEnd::TurnLimit { limit });
        }
        self.call().expect("the endpoint was good for the first call");
    }

    fn record(&mut self) {
        if let State::Running(running) = &self.state {
            let now = self.client.clock().now();
            running.observe_dropped(&mut self.observers, now);
            self.records.extend(running.records(now));
            self.state = State::Over(LoopEnd::Cancelled);
        }
    }

    fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= self.client.clock().now())
    }

    fn limit(&self) -> Duration {
        self.tool_loop.deadline.limit().unwrap_or_default()
    }

    fn end(&mut self, end: LoopEnd) {
        self.record();
        self.state = State::Over(end);
        let (turns, cost) = (self.turn, self.exchange.cost());
        self.observers.observe(&LoopObservation::Over { end, turns, cost });
    }
}

impl<N: Network> Stream for ToolRun<'_, N>
where
    Self: Unpin,
{
    type Item = ToolEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ToolEvent>> {
        self.poll(cx)
    }
}

/// What bounds a call so that it ends within `left`, whatever else bounds it
fn within(config: &RequestConfig, left: Duration) -> Overrides {
    if Bound::seconds(left.as_secs_f64()).is_none() {
        // Longer than any bound can be.
        return Overrides::new();
    }
    let within = |bound: Bound| bound.limit().map_or(left, |limit| limit.min(left));
    Overrides::new()
        .total_deadline(within(config.total_deadline()))
        .stream_deadline(within(config.stream_deadline()))
}

impl<N: Network> fmt::Debug for ToolRun<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRun")
            .field("tool_loop", &self.tool_loop)
            .field("turn", &self.turn)
            .field("exchange", &self.exchange)
            .finish_non_exhaustive()
    }
}
