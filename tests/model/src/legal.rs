//! What can happen next.

use steadfast::call::Shape;
use steadfast::dialect::Dialect;

use crate::model::Model;
use crate::state::{Begun, Phase, Sent};
use crate::terms::{Framing, Input, TICK};

impl Model<'_> {
    /// Whether `input` can happen now: to the driver by its contract, and on the wire
    pub fn allows(&self, input: Input) -> bool {
        use Input::*;
        let state = &self.state;
        let deadline = self.deadline().map(|(at, _)| at);
        let reads = self.is_open() && !state.item_out;
        let (is_waiting, half_head) = match state.phase {
            Phase::Waiting { half_head } => (true, half_head),
            _ => (false, false),
        };
        let (begun, reads_body) = match &state.phase {
            Phase::Streaming(stream) if !stream.is_unary => (Some(stream.begun), false),
            Phase::Streaming(_) | Phase::Reading => (None, reads),
            _ => (None, false),
        };
        let between_events = reads && begun == Some(None);
        match input {
            _ if state.phase == Phase::Over => input == Cancel,
            Start | StartLate => state.phase == Phase::Idle,
            Cancel => true,
            _ if state.phase == Phase::Idle => false,
            Taken | ConsumerFails => state.item_out,
            Tick => deadline.is_none_or(|at| state.now + TICK < at),
            Oversleep => deadline.is_some_and(|at| at > state.now),
            Elapse => deadline.is_some(),
            Connected | Refused => state.phase == Phase::Connecting,
            Reused => state.phase == Phase::Connecting && state.link == 1,
            SentPart => self.writes() && state.sent == Sent::Nothing,
            SentAll | WriteFails => self.writes(),
            StreamHead => reads && is_waiting && self.case.shape != Shape::Unary,
            Interim | HalfHead | UnaryHead | Busy | BusyHead | Limited | LimitedLong | Bad | BusyFinal
            | BadAgain | Quota => reads && is_waiting && !half_head,
            Body if matches!(state.phase, Phase::Refused { .. }) => reads,
            Body | BodyOverload | BodyNotJson => reads_body,
            RestDelta => reads && begun == Some(Some(Begun::Half)),
            LineEnd => reads && begun == Some(Some(Begun::WithoutLineEnd)),
            Marker | LengthMarker | MarkerAndEnd => between_events && self.case.dialect != Dialect::Ollama,
            Usage => between_events && matches!(self.case.dialect, Dialect::OpenAiChat | Dialect::Gemini),
            Sentinel => between_events && self.case.dialect != Dialect::Gemini,
            TwoDeltas if self.case.dialect == Dialect::Gemini => between_events && !self.is_marked(),
            Delta | TwoDeltas | HalfDelta | OpenDelta | Comment | DeltaToEnd | Overload | Invalid
            | NotJson => between_events,
            BodyEnd | BodyEndAndMore => reads && begun.is_some() && self.case.framing == Framing::Chunked,
            Eof | Cut | Reset => reads,
            Supply | SupplyMuch | SupplyEnd | SupplyFails => self.wants() > 0,
            RawByte => between_events,
            Thought => between_events,
            Late => state.link > 1 || matches!(state.phase, Phase::Pausing { .. }),
        }
    }
}
