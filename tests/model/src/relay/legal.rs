//! What can happen next.

use super::model::Model;
use super::state::{Phase, State};
use super::terms::{Framing, Input, SECOND, Takes};

impl Model<'_> {
    /// Whether `input` can happen now: to the driver by its contract, and on the wire
    pub(super) fn allows(&self, input: Input) -> bool {
        use Input::*;
        let State { phase, began, up, window, passing, has_first, .. } = &self.state;
        let is_open = up.is_some_and(|up| up.is_open);
        let opens = *phase == Phase::Connecting;
        let reads_up = is_open && window.is_empty();
        // Before a byte of the request is out there is no answer; what comes then is another case.
        let answers = reads_up && *phase == Phase::Waiting && up.is_some_and(|up| up.has_begun);
        let is_passing = reads_up && *phase == Phase::Answering;
        let parts = passing.map_or(0, |passing| passing.parts);
        let is_by_length = self.case.answer == Framing::Length;
        let writes = is_open && self.writes_up();
        let (reads_app, _) = self.app_interest();
        match input {
            _ if self.state.is_over => false,
            Ask | AskTwice | AskHalf | AskHead | AskBad | AskNowhere => {
                reads_app && *phase == Phase::Idle && began.is_none()
            }
            AskRest => *phase == Phase::Idle && began.is_some(),
            // Nothing is a fault in a body that its length ends.
            AskBadBody if self.case.request != Framing::Chunked => false,
            AskBody | AskBadBody => reads_app && matches!(phase, Phase::Waiting | Phase::Answering),
            AppTakes => !window.is_empty() && (*has_first || self.case.takes != Takes::All),
            AppLeaves | Cancel => true,
            Drain => !self.state.is_draining,
            Full | Connected | ConnectFails => opens,
            Reused => opens && self.state.failed_connects == 0 && self.may_reuse(),
            SentPart => writes && up.is_some_and(|up| !up.has_begun),
            SentAll | WriteFails => writes,
            Interim | Busy | Overloaded | Limited | Head | Whole => answers,
            Garbage => answers || (is_passing && self.case.answer == Framing::Chunked),
            Part => is_passing && !(is_by_length && parts > 0),
            Last | LastAndMore => {
                is_passing && self.case.answer != Framing::UntilClose && !(is_by_length && parts == 0)
            }
            Eof => reads_up,
            Reset => reads_up,
            Tick => self.deadline().is_none_or(|(at, _)| self.state.now + SECOND < at),
            Elapse => self.deadline().is_some(),
        }
    }

    /// A connection that was asked for may be one that an earlier exchange left
    fn may_reuse(&self) -> bool {
        self.state.up.is_some_and(|up| up.is_reused)
    }
}
