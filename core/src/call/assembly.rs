//! The answer as it is put together from findings, within its cap.

use crate::dialect::findings::{Finding, Findings};
use crate::outcome::{Choice, ErrorKind, ProtocolError, Signature, ToolCall, Turn};

/// A turn under construction
#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) turn: Turn,
    /// Bytes that the turn holds, the room of its parts included
    bytes: usize,
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
            if matches!(finding, Finding::ToolCall { .. }) {
                // Many empty calls would otherwise weigh nothing.
                self.bytes += size_of::<ToolCall>();
            }
            self.bytes += delta.len();
            self.grown(max_bytes)?;
            self.turn.apply(&delta);
            return Ok(Absorbed::Delta);
        }
        match finding {
            Finding::Error(error) => return Err(ErrorKind::InBand(Box::new(error.clone()))),
            Finding::Blocked(reason) => return Err(ErrorKind::Blocked { reason: reason.clone() }),
            Finding::Unknown => return Ok(Absorbed::Unknown),
            Finding::Opened { .. } => {
                self.bytes += size_of::<Choice>();
                self.grown(max_bytes)?;
            }
            Finding::Signature { token, .. } => {
                self.bytes += size_of::<Signature>() + Findings::len_of(*token);
                self.grown(max_bytes)?;
            }
            Finding::Text { .. }
            | Finding::Reasoning { .. }
            | Finding::Refusal { .. }
            | Finding::ToolCall { .. }
            | Finding::ToolArguments { .. }
            | Finding::Finish { .. }
            | Finding::Identity { .. }
            | Finding::Usage { .. } => {}
        }
        finding.apply(&mut self.turn, findings, data);
        Ok(Absorbed::Silent)
    }

    fn grown(&self, max_bytes: usize) -> Result<(), ErrorKind> {
        if self.bytes > max_bytes {
            return Err(ErrorKind::Protocol(ProtocolError::BodyTooLarge { limit: max_bytes }));
        }
        Ok(())
    }
}
