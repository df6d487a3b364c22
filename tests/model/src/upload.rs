//! A request's body that is read as it goes out.

use steadfast::body::WINDOW_BYTES;

use crate::model::{Model, Retry};
use crate::mutation::Mutation;
use crate::state::{Phase, Sent};
use crate::terms::{Input, Mode, Outcome, Upload, much_of};

impl Model<'_> {
    /// How much of the body is to be read: none before what is there is out, none for an answer that is
    /// there already, and none while more than half of the window is on its way (RTY-9, INV-8)
    pub(crate) fn wants(&self) -> usize {
        let state = &self.state;
        let is_awaited = match &state.phase {
            Phase::Waiting { .. } | Phase::Reading => true,
            Phase::Streaming(stream) => stream.marked.is_none(),
            _ => false,
        };
        let is_left = self.case.upload != Upload::Whole && !state.body_over;
        if !is_awaited || !is_left || state.sent != Sent::All || state.write_failed {
            return 0;
        }
        if state.held > WINDOW_BYTES / 2 && !self.is(Mutation::WindowNeverFull) {
            0
        } else {
            WINDOW_BYTES.saturating_sub(state.held)
        }
    }

    /// The body is read on
    pub(crate) fn supply(&mut self, input: Input) {
        use Input::{Supply, SupplyEnd, SupplyFails};
        const END: usize = "0\r\n\r\n".len();
        let bytes = match input {
            Supply => 1,
            SupplyEnd | SupplyFails => 0,
            _ => much_of(self.wants()),
        };
        let state = &mut self.state;
        state.body_read = true;
        state.supplied += bytes;
        state.body_over = input == SupplyEnd;
        let is_chunked = matches!(self.case.upload, Upload::Chunked | Upload::ChunkedOnce);
        let is_wrong = !is_chunked && (state.supplied > 2 || (state.body_over && state.supplied < 2));
        if input == SupplyFails || is_wrong {
            return self.fail(Outcome::Consumer, Retry::Never, Mode::Abort);
        }
        state.held += match (is_chunked, bytes) {
            (false, _) => bytes,
            (true, 0) => END,
            (true, _) => format!("{bytes:x}\r\n\r\n").len() + bytes,
        };
    }

    /// Whether the request went out whole
    pub(crate) fn is_sent(&self) -> bool {
        let is_over = self.case.upload == Upload::Whole || self.state.body_over;
        self.state.sent == Sent::All && self.state.held == 0 && is_over
    }
}
