//! The parts of an answer that open, grow and stop by number, and the tool calls among them.

use serde_json::value::RawValue;

use super::Malformed;
use super::findings::{Finding, Findings};
use super::json;
use super::tools::{Fragment, Tools};

/// The parts that have started and not stopped
///
/// A tool call's arguments come whole where it starts, or in pieces after an empty object there,
/// which stands only if no piece follows and the part stops.
#[derive(Debug, Default)]
pub struct Blocks {
    open: Vec<Block>,
    tools: Tools,
}

#[derive(Debug)]
struct Block {
    index: u32,
    call: Option<Call>,
}

/// The tool call that an open part is
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u32,
    arguments: Arguments,
}

/// What has come of a call's arguments
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arguments {
    Nothing,
    /// Stands only if no piece follows
    EmptyObject,
    Whole,
    Pieces,
}

impl Call {
    fn is_without_arguments(&self) -> bool {
        matches!(self.arguments, Arguments::Nothing | Arguments::EmptyObject)
    }
}

const EMPTY_OBJECT: &str = "{}";

const OPENING_BRACE: &str = "{";

fn push_arguments(findings: &mut Findings, index: u32, arguments: &str) {
    let fragment = findings.owned(arguments);
    findings.push(Finding::ToolArguments { choice: 0, index, fragment });
}

/// Whether a call's arguments are empty, however a gateway spells that: some languages have one type
/// for lists and for objects
fn is_empty(arguments: &RawValue) -> bool {
    matches!(arguments.get().as_bytes(), [b'{', inner @ .., b'}'] | [b'[', inner @ .., b']'] if inner.trim_ascii().is_empty())
}

/// More parts than any answer has open at a time; what a peer sends beyond is refused
const MAX_OPEN: usize = 1024;

impl Blocks {
    /// Whether every part that started has stopped
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The position of the tool call that was opened last
    pub fn newest(&self) -> Option<u32> {
        self.tools.newest()
    }

    /// Starts a part, in place of one of the same number, with the tool call that it is
    ///
    /// Errors: [`Malformed`] past the cap on open parts or on calls.
    pub fn start(
        &mut self,
        data: &str,
        findings: &mut Findings,
        index: u32,
        call: Option<Fragment<'_>>,
    ) -> Result<(), Malformed> {
        if self.open.len() == MAX_OPEN {
            return Err(Malformed { reason: format!("more than {MAX_OPEN} open content blocks") });
        }
        let call = match call {
            Some(call) => {
                let number = self.tools.open(data, findings, 0, Fragment { key: Some(index), ..call })?;
                let arguments = match call.arguments {
                    None => Arguments::Nothing,
                    Some(raw) if json::is_empty_string(raw) => Arguments::Nothing,
                    Some(raw) if is_empty(raw) => Arguments::EmptyObject,
                    Some(raw) => {
                        findings.push_arguments(data, 0, number, raw)?;
                        Arguments::Whole
                    }
                };
                Some(Call { number, arguments })
            }
            None => None,
        };
        self.open.retain(|block| block.index != index);
        self.open.push(Block { index, call });
        Ok(())
    }

    /// Adds to the tool call that an open part is: a piece of its arguments, an id or name come late
    ///
    /// Returns whether there is one. Errors: [`Malformed`] past the cap on calls.
    pub fn grow(
        &mut self,
        data: &str,
        findings: &mut Findings,
        index: u32,
        fragment: Fragment<'_>,
    ) -> Result<bool, Malformed> {
        let block = self.open.iter_mut().find(|block| block.index == index);
        let Some(call) = block.and_then(|block| block.call.as_mut()) else { return Ok(false) };
        let piece = fragment.arguments.filter(|raw| {
            call.arguments != Arguments::Whole && raw.get() != "null" && !json::is_empty_string(raw)
        });
        match piece {
            Some(raw) if raw.get().starts_with('{') => call.arguments = Arguments::Whole,
            Some(_) => call.arguments = Arguments::Pieces,
            None => {}
        }
        self.tools.take(data, findings, 0, Fragment { key: Some(index), arguments: piece, ..fragment })?;
        Ok(true)
    }

    /// Takes in a tool call that comes whole
    ///
    /// Errors: [`Malformed`] past the cap on calls.
    pub fn whole(
        &mut self,
        data: &str,
        findings: &mut Findings,
        call: Fragment<'_>,
    ) -> Result<(), Malformed> {
        self.tools.whole(data, findings, 0, call)
    }

    /// Adds the arguments of the tool call that an open part is, unless some came
    ///
    /// Errors: [`Malformed`] where the arguments are no text.
    pub fn fill(
        &mut self,
        data: &str,
        findings: &mut Findings,
        index: u32,
        arguments: Option<&RawValue>,
    ) -> Result<(), Malformed> {
        let block = self.open.iter_mut().find(|block| block.index == index);
        let Some(call) = block.and_then(|block| block.call.as_mut()) else { return Ok(()) };
        if let Some(raw) = arguments.filter(|_| call.is_without_arguments()) {
            call.arguments = Arguments::Whole;
            findings.push_arguments(data, 0, call.number, raw)?;
        }
        Ok(())
    }

    /// The tool call that an open part is came whole, as far as it goes
    pub fn settle(&mut self, findings: &mut Findings, index: u32) {
        for call in
            self.open.iter_mut().filter(|block| block.index == index).filter_map(|block| block.call.as_mut())
        {
            if call.arguments == Arguments::EmptyObject {
                call.arguments = Arguments::Whole;
                push_arguments(findings, call.number, EMPTY_OBJECT);
            }
        }
    }

    /// Stops the part of that number; returns whether it is a tool call
    pub fn stop(&mut self, findings: &mut Findings, index: u32) -> bool {
        self.settle(findings, index);
        let Some(at) = self.open.iter().position(|block| block.index == index) else { return false };
        self.open.remove(at).call.is_some()
    }

    /// The answer ends before its open parts have stopped
    ///
    /// A tool call without arguments may be one that was cut before them: it gets the opening brace
    /// alone, so that nobody takes it for whole.
    pub fn cut(&mut self, findings: &mut Findings) {
        for block in self.open.drain(..) {
            if let Some(call) = block.call.filter(Call::is_without_arguments) {
                push_arguments(findings, call.number, OPENING_BRACE);
            }
        }
    }
}
