//! The parts of an answer that open, grow and stop by number, and the tool calls among them.

use serde_json::value::RawValue;

use super::Malformed;
use super::findings::{Finding, Findings};
use super::json;
use super::tools::{Fragment, Tools};

/// The parts that have started and not stopped
///
/// A tool call's arguments come whole where it starts, or in pieces after an empty object there,
/// which stands only if no piece follows.
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

const EMPTY_OBJECT: &str = "{}";

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
                        findings.push_arguments(data, 0, number, raw);
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
        let number = self.tools.open(data, findings, 0, call)?;
        if let Some(arguments) = call.arguments {
            findings.push_arguments(data, 0, number, arguments);
        }
        Ok(())
    }

    /// Stops the part of that number
    pub fn stop(&mut self, findings: &mut Findings, index: u32) {
        self.stop_where(findings, |block| block.index == index);
    }

    /// Stops every part
    pub fn stop_all(&mut self, findings: &mut Findings) {
        self.stop_where(findings, |_| true);
    }

    /// Forgets the open parts as if they had never started; their calls stay
    pub fn abandon(&mut self) {
        self.open.clear();
    }

    fn stop_where(&mut self, findings: &mut Findings, stops: impl Fn(&Block) -> bool) {
        self.open.retain(|block| {
            let stopped = stops(block);
            if let Some(Call { number, arguments: Arguments::EmptyObject }) = block.call
                && stopped
            {
                let fragment = findings.owned(EMPTY_OBJECT);
                findings.push(Finding::ToolArguments { choice: 0, index: number, fragment });
            }
            !stopped
        });
    }
}
