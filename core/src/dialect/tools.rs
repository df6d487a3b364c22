//! Which tool call a fragment belongs to (rule STR-8).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Malformed;
use super::findings::{Finding, Findings};
use super::json::{self, JsonStr, Member};
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

/// A tool call in the form that OpenAI Chat gave to others
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    index: JsonStr<'a>,
    id: JsonStr<'a>,
    function: Member<Function<'a>>,
    custom: Member<Custom<'a>>,
}

/// A function and its arguments
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: JsonStr<'a>,
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Custom<'a> {
    #[serde(borrow)]
    name: JsonStr<'a>,
    input: Option<&'a RawValue>,
}

impl<'a> ToolCall<'a> {
    /// What it says
    ///
    /// Errors: [`Malformed`] where the function is no object.
    pub(super) fn fragment(&self) -> Result<Fragment<'a>, Malformed> {
        let fragment = Fragment { key: self.index.index(), id: self.id, ..Fragment::default() };
        Ok(match self.custom.present()? {
            Some(Custom { name, input }) => {
                Fragment { kind: ToolKind::Custom, name, arguments: input, ..fragment }
            }
            None => {
                let Function { name, arguments } = self.function.object()?;
                Fragment { name, arguments, ..fragment }
            }
        })
    }
}

#[derive(Debug)]
struct Call {
    key: Option<u32>,
    kind: ToolKind,
    id: String,
    name: String,
    /// Whether any of its arguments came
    argued: bool,
}

/// More tool calls than any model makes in one answer; what a peer sends beyond is refused
const MAX_CALLS: u32 = 4096;

impl Tools {
    /// The position of the call that was opened last
    pub(super) fn newest(&self) -> Option<u32> {
        u32::try_from(self.calls.len()).ok()?.checked_sub(1)
    }

    /// Takes in a fragment: opens the call that it is the first of, and adds its arguments
    ///
    /// Fragments join by number, and those without one join the last call. Another call opens with a
    /// new id and a name and, since some servers send neither ids nor numbers that differ, with
    /// another name after arguments.
    ///
    /// Errors: [`Malformed`] past the cap on calls, and where an id, a name or arguments are no text.
    pub fn take(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        fragment: Fragment<'_>,
    ) -> Result<(), Malformed> {
        let Fragment { id, name, arguments, .. } = fragment.readable()?;
        let index = match self.position(fragment) {
            Some(index) => {
                let call = &mut self.calls[index as usize];
                let late_id = if call.id.is_empty() { id } else { JsonStr::default() };
                let late_name = if call.name.is_empty() { name } else { JsonStr::default() };
                if !late_id.is_empty() || !late_name.is_empty() {
                    late_id.unescape_into(&mut call.id);
                    late_name.unescape_into(&mut call.name);
                    let kind = call.kind;
                    push_call(data, findings, choice, index, kind, [late_id, late_name]);
                }
                index
            }
            None if fragment.is_empty() => return Ok(()),
            None => self.open(data, findings, choice, fragment)?,
        };
        self.last = index;
        self.add(data, findings, choice, index, arguments)
    }

    /// Takes in a call that comes whole, whatever came before
    ///
    /// Errors: as [`Tools::take`].
    pub fn whole(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        call: Fragment<'_>,
    ) -> Result<(), Malformed> {
        self.last = self.open(data, findings, choice, call)?;
        self.add(data, findings, choice, self.last, call.arguments)
    }

    /// Opens a call, whatever came before, without its arguments; returns its number
    ///
    /// Errors: [`Malformed`] past the cap on calls, and where its id or name is no text.
    pub fn open(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        fragment: Fragment<'_>,
    ) -> Result<u32, Malformed> {
        let Fragment { key, kind, id, name, .. } = fragment.readable()?;
        let index = u32::try_from(self.calls.len()).unwrap_or(MAX_CALLS);
        if index >= MAX_CALLS {
            return Err(Malformed { reason: format!("more than {MAX_CALLS} tool calls") });
        }
        let call = Call { key, kind, id: id.to_string(), name: name.to_string(), argued: false };
        self.calls.push(call);
        push_call(data, findings, choice, index, kind, [id, name]);
        Ok(index)
    }

    fn add(
        &mut self,
        data: &str,
        findings: &mut Findings,
        choice: u32,
        index: u32,
        arguments: Option<&RawValue>,
    ) -> Result<(), Malformed> {
        let Some(raw) = arguments else { return Ok(()) };
        self.calls[index as usize].argued |= !json::is_empty_string(raw);
        findings.push_arguments(data, choice, index, raw)
    }

    /// The number of the call that `fragment` continues; `None` if it opens one
    fn position(&self, fragment: Fragment<'_>) -> Option<u32> {
        let Fragment { key, id, name, .. } = fragment;
        // A call has one name: another one, once arguments came, is that of another call.
        let goes_on =
            |call: &Call| !call.argued || name.is_empty() || call.name.is_empty() || name.is(&call.name);
        if key.is_none() && id.is_empty() {
            let last = self.calls.get(self.last as usize)?;
            return goes_on(last).then_some(self.last);
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
        (!another && goes_on(call)).then_some(index)
    }
}

impl Fragment<'_> {
    /// The fragment, whose id and name must be texts
    fn readable(self) -> Result<Self, Malformed> {
        self.id.text().and(self.name.text())?;
        Ok(self)
    }

    /// Whether it says nothing of any call
    pub(super) fn is_empty(&self) -> bool {
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
