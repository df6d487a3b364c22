//! `steadfast replay`: a recorded call once more, or under another configuration.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadfast::time::Instant;
use steadfast::trace::{Alternative, Finish, Line, Replay, Trace, WhatIf};
use steadfast_tokio::{ErrorKind, Outcome, Timeline};

use crate::args::ReplayArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::message::{failure, say};
use crate::output::{is_read, print, print_json};
use crate::usage::UsageError;

/// Runs the command
pub(crate) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    let overrides = args.overrides()?;
    let unreadable =
        |error: &dyn fmt::Display| UsageError::Unreadable { path: args.path(), error: error.to_string() };
    let trace = Trace::read(open(&args.file).map_err(|error| unreadable(&error))?);
    let trace = trace.map_err(|error| unreadable(&error))?;
    let mut log = Log { began: trace.began(), at: trace.began(), text: String::new(), steps: Vec::new() };
    let replay = trace.replay(|at, line| log.line(at, line));
    if args.what_if.is_empty() || !replay.is_identical() {
        is_read(if args.json { print_json(&log.report(&replay)) } else { print(&log.text(&replay)) })?;
    } else {
        let config = trace.config().with(&overrides).map_err(UsageError::from)?;
        let what_if = trace.what_if(config).map_err(|misuse| unreadable(&misuse))?;
        let compared = Compared { log: &log, replay: &replay, what_if: &what_if, settings: &args.what_if };
        is_read(if args.json { print_json(&compared.json()) } else { print(&compared.text()) })?;
    }
    match replay.finish {
        Finish::Whole => {}
        Finish::Truncated => say("the trace came to its bound in bytes: what is said is of the call so far"),
        Finish::Cut if replay.events == 0 => say("the trace was cut before its call began"),
        Finish::Cut => say("the trace was cut: what is said is of the call so far"),
    }
    Ok(match replay.finish {
        _ if !replay.is_identical() => Exit::Differs,
        Finish::Whole | Finish::Truncated => Exit::Completed,
        Finish::Cut => Exit::Truncated,
    })
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(path)?)))
}

/// What a replay went through
struct Log {
    began: Instant,
    /// The time of the last event
    at: Instant,
    text: String,
    steps: Vec<String>,
}

impl Log {
    fn line(&mut self, at: Instant, line: Line<'_>) {
        self.at = self.at.max(at);
        // A string takes all.
        _ = match line {
            Line::Event(event) => writeln!(self.text, "{} {}", since(self.began, at), harmless(event)),
            Line::Step(step) => {
                self.steps.push(step.to_owned());
                writeln!(self.text, "{:>11} {}", "", harmless(step))
            }
        };
    }

    fn text(&self, replay: &Replay) -> String {
        let Replay { events, steps, difference, outcome, .. } = replay;
        let mut text = self.text.clone();
        if let Some(outcome) = outcome {
            _ = writeln!(text, "\n{}\n", outcome.timeline);
        }
        match difference {
            None => _ = writeln!(text, "identical: {events} events, {steps} steps"),
            Some(difference) => {
                _ = writeln!(
                    text,
                    "differs at line {}:\n  recorded {}\n  replayed {}",
                    difference.line,
                    harmless(&difference.recorded),
                    harmless(&difference.replayed)
                );
            }
        }
        text
    }

    fn report<'a>(&'a self, replay: &'a Replay) -> Report<'a> {
        Report {
            identical: replay.is_identical(),
            trace: finish(replay.finish),
            events: replay.events,
            steps: self.steps.iter().filter_map(|step| serde_json::from_str(step).ok()).collect(),
            difference: replay.difference.as_ref().map(|difference| Differs {
                line: difference.line,
                recorded: &difference.recorded,
                replayed: &difference.replayed,
            }),
            timeline: replay.outcome.as_ref().map(|outcome| &outcome.timeline),
        }
    }
}

/// A replay for programs
#[derive(Serialize)]
struct Report<'a> {
    identical: bool,
    trace: &'static str,
    events: u64,
    /// JSON already, each as it stands in the trace
    steps: Vec<&'a RawValue>,
    difference: Option<Differs<'a>>,
    timeline: Option<&'a Timeline>,
}

