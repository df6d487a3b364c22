//! One step, in one line.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::bodies::{Bodies, Content};
use crate::call::{Call, CloseMode, Command, Item};
use crate::machine::{Step, Wait};
use crate::outcome::{CallError, Delta, ErrorKind, Outcome, Usage};

/// A step of a call as it stands in a trace: one JSON object, displayed as one line
///
/// The same steps give the same text on every platform: instants are whole nanoseconds, and nothing in
/// it depends on an address, a hash seed or the order of a map.
///
/// | `step` | keys |
/// |---|---|
/// | `connect` | `link` |
/// | `close` | `link`, `mode`: `abort`, `keep` or `finish` |
/// | `retry` | `link`: that of the attempt that failed; only where the driver has a retry budget |
/// | `text`, `reasoning`, `refusal` | `choice`, and the content |
/// | `tool_call` | `choice`, `index`, `kind`, `id`, `name` |
/// | `tool_arguments` | `choice`, `index`, and the content |
/// | `bytes` | `bytes`, how many: what they were, the events before it have |
/// | `unknown` | `name`, and the content |
/// | `finished` | `finish_reason` |
/// | `wait` | `deadline`, `timer`, `link`, `read`, `write`, `supply` where it is not zero, `taken`; the first three may be null |
/// | `done` | `outcome`: `result`, `error`, `status`, `turn` and `timeline`, each as [`Outcome`] has it |
///
/// Content is `bytes`, its length, and under [`Bodies::Whole`] `text`, under [`Bodies::Hashed`] `hash`.
/// Where bodies are not whole, `id` and `name` are left out, and so is all that `done` quotes.
///
/// ```
/// use steadfast::machine::Step;
/// use steadfast::outcome::Delta;
/// use steadfast::call::Item;
/// use steadfast::trace::StepLine;
///
/// let step = Step::Deliver(Item::Delta(Delta::Text { choice: 0, text: "Hi" }));
/// assert_eq!(StepLine::of(&step).to_string(), r#"{"step":"text","choice":0,"bytes":2,"text":"Hi"}"#);
/// ```
pub struct StepLine<'a, 's> {
    step: &'a Step<'s, Call>,
    bodies: Bodies,
}

impl<'a, 's> StepLine<'a, 's> {
    /// The line of a step, with all that it says
    pub fn of(step: &'a Step<'s, Call>) -> Self {
        Self { step, bodies: Bodies::Whole }
    }

    /// The same, saying as little of bodies as `bodies` allows
    #[must_use]
    pub fn bodies(self, bodies: Bodies) -> Self {
        Self { bodies, ..self }
    }

    fn deliver<S: SerializeMap>(&self, item: &Item<'_>, out: &mut S) -> Result<(), S::Error> {
        let whole = self.bodies == Bodies::Whole;
        match item {
            Item::Delta(delta) => match *delta {
                Delta::Text { choice, text } => self.content("text", Some(choice), None, text, out),
                Delta::Reasoning { choice, text } => self.content("reasoning", Some(choice), None, text, out),
                Delta::Refusal { choice, text } => self.content("refusal", Some(choice), None, text, out),
                Delta::ToolArguments { choice, index, fragment } => {
                    self.content("tool_arguments", Some(choice), Some(index), fragment, out)
                }
                Delta::ToolCall { choice, index, kind, id, name } => {
                    out.serialize_entry("step", "tool_call")?;
                    out.serialize_entry("choice", &choice)?;
                    out.serialize_entry("index", &index)?;
                    out.serialize_entry("kind", &kind)?;
                    if whole {
                        out.serialize_entry("id", id)?;
                        out.serialize_entry("name", name)?;
                    }
                    Ok(())
                }
            },
            Item::Bytes(bytes) => {
                out.serialize_entry("step", "bytes")?;
                out.serialize_entry("bytes", &bytes.len())
            }
            Item::Unknown { name, data } => {
                out.serialize_entry("step", "unknown")?;
                if whole {
                    out.serialize_entry("name", name)?;
                }
                Content::of_text(data, self.bodies).entries(out)
            }
            Item::Finished(turn) => {
                out.serialize_entry("step", "finished")?;
                out.serialize_entry("finish_reason", &turn.finish_reason())
            }
        }
    }

