//! What the model holds of a connection and its exchange.

use super::terms::BEGAN;

/// All that the rules need to know
///
/// Instants are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) now: u64,
    pub(super) phase: Phase,
    pub(super) since: u64,
    /// The first byte of the request came
    pub(super) began: Option<u64>,
    pub(super) is_draining: bool,
    /// Whether the app's connection may carry another request behind this one
    pub(super) keeps: bool,
    /// Requests that came behind the present one
    pub(super) waiting: u32,
    /// The request's head is there
    pub(super) is_asked: bool,
    pub(super) body: Body,
    pub(super) up: Option<Up>,
    pub(super) failed_connects: u32,
    pub(super) sends: u32,
    /// What the app waits for that its connection has not taken
    pub(super) window: String,
    /// What it has got
    pub(super) app: String,
    /// It has the first byte of what waits
    pub(super) has_first: bool,
    /// The head of an answer went out, or an answer of the relay's own
    pub(super) has_status: bool,
    /// The provider's answer is passed on
    pub(super) passing: Option<Passing>,
    pub(super) last_part: u64,
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Connecting,
    Waiting,
    Pausing(u64),
    Answering,
    Flushing(Ends),
    Lingering,
}

/// How an exchange ends whose answer is on its way to the app
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ends {
    Passed,
    Broken,
    Refused(&'static str),
}

/// The request's body
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Body {
    pub(super) has_come: bool,
    /// The present connection took it
    pub(super) is_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Up {
    pub(super) is_open: bool,
    pub(super) is_reused: bool,
    /// A byte of the request was taken
    pub(super) has_begun: bool,
    pub(super) head_sent: bool,
    pub(super) write_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Passing {
    /// Only the end of the app's connection ends the answer
    pub(super) until_close: bool,
    /// Parts of an answer with a length that came
    pub(super) parts: u32,
}

impl State {
    /// The state with its instants counted from now: equal states have equal futures
    pub(super) fn relative(&self) -> Self {
        let mut state = self.clone();
        let by = state.now - BEGAN;
        let State { now, since, began, last_part, phase, .. } = &mut state;
        [now, since, last_part].into_iter().chain(began.as_mut()).for_each(|at| *at -= by);
        if let Phase::Pausing(until) = phase {
            *until -= by;
        }
        state
    }
}

/// A connection that has just been accepted
impl Default for State {
    fn default() -> Self {
        Self {
            now: BEGAN,
            phase: Phase::Idle,
            since: BEGAN,
            began: None,
            is_draining: false,
            keeps: true,
            waiting: 0,
            is_asked: false,
            body: Body { has_come: false, is_sent: false },
            up: None,
            failed_connects: 0,
            sends: 0,
            window: String::new(),
            app: String::new(),
            has_first: false,
            has_status: false,
            passing: None,
            last_part: BEGAN,
            is_over: false,
        }
    }
}
