//! What a driver tells that is no byte of HTTP/1.1.

use super::attempt::{AttemptPhase, PeerEnd, Transport};
use super::{AttemptId, Call, Fact, Inner};
use crate::machine::Misuse;
use crate::outcome::{Billing, ErrorKind};

impl Call {
    pub(super) fn fact<'e>(&mut self, fact: Fact<'e>) -> Result<&'e [u8], Misuse> {
        match fact {
            Fact::Head(id, head) => {
                let Some(attempt) = self.open(id)? else { return Ok(&[]) };
                if !matches!(attempt.phase, AttemptPhase::Waiting) {
                    return Err(Misuse::OutOfOrder(
                        "a second head came: feed Fact::Head once, for the final response",
                    ));
                }
                if attempt.record.bytes_received > 0 {
                    return Err(Misuse::OutOfOrder(
                        "a head came after bytes of HTTP/1.1: feed Received or facts, not both",
                    ));
                }
                attempt.http = Transport::Facts;
                self.billing = self.billing.max(Billing::MaybeBilled);
                self.input_of = id;
                self.head_arrived(head);
                Ok(&[])
            }
            Fact::Body(id, bytes) => {
                if !self.tail.is_empty() {
                    return Err(Misuse::Undrained);
                }
                self.received(id, bytes, true)
            }
            Fact::End(id) => {
                let Some(attempt) = self.open(id)? else { return Ok(&[]) };
                if matches!(attempt.http, Transport::Http1(_)) {
                    return Err(Misuse::OutOfOrder("a body ended before its head: feed Fact::Head first"));
                }
                attempt.peer_end.get_or_insert(PeerEnd::EndOfBody);
                Ok(&[])
            }
            Fact::RetryRefused(id) => {
                if id > self.last_id || id == AttemptId::NONE {
                    return Err(Misuse::UnknownLink);
                }
                if !self.asks_before_retries {
                    return Err(Misuse::OutOfOrder(
                        "a retry was refused that was not announced: call ask_before_retries first",
                    ));
                }
                self.retry_refused(id);
                Ok(&[])
            }
            Fact::ConsumerFailed(message) => {
                if !matches!(self.inner, Inner::Over | Inner::Ending(_)) {
                    self.fail(ErrorKind::Consumer(message.to_owned()));
                }
                Ok(&[])
            }
        }
    }
}