#[derive(Serialize)]
struct Differs<'a> {
    line: u64,
    recorded: &'a str,
    replayed: &'a str,
}

/// The end of a call as it was recorded, and as it would have been
struct Compared<'a> {
    log: &'a Log,
    replay: &'a Replay,
    what_if: &'a WhatIf,
    settings: &'a [String],
}

impl Compared<'_> {
    fn text(&self) -> String {
        let recorded = match &self.replay.outcome {
            Some(outcome) => ending(outcome),
            None => format!("the trace ends at{}, before its call", since(self.log.began, self.log.at)),
        };
        let mut text = format!(
            "as recorded  {recorded}\nwhat if      {}\n             {}\n",
            self.settings.join(", "),
            self.alternative()
        );
        for (name, outcome) in [("as recorded", self.replay.outcome.as_ref()), ("what if", self.outcome())] {
            if let Some(outcome) = outcome {
                _ = write!(text, "\n{name}\n{}\n", outcome.timeline);
            }
        }
        text
    }

    /// How the call would have ended, and how much of that is known
    fn alternative(&self) -> String {
        let at = |instant| since(self.log.began, instant).trim_start().to_owned();
        let said = match &self.what_if.alternative {
            Alternative::Ended(outcome) => match self.what_if.known_until {
                None => return ending(outcome),
                Some(until) => {
                    let end = at(outcome.timeline.ended);
                    let by =
                        setting(outcome).map_or_else(|| ending(outcome), |setting| format!("by {setting}"));
                    return format!(
                        "still waiting at {}; would end at {end} {by} if nothing more came",
                        at(until)
                    );
                }
            },
            Alternative::AnotherConnection { at: when, number } => format!(
                "would ask for connection {number} at {}, of which the trace knows nothing",
                at(*when)
            ),
            Alternative::Endless { since } => {
                format!("still waiting at {}; would wait for ever if nothing more came", at(*since))
            }
        };
        match self.what_if.known_until {
            Some(until) if !matches!(self.what_if.alternative, Alternative::Endless { .. }) => {
                format!("{said}; what follows {} supposes that nothing more came", at(until))
            }
            Some(_) | None => said,
        }
    }

    fn outcome(&self) -> Option<&Outcome> {
        match &self.what_if.alternative {
            Alternative::Ended(outcome) => Some(outcome),
            Alternative::AnotherConnection { .. } | Alternative::Endless { .. } => None,
        }
    }

    fn json(&self) -> Value {
        let seconds = |at: Instant| (at - self.log.began).as_secs_f64();
        let (ends, at) = match &self.what_if.alternative {
            Alternative::Ended(outcome) => ("ended", outcome.timeline.ended),
            Alternative::AnotherConnection { at, .. } => ("another_connection", *at),
            Alternative::Endless { since } => ("endless", *since),
        };
        json!({
            "identical": true,
            "trace": finish(self.replay.finish),
            "recorded": self.replay.outcome,
            "what_if": {
                "ends": ends,
                "at": seconds(at),
                "known_until": self.what_if.known_until.map(seconds),
                "outcome": self.outcome(),
            },
        })
    }
}

/// The text with its control characters escaped: a peer's words cannot command the terminal
fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            _ = write!(harmless, "\\u{:04x}", u32::from(character));
        } else {
            harmless.push(character);
        }
    }
    harmless
}

const fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Whole => "whole",
        Finish::Truncated => "truncated",
        Finish::Cut => "cut",
    }
}

fn ending(outcome: &Outcome) -> String {
    failure(outcome)
        .unwrap_or_else(|| format!("completed in {:.3} s", outcome.timeline.elapsed().as_secs_f64()))
}

/// The setting whose bound ended the call
fn setting(outcome: &Outcome) -> Option<&'static str> {
    let error = outcome.result.as_ref().err()?;
    if let ErrorKind::Timeout(timeout) = &error.kind { Some(timeout.setting) } else { None }
}

/// The time since the call began, in a column of its own
fn since(began: Instant, at: Instant) -> String {
    let since: Duration = at - began;
    format!("{:>10.3}s", since.as_secs_f64())
}
