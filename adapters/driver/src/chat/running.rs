//! The tools of one answer, side by side, each within its bound.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Map, Value};
use steadfast::chat::{LoopObservation, LoopWork, ToolDefinition, ToolResult};
use steadfast::config::Scope;
use steadfast::outcome::{Outcome, ToolCall, ToolKind};
use steadfast::time::{Bound, Instant};

use super::observers::Observers;
use super::{Tool, ToolEnd, ToolFuture, ToolRecord};

/// What tool calls run under
pub(super) struct Terms {
    /// The scope in which the loop began
    pub(super) scope: Scope,
    /// `tool_timeout`
    pub(super) timeout: Bound,
    pub(super) max_parallel: usize,
}

/// The tool calls of one answer
pub(super) struct Running {
    turn: u32,
    calls: Vec<Slot>,
    news: VecDeque<News>,
}

/// What happened to a tool call
pub(super) enum News {
    Called(ToolCall),
    Returned(ToolResult),
}

struct Slot {
    call: ToolCall,
    state: State,
    elapsed: Duration,
    end: ToolEnd,
}

impl Slot {
    fn record(&self, turn: u32, now: Instant) -> ToolRecord {
        let elapsed = match &self.state {
            State::Running(run) => now - run.began,
            State::Waiting(..) | State::Answered(_) => self.elapsed,
        };
        ToolRecord { turn, id: self.call.id.clone(), name: self.call.name.clone(), elapsed, end: self.end }
    }
}

enum State {
    /// There was no room for it yet
    Waiting(Arc<dyn Tool>, Value),
    Running(Run),
    Answered(ToolResult),
}

struct Run {
    began: Instant,
    limit: Option<Duration>,
    /// None once it is dropped
    future: Option<ToolFuture<'static>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        let future = self.future.take();
        // What it leaves behind is its own; that it cannot even be dropped changes nothing for the others.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}

impl Running {
    /// The calls that the first choice of an answer makes of the caller's tools; none run yet
    pub(super) fn new(
        turn: u32,
        outcome: &Outcome,
        tools: &[Arc<dyn Tool>],
        definitions: &[ToolDefinition],
    ) -> Self {
        let choice = outcome.turn().choices.first();
        let calls = choice.map_or(&[][..], |choice| &choice.tool_calls);
        let mut running = Self { turn, calls: Vec::new(), news: VecDeque::new() };
        for call in calls.iter().filter(|call| call.kind != ToolKind::Server) {
            let named = definitions.iter().position(|definition| definition.name == call.name);
            let tool = named.map(|at| &tools[at]);
            match (tool, arguments(call).filter(|_| outcome.is_whole(call))) {
                (None, _) => {
                    let message = format!("there is no tool called `{}`", call.name);
                    running.refuse(call, ToolEnd::Unknown, message);
                }
                (Some(_), None) => {
                    let message = "the arguments are not valid JSON".to_owned();
                    running.refuse(call, ToolEnd::BadArguments, message);
                }
                (Some(tool), Some(arguments)) => {
                    let state = State::Waiting(Arc::clone(tool), arguments);
                    running.add(call, state, ToolEnd::Dropped);
                }
            }
        }
        running
    }

    /// Whether there is no call of a tool of the caller's
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// None of those that were to be run is: the loop may not go on
    pub(super) fn refuse_all(&mut self, message: &str) {
        for at in 0..self.calls.len() {
            if !matches!(self.calls[at].state, State::Answered(_)) {
                self.answer(at, ToolEnd::NotRun, Err(message.to_owned()));
            }
        }
    }

    /// Starts what there is room for, and polls what runs; the next news, or none once all is answered
    pub(super) fn poll(
        &mut self,
        terms: &Terms,
        observers: &mut Observers,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> Poll<Option<News>> {
        loop {
            if let Some(news) = self.news.pop_front() {
                return Poll::Ready(Some(news));
            }
            self.start(terms, observers, now);
            if self.news.is_empty() {
                self.poll_running(observers, now, cx);
            }
            if self.news.is_empty() {
                let is_over = self.calls.iter().all(|slot| matches!(slot.state, State::Answered(_)));
                return if is_over { Poll::Ready(None) } else { Poll::Pending };
            }
        }
    }

    /// When the first of those that run is out of time
    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadlines = self.calls.iter().filter_map(|slot| match &slot.state {
            State::Running(run) => run.limit.map(|limit| run.began + limit),
            State::Waiting(..) | State::Answered(_) => None,
        });
        deadlines.min()
    }

