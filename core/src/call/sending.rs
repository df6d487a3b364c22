//! The request as it goes out: what the connection took, and what the driver read of it.

use http::HeaderMap;

use super::Call;
use super::credentials::Credentials;
use super::event::AttemptId;
use crate::http1;
use crate::machine::{Machine, Misuse, Supply};
use crate::outcome::{Billing, ErrorKind};

impl Call {
    /// The connection took so many bytes
    pub(super) fn sent(&mut self, id: AttemptId, sent: usize) -> Result<(), Misuse> {
        let outgoing = self.outgoing(id).iter().map(|part| part.len()).sum();
        let Some(attempt) = self.open(id)? else { return Ok(()) };
        if sent > outgoing {
            return Err(Misuse::SentTooMuch { sent, outgoing });
        }
        attempt.upload.took(sent);
        attempt.record.bytes_sent += sent as u64;
        if sent > 0 && !planted!(SentNotBilled) {
            self.billing = self.billing.max(Billing::MaybeBilled);
        }
        Ok(())
    }

    /// The driver has read on in the request
    pub(super) fn supplied(&mut self, id: AttemptId, supply: Supply<'_>) -> Result<(), Misuse> {
        let Some(attempt) = self.open(id)? else { return Ok(()) };
        let wanted = attempt.wants();
        if wanted == 0 || matches!(supply, Supply::Bytes(bytes) if bytes.len() > wanted) {
            return Err(Misuse::OutOfOrder(
                "more of the body came than was asked for: supply no more than Interest::supply says",
            ));
        }
        let supplied = match (supply, attempt.upload.has_head()) {
            (Supply::Head(fields), false) => {
                self.head_supplied(id, &fields);
                return Ok(());
            }
            (Supply::Bytes(_) | Supply::End, false) | (Supply::Head(_), true) => {
                return Err(Misuse::OutOfOrder(
                    "header fields come once and first: supply what a Feed gives, in its order",
                ));
            }
            (supply @ (Supply::Bytes(_) | Supply::End | Supply::Failed(_)), _) => {
                let has_head = attempt.upload.has_head();
                let supplied = attempt.upload.supply(supply);
                self.body_read |= has_head;
                supplied
            }
        };
        if let Err(message) = supplied {
            self.fail(ErrorKind::Consumer(message));
        }
        Ok(())
    }

    /// The header fields of the attempt are made: its head is whole
    fn head_supplied(&mut self, id: AttemptId, fields: &HeaderMap) {
        let head = match http1::with_fields(&self.request.head, fields) {
            Ok(head) => head,
            Err(error) => return self.fail(ErrorKind::Consumer(error.to_string())),
        };
        if planted!(FieldsOfEarlierAttemptKept) {
            self.request.head.clone_from(&head);
        }
        let secrets = Credentials::of_fields(fields);
        if let Some(recorder) = &mut self.recorder {
            recorder.hide(secrets.placeholders());
        }
        self.request.credentials.add_all(secrets);
        if let Ok(Some(attempt)) = self.open(id) {
            attempt.upload.set_head(head);
        }
    }
}
