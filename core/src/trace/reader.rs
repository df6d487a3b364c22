//! Reading a trace.

use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::bodies::Bodies;
use super::event::{EventLine, Happened, Lacking};
use super::format::{Counts, Header, Mark, VERSION};
use crate::call::{Call, DescriptionError, Request};
use crate::config::RequestConfig;
use crate::time::Instant;

/// A trace that was read, and can be replayed
#[derive(Clone, Debug)]
pub struct Trace {
    pub(super) header: Header,
    pub(super) request: Request,
    pub(super) lines: Vec<(u64, Recorded)>,
    finish: Finish,
}

/// One line of a trace
#[derive(Clone, Debug)]
pub(super) enum Recorded {
    Event(Box<Happened>),
    /// As it stands there: steps are compared by their text
    Step(Box<str>),
}

/// How a trace ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// With the end of its call
    Whole,
    /// At its bound in bytes; the call went on
    Truncated,
    /// Without a word: the call was dropped, its program died, or the file is not all there
    Cut,
}

/// A trace that cannot be read
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// The number of the line, from 1
    pub line: u64,
    /// What is wrong there
    pub problem: Problem,
}

/// What is wrong in a line of a trace
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Reading failed
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The trace is larger than [`Trace::MAX_BYTES`]
    #[error("the trace is larger than {limit} bytes")]
    TooLarge {
        /// The bound
        limit: u64,
    },
    /// The first line is not that of a trace
    #[error("this is no trace: it has to begin with a line that holds \"trace\" and a version")]
    NotATrace,
    /// The trace has a form that is not known here
    #[error("this is a trace of version {0}, and only version {VERSION} is known here")]
    Version(u32),
    /// The trace does not hold the bytes that came
    #[error(
        "bodies are not whole in this trace but recorded as {0}: only a trace of whole bodies can be replayed"
    )]
    NotWhole(Bodies),
    /// The line is not JSON, or lacks a key, or has a value that it cannot have
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    /// The request cannot be one
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// An event lacks its bytes, or has more or fewer of them than it says
    #[error("the bytes of the event are missing, or not as many as it says")]
    Bytes,
    /// The head of a response cannot be one
    #[error("no response has a head like that")]
    Head,
    /// The line is none that a trace has
    #[error("the line is neither an event nor a step nor an end")]
    Unknown,
    /// Something follows the end of the trace
    #[error("the trace has ended before this line")]
    AfterEnd,
    /// The end counts other lines than there are
    #[error(
        "there are {events} events and {steps} steps before this line, which counts others: lines are missing or added"
    )]
    Count {
        /// The events that are there
        events: u64,
        /// The steps that are there
        steps: u64,
    },
}

impl Trace {
    /// The most bytes of a trace that is read: 256 MiB
    pub const MAX_BYTES: u64 = 256 << 20;

    /// Reads a trace
    ///
    /// One whose last line is not all there is read without it.
    ///
    /// Errors: the first line that no trace has, by its number.
    pub fn read(reader: impl BufRead) -> Result<Self, TraceError> {
        let mut lines = Lines { reader: reader.take(Self::MAX_BYTES + 1), number: 0, line: Vec::new() };
        let is_there = lines.advance()?;
        let header = header(&lines.line).map_err(|problem| lines.error(problem))?;
        let request = header.request.blank().map_err(|error| lines.error(error.into()))?;
        let mut trace = Self { header, request, lines: Vec::new(), finish: Finish::Cut };
        let (mut counts, mut is_over) = (Counts::default(), !is_there);
        while !is_over && lines.advance()? {
            let read = if trace.finish == Finish::Cut {
                trace.take(lines.number, &lines.line, &mut counts)
            } else {
                Err(Problem::AfterEnd)
            };
            is_over = !lines.line.ends_with(b"\n");
            match read {
                // What was being written when the program died
                Err(Problem::Malformed(_)) if is_over => {}
                read => read.map_err(|problem| lines.error(problem))?,
            }
        }
        Ok(trace)
    }

    /// How it ends
    pub fn finish(&self) -> Finish {
        self.finish
    }

    /// When the recorded call was made, by its driver's clock
    pub fn began(&self) -> Instant {
        self.header.began
    }

    /// The configuration of the recorded call
    pub fn config(&self) -> &RequestConfig {
        &self.header.config
    }

    /// The request of the recorded call, its bytes blanked and its credentials replaced
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// A call like the recorded one before it began
    pub fn call(&self) -> Call {
        self.call_with(self.header.config)
    }

    /// The same under another configuration
    pub(super) fn call_with(&self, config: RequestConfig) -> Call {
        let mut call = Call::new(self.request.clone(), config, self.header.env(), self.header.began);
        if self.header.asks_before_retries {
            call.ask_before_retries().expect("it has not begun");
        }
        call
    }

    fn take(&mut self, number: u64, line: &[u8], counts: &mut Counts) -> Result<(), Problem> {
        /// Which kind of line it is, by the key that only this kind has
        #[derive(Deserialize)]
        struct Kind {
            event: Option<IgnoredAny>,
            step: Option<IgnoredAny>,
            end: Option<IgnoredAny>,
            truncated: Option<IgnoredAny>,
        }
        let line = line.trim_ascii_end();
        let recorded = match serde_json::from_slice(line)? {
            Kind { event: Some(_), .. } => {
                counts.events += 1;
                let line: EventLine<'static> = serde_json::from_slice(line)?;
                Recorded::Event(Box::new(Happened::of(line).map_err(|lacking| match lacking {
                    Lacking::Bytes => Problem::Bytes,
                    Lacking::Head => Problem::Head,
                })?))
            }
            Kind { step: Some(_), .. } => {
                counts.steps += 1;
                Recorded::Step(String::from_utf8_lossy(line).into())
            }
            Kind { end: None, truncated: None, .. } => return Err(Problem::Unknown),
            Kind { .. } => {
                self.finish = match serde_json::from_slice(line)? {
                    Mark::Truncated { .. } => Finish::Truncated,
                    Mark::End(counted) if counted == *counts => Finish::Whole,
                    Mark::End(_) => {
                        let Counts { events, steps } = *counts;
                        return Err(Problem::Count { events, steps });
                    }
                };
                return Ok(());
            }
        };
        self.lines.push((number, recorded));
        Ok(())
    }
}

fn header(line: &[u8]) -> Result<Header, Problem> {
    #[derive(Deserialize)]
    struct Kind {
        trace: u32,
        bodies: Option<Bodies>,
    }
    match serde_json::from_slice(line) {
        Err(_) => Err(Problem::NotATrace),
        Ok(Kind { trace, .. }) if trace != VERSION => Err(Problem::Version(trace)),
        Ok(Kind { bodies: Some(bodies @ (Bodies::Hashed | Bodies::Lengths)), .. }) => {
            Err(Problem::NotWhole(bodies))
        }
        Ok(Kind { bodies: Some(Bodies::Whole) | None, .. }) => Ok(serde_json::from_slice(line)?),
    }
}

/// The lines of a file, one at a time
struct Lines<R> {
    reader: io::Take<R>,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line, with its end; returns whether there is one
    fn advance(&mut self) -> Result<bool, TraceError> {
        self.number += 1;
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.error(error.into()))?;
        match self.reader.limit() {
            0 => Err(self.error(Problem::TooLarge { limit: Trace::MAX_BYTES })),
            _ => Ok(read > 0),
        }
    }

    fn error(&self, problem: Problem) -> TraceError {
        TraceError { line: self.number, problem }
    }
}
