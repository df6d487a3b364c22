//! Which of the response's id and model are known.

use super::findings::{Finding, Findings};
use super::json::JsonStr;

/// Remembers what has been said, because the first id and the first model stand
///
/// Ids of chunks change within one answer on some servers; they are informational.
#[derive(Debug, Default)]
pub struct Identity {
    has_id: bool,
    has_model: bool,
}

impl Identity {
    /// Adds a [`Finding::Identity`] with whatever of the two is new
    pub fn push(&mut self, data: &str, id: JsonStr<'_>, model: JsonStr<'_>, findings: &mut Findings) {
        let id = if self.has_id { JsonStr::default() } else { id };
        let model = if self.has_model { JsonStr::default() } else { model };
        if id.is_empty() && model.is_empty() {
            return;
        }
        self.has_id |= !id.is_empty();
        self.has_model |= !model.is_empty();
        let id = findings.span(data, id);
        let model = findings.span(data, model);
        findings.push(Finding::Identity { id, model });
    }
}
