//! The answer as it is put together from findings, within its cap.

use crate::dialect::findings::{Finding, Findings};
use crate::outcome::{Choice, ErrorKind, ProtocolError, Signature, ToolCall, Turn};

/// What the parts of a turn count for beside their text: their sizes in memory on common platforms, and the
/// same on every platform, or a call near its cap would end elsewhere (INV-9)
const TOOL_CALL_BYTES: usize = 80;
const CHOICE_BYTES: usize = 128;
const SIGNATURE_BYTES: usize = 48;

const _: () = assert!(size_of::<ToolCall>() <= TOOL_CALL_BYTES);
const _: () = assert!(size_of::<Choice>() <= CHOICE_BYTES);
const _: () = assert!(size_of::<Signature>() <= SIGNATURE_BYTES);

/// A turn under construction
#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) turn: Turn,
    /// Bytes that the turn holds of deltas, the room of its parts included
    said: usize,
    /// Bytes that it holds of the provider's own words: id, model, usage, finish reasons
    words: usize,
}

/// What a finding is to the consumer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absorbed {
    /// A delta: to be delivered
    Delta,
    /// An event of an unknown kind: to be delivered, though not part of the answer
    Unknown,
    /// Taken in, and nothing to deliver
    Silent,
}

impl Assembly {
    /// Bytes that the turn holds
    pub(super) fn bytes(&self) -> usize {
        self.said + self.words
    }

    /// Adds a finding to the turn
    ///
    /// Errors: what the finding says has gone wrong, or that the turn passes `max_bytes`.
    pub(super) fn absorb(
        &mut self,
        finding: &Finding,
        findings: &Findings,
        data: &[u8],
        max_bytes: usize,
    ) -> Result<Absorbed, ErrorKind> {
        if let Some(delta) = finding.delta(findings, data) {
            let is_free = matches!(finding, Finding::Reasoning { .. }) && planted!(ReasoningNotCounted);
            // Many empty calls would otherwise weigh nothing.
            let room = if matches!(finding, Finding::ToolCall { .. }) { TOOL_CALL_BYTES } else { 0 };
            let more = if is_free { 0 } else { room + delta.len() };
            self.grown(more, max_bytes)?;
            self.said += more;
            self.turn.apply(&delta);
            return Ok(Absorbed::Delta);
        }
        match finding {
            Finding::Error(error) => return Err(ErrorKind::InBand(Box::new(error.clone()))),
            Finding::Blocked(reason) => return Err(ErrorKind::Blocked { reason: reason.clone() }),
            Finding::Unknown => return Ok(Absorbed::Unknown),
            // Every answer has a first choice.
            Finding::Opened { .. } => {
                let more = if self.turn.choices.is_empty() { 0 } else { CHOICE_BYTES };
                self.grown(more, max_bytes)?;
                self.said += more;
            }
            Finding::Finish { .. }
            | Finding::Identity { .. }
            | Finding::Usage { .. }
            | Finding::ReasoningMember(_) => {
                self.grown(finding.words(), max_bytes)?;
                finding.apply(&mut self.turn, findings, data);
                self.words = self.turn.words();
                return Ok(Absorbed::Silent);
            }
            Finding::Signature { token, .. } => {
                let more = SIGNATURE_BYTES + Findings::len_of(*token);
                self.grown(more, max_bytes)?;
                self.said += more;
            }
            Finding::Text { .. }
            | Finding::Reasoning { .. }
            | Finding::Refusal { .. }
            | Finding::ToolCall { .. }
            | Finding::ToolArguments { .. } => {}
        }
        finding.apply(&mut self.turn, findings, data);
        Ok(Absorbed::Silent)
    }

    /// Errors: with `more` the turn passes `max_bytes`.
    fn grown(&self, more: usize, max_bytes: usize) -> Result<(), ErrorKind> {
        if self.bytes() + more > max_bytes {
            return Err(ErrorKind::Protocol(ProtocolError::BodyTooLarge { limit: max_bytes }));
        }
        Ok(())
    }
}