    /// What the model is to be told; nothing of what is not answered
    pub(super) fn results(&self) -> Vec<ToolResult> {
        let answered = self.calls.iter().filter_map(|slot| match &slot.state {
            State::Answered(result) => Some(result.clone()),
            State::Waiting(..) | State::Running(_) => None,
        });
        answered.collect()
    }

    /// What became of each
    pub(super) fn records(&self, now: Instant) -> impl Iterator<Item = ToolRecord> {
        self.calls.iter().map(move |slot| slot.record(self.turn, now))
    }

    /// Tells of those that run now: they are to be dropped
    pub(super) fn observe_dropped(&self, observers: &mut Observers, now: Instant) {
        for (position, slot) in self.calls.iter().enumerate() {
            if matches!(slot.state, State::Running(_)) {
                let record = &slot.record(self.turn, now);
                observers.observe(&LoopObservation::ToolEnded { position, record });
            }
        }
    }

    fn add(&mut self, call: &ToolCall, state: State, end: ToolEnd) {
        self.calls.push(Slot { call: call.clone(), state, elapsed: Duration::ZERO, end });
    }

    fn refuse(&mut self, call: &ToolCall, end: ToolEnd, message: String) {
        let result = ToolResult { call: call.clone(), value: Err(message) };
        self.news.push_back(News::Returned(result.clone()));
        self.add(call, State::Answered(result), end);
    }

    fn answer(&mut self, at: usize, end: ToolEnd, value: Result<Value, String>) {
        let slot = &mut self.calls[at];
        let result = ToolResult { call: slot.call.clone(), value };
        slot.end = end;
        slot.state = State::Answered(result.clone());
        self.news.push_back(News::Returned(result));
    }

    fn start(&mut self, terms: &Terms, observers: &mut Observers, now: Instant) {
        let is_running = |slot: &&Slot| matches!(slot.state, State::Running(_));
        let mut room = terms.max_parallel.saturating_sub(self.calls.iter().filter(is_running).count());
        let turn = self.turn;
        for (position, slot) in self.calls.iter_mut().enumerate() {
            if room == 0 {
                return;
            }
            let State::Waiting(tool, arguments) = &mut slot.state else { continue };
            let (tool, arguments) = (Arc::clone(tool), arguments.take());
            let limit = if tool.is_bounded() { None } else { terms.timeout.limit() };
            let future = terms.scope.clone().wrap(async move { tool.call(arguments).await });
            slot.state = State::Running(Run { began: now, limit, future: Some(Box::pin(future)) });
            observers.observe(&LoopObservation::ToolBegan { turn, position, call: &slot.call });
            self.news.push_back(News::Called(slot.call.clone()));
            room -= 1;
        }
    }

    fn poll_running(&mut self, observers: &mut Observers, now: Instant, cx: &mut Context<'_>) {
        for at in 0..self.calls.len() {
            let slot = &mut self.calls[at];
            let State::Running(run) = &mut slot.state else { continue };
            let Some(future) = &mut run.future else { continue };
            slot.elapsed = now - run.began;
            // A tool that is done is done, though its time is up as well.
            // A future that panicked is not polled again, so nobody sees what state it is in.
            let polled = observers.around(LoopWork::Tool { position: at }, || {
                catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            });
            let (end, value) = match polled {
                Ok(Poll::Ready(Ok(value))) => (ToolEnd::Returned, Ok(value)),
                Ok(Poll::Ready(Err(error))) => (ToolEnd::Failed, Err(error.to_string())),
                // Its message may hold anything, and is told to nobody here.
                Err(_) => (ToolEnd::Panicked, Err("the tool panicked".to_owned())),
                Ok(Poll::Pending) => match run.limit.filter(|limit| slot.elapsed >= *limit) {
                    None => continue,
                    Some(limit) => {
                        let message = format!("the tool was not done within {limit:?}");
                        (ToolEnd::TimedOut { limit }, Err(message))
                    }
                },
            };
            self.answer(at, end, value);
            let record = &self.calls[at].record(self.turn, now);
            observers.observe(&LoopObservation::ToolEnded { position: at, record });
        }
    }
}

/// The arguments of a call: JSON, or the text of a tool that takes any
fn arguments(call: &ToolCall) -> Option<Value> {
    match call.kind {
        ToolKind::Custom => Some(Value::String(call.arguments.clone())),
        ToolKind::Function | ToolKind::Server if call.arguments.trim_ascii().is_empty() => {
            Some(Value::Object(Map::new()))
        }
        ToolKind::Function | ToolKind::Server => serde_json::from_str(&call.arguments).ok(),
    }
}
