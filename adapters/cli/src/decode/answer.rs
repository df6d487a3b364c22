//! The answer to a call: the call machine, driven over the recorded bytes.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::ser::Serializer;
use steadfast::call::{Call, Env, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::outcome::{AttemptRecord, CallError, Choice, Note, Outcome, ToolCall, Usage};
use steadfast::time::Instant;
use steadfast_sim::{Endless, replay};

use super::response::Response;
use crate::args::DecodeArgs;
use crate::exit::Exit;
use crate::usage::UsageError;

/// How a call ends on the recorded bytes, and with what
pub(super) struct Answer {
    outcome: Outcome,
    /// Events of a kind that the dialect does not know
    unknown: u64,
}

impl Answer {
    /// The exit code of a call that ends so
    pub(super) fn exit(&self) -> Exit {
        Exit::from(&self.outcome)
    }
}

/// Drives a call over the recorded bytes
pub(super) fn decode(
    args: &DecodeArgs,
    dialect: Dialect,
    config: RequestConfig,
    recorded: Vec<u8>,
) -> Result<Answer, UsageError> {
    let request = Request::builder(args.method.clone(), "http://decode.invalid/").dialect(dialect);
    let request = if args.unary { request } else { request.stream() };
    let request = request.build().map_err(UsageError::Request)?;
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // The seed bears on pauses alone, and the same file is to give the same output.
    let env = Env { seed: 0, unix_at_origin: wall };
    let call = Call::new(request, config, env, Instant::ORIGIN);
    let mut unknown = 0;
    let outcome = replay(call, &mut Response::new(args, dialect, recorded), |item| match item {
        Item::Unknown { .. } => unknown += 1,
        Item::Delta(_) | Item::Bytes(_) | Item::Finished(_) => {}
    });
    let outcome = outcome.map_err(|Endless| UsageError::Endless)?;
    Ok(Answer { outcome, unknown })
}

/// The object that is printed
#[derive(Serialize)]
struct Printed<'a> {
    result: &'static str,
    error: Option<&'a CallError>,
    #[serde(flatten)]
    first: Part<'a>,
    usage: Option<&'a Usage>,
    choices: Vec<Other<'a>>,
    notes: &'a [Note],
    events: u64,
    unknown: u64,
    malformed: u64,
}

/// What one choice says
#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
    reasoning: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    refusal: &'a str,
    tool_calls: Vec<PrintedCall<'a>>,
    finish_reason: Option<&'a str>,
}

/// A choice beside the first
#[derive(Serialize)]
struct Other<'a> {
    index: u32,
    #[serde(flatten)]
    part: Part<'a>,
}

#[derive(Serialize)]
struct PrintedCall<'a> {
    /// None where the provider gave none
    id: Option<&'a str>,
    name: &'a str,
    arguments: &'a str,
    complete: bool,
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Outcome { result, timeline, .. } = &self.outcome;
        let turn = self.outcome.turn();
        let nothing = Choice::default();
        let first = turn.choices.iter().find(|choice| choice.index == 0);
        let others = turn.choices.iter().filter(|choice| choice.index != 0);
        let sum = |count: fn(&AttemptRecord) -> u64| timeline.attempts.iter().map(count).sum();
        let printed = Printed {
            result: self.outcome.word(),
            error: result.as_ref().err(),
            first: Part::of(first.unwrap_or(&nothing), &self.outcome),
            usage: turn.usage.as_ref(),
            choices: others
                .map(|choice| Other { index: choice.index, part: Part::of(choice, &self.outcome) })
                .collect(),
            notes: &timeline.notes,
            events: sum(|attempt| attempt.events),
            unknown: self.unknown,
            malformed: sum(|attempt| attempt.malformed),
        };
        printed.serialize(serializer)
    }
}

impl<'a> Part<'a> {
    fn of(choice: &'a Choice, outcome: &Outcome) -> Self {
        let call = |call: &'a ToolCall| PrintedCall {
            id: Some(call.id.as_str()).filter(|id| !id.is_empty()),
            name: &call.name,
            arguments: &call.arguments,
            complete: outcome.is_whole(call),
        };
        Self {
            text: &choice.text,
            reasoning: &choice.reasoning,
            refusal: &choice.refusal,
            tool_calls: choice.tool_calls.iter().map(call).collect(),
            finish_reason: choice.finish_reason.as_deref(),
        }
    }
}
