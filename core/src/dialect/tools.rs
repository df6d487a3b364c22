//! Which tool call a fragment belongs to (rule STR-8).

use serde_json::value::RawValue;

use super::Malformed;
use super::findings::{Finding, Findings};
use super::json::{self, JsonStr};
use crate::outcome::ToolKind;

/// The tool calls of one answer, numbered in the order in which they open
#[derive(Debug, Default)]
pub struct Tools {
    calls: Vec<Call>,
    last: u32,
}

/// A piece of a tool call; everything but the piece itself may be missing
#[derive(Clone, Copy, Default)]
pub struct Fragment<'a> {
    /// The provider's own number of the call
    pub key: Option<u32>,
    /// Who runs the tool, and on what
    pub kind: ToolKind,
    /// The provider's id of the call
    pub id: JsonStr<'a>,
    /// The tool's name
    pub name: JsonStr<'a>,
    /// Arguments, or a piece of them
    pub arguments: Option<&'a RawValue>,
}

#[derive(Debug)]
struct Call {
    key: Option<u32>,
    kind: ToolKind,
    id: String,
    named: bool,
}

/// More tool calls than any model makes in one answer; what a peer sends beyond is refused
const MAX_CALLS: u32 = 4096;

impl Tools {
    /// Takes in a fragment: opens the call that it is the first of, and adds its arguments
    ///
    /// Errors: [`Malformed`] past the cap on calls.
    pub fn take(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        fragment: Fragment<'_>,
    ) -> Result<(), Malformed> {
        let Fragment { id, name, arguments, .. } = fragment;
        let index = match self.position(fragment) {
            Some(index) => {
                let call = &mut self.calls[index as usize];
                let late_id = if call.id.is_empty() { id } else { JsonStr::default() };
                let late_name = if call.named { JsonStr::default() } else { name };
                if !late_id.is_empty() || !late_name.is_empty() {
                    late_id.unescape_into(&mut call.id);
                    call.named |= !late_name.is_empty();
                    let kind = call.kind;
                    push_call(data, findings, choice, index, kind, [late_id, late_name]);
                }
                index
            }
            None if fragment.is_empty() => return Ok(()),
            None => self.open(data, findings, choice, fragment)?,
        };
        self.last = index;
        if let Some(raw) = arguments {
            findings.push_arguments(data, choice, index, raw);
        }
        Ok(())
    }

    /// Takes in a call that comes whole, whatever came before, unless it says nothing
    ///
    /// Errors: [`Malformed`] past the cap on calls.
    pub fn whole(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        call: Fragment<'_>,
    ) -> Result<(), Malformed> {
        if call.is_empty() {
            return Ok(());
        }
        self.last = self.open(data, findings, choice, call)?;
        if let Some(raw) = call.arguments {
            findings.push_arguments(data, choice, self.last, raw);
        }
        Ok(())
    }

    /// Opens a call, whatever came before, without its arguments; returns its number
    ///
    /// Errors: [`Malformed`] past the cap on calls.
    pub fn open(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        fragment: Fragment<'_>,
    ) -> Result<u32, Malformed> {
        let Fragment { key, kind, id, name, .. } = fragment;
        let index = u32::try_from(self.calls.len()).unwrap_or(MAX_CALLS);
        if index >= MAX_CALLS {
            return Err(Malformed { reason: format!("more than {MAX_CALLS} tool calls") });
        }
        self.calls.push(Call { key, kind, id: id.to_string(), named: !name.is_empty() });
        push_call(data, findings, choice, index, kind, [id, name]);
        Ok(index)
    }

    /// The number of the call that `fragment` continues; `None` if it opens one
    fn position(&self, fragment: Fragment<'_>) -> Option<u32> {
        let Fragment { key, id, name, .. } = fragment;
        if key.is_none() && id.is_empty() {
            return (!self.calls.is_empty()).then_some(self.last);
        }
        let same_key = |call: &Call| key.is_none() || call.key == key;
        let same_id = |call: &Call| !id.is_empty() && id.is(&call.id);
        let latest =
            |same: &dyn Fn(&Call) -> bool| (0_u32..).zip(&self.calls).filter(|(_, call)| same(call)).last();
        let named = latest(&|call| same_key(call) && same_id(call));
        if named.is_some() || key.is_none() {
            return named.map(|(index, _)| index);
        }
        let (index, call) = latest(&same_key)?;
        // Some servers give every call the same number: a new id with a name is a new call.
        let another = !id.is_empty() && !name.is_empty() && !call.id.is_empty();
        (!another).then_some(index)
    }
}

impl Fragment<'_> {
    /// Whether it says nothing of any call
    fn is_empty(&self) -> bool {
        let no_arguments = self.arguments.is_none_or(json::is_empty_string);
        self.id.is_empty() && self.name.is_empty() && no_arguments
    }
}

fn push_call(
    data: &str,
    findings: &mut Findings,
    choice: u32,
    index: u32,
    kind: ToolKind,
    [id, name]: [JsonStr<'_>; 2],
) {
    let id = findings.span(data, id);
    let name = findings.span(data, name);
    findings.push(Finding::ToolCall { choice, index, kind, id, name });
}