    fn content<S: SerializeMap>(
        &self,
        step: &str,
        choice: Option<u32>,
        index: Option<u32>,
        text: &str,
        out: &mut S,
    ) -> Result<(), S::Error> {
        out.serialize_entry("step", step)?;
        for (name, number) in [("choice", choice), ("index", index)] {
            if let Some(number) = number {
                out.serialize_entry(name, &number)?;
            }
        }
        Content::of_text(text, self.bodies).entries(out)
    }
}

/// The line, without its end
impl fmt::Display for StepLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for StepLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for StepLine<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        match self.step {
            Step::Do(Command::Connect(id)) => {
                out.serialize_entry("step", "connect")?;
                out.serialize_entry("link", id)?;
            }
            Step::Do(Command::Retry(id)) => {
                out.serialize_entry("step", "retry")?;
                out.serialize_entry("link", id)?;
            }
            Step::Do(Command::Close(id, mode)) => {
                out.serialize_entry("step", "close")?;
                out.serialize_entry("link", id)?;
                let mode = match mode {
                    CloseMode::Abort => "abort",
                    CloseMode::Keep | CloseMode::KeepFor(_) => "keep",
                    CloseMode::Finish(_) => "finish",
                };
                out.serialize_entry("mode", mode)?;
            }
            Step::Deliver(item) => self.deliver(item, &mut out)?,
            Step::Wait(Wait { deadline, io, taken }) => {
                out.serialize_entry("step", "wait")?;
                out.serialize_entry("deadline", &deadline.map(|(at, _)| at))?;
                out.serialize_entry("timer", &deadline.map(|(_, timer)| timer))?;
                out.serialize_entry("link", &io.map(|io| io.link))?;
                out.serialize_entry("read", &io.is_some_and(|io| io.read))?;
                out.serialize_entry("write", &io.is_some_and(|io| io.write))?;
                if let Some(supply) = io.map(|io| io.supply).filter(|supply| *supply > 0) {
                    out.serialize_entry("supply", &supply)?;
                }
                out.serialize_entry("taken", taken)?;
            }
            Step::Done(outcome) => {
                out.serialize_entry("step", "done")?;
                if self.bodies == Bodies::Whole {
                    out.serialize_entry("outcome", &Whole(outcome))?;
                } else {
                    out.serialize_entry("outcome", &Brief(outcome))?;
                }
            }
        }
        out.end()
    }
}

/// An outcome, each of its parts once
struct Whole<'a>(&'a Outcome);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Outcome { result, timeline, .. } = self.0;
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("result", self.0.word())?;
        out.serialize_entry("error", &result.as_ref().err())?;
        out.serialize_entry("status", &result.as_ref().ok().map(|completion| completion.status.as_u16()))?;
        out.serialize_entry("turn", self.0.turn())?;
        out.serialize_entry("timeline", timeline)?;
        out.end()
    }
}

/// An outcome without anything that it quotes of a body
struct Brief<'a>(&'a Outcome);

impl Serialize for Brief<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Outcome { result, timeline, .. } = self.0;
        let turn = self.0.turn();
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("result", self.0.word())?;
        out.serialize_entry("error", &result.as_ref().err().map(BriefError))?;
        out.serialize_entry("status", &result.as_ref().ok().map(|completion| completion.status.as_u16()))?;
        out.serialize_entry("finish_reason", &turn.finish_reason())?;
        let tokens = |count: fn(&Usage) -> Option<u64>| turn.usage.as_ref().and_then(count);
        out.serialize_entry("input_tokens", &tokens(|usage| usage.input_tokens))?;
        out.serialize_entry("output_tokens", &tokens(|usage| usage.output_tokens))?;
        out.serialize_entry("timeline", timeline)?;
        out.end()
    }
}

/// An error's kind and its numbers
struct BriefError<'a>(&'a CallError);

impl Serialize for BriefError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CallError { kind, billing, retry_after, .. } = self.0;
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("kind", kind.name())?;
        out.serialize_entry("billing", billing)?;
        out.serialize_entry("retry_after", &retry_after.map(|pause| pause.as_secs_f64()))?;
        if let ErrorKind::Timeout(timeout) = kind {
            out.serialize_entry("timeout", timeout)?;
        }
        if let ErrorKind::Status(error) = kind {
            out.serialize_entry("status", &error.status.as_u16())?;
        }
        out.end()
    }
}
