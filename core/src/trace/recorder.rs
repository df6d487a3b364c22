//! Writing a trace while the call goes on.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io;

use super::bodies::{Bodies, Content};
use super::event::{EventLine, HeadLine, Noted, Told};
use super::format::{Counts, HeadNote, Header, Mark};
use super::redact::{Cookies, Redactor};
use super::step::StepLine;
use crate::call::{AttemptId, Call};
use crate::http1::ResponseHead;
use crate::machine::Step;
use crate::time::Instant;

/// Writes the trace of one call; see [`super`] for what is in it
///
/// [`Call::record`] takes it. Each line is given to the writer whole and at once, on the thread that
/// drives the call, so a writer should be buffered; it is flushed when the call is over or dropped. A
/// writer that fails harms no call: the recording ends, and [`Call::recording`] says why.
pub struct Recorder {
    out: Box<dyn io::Write + Send + Sync>,
    bodies: Bodies,
    max_bytes: u64,
    written: u64,
    state: Recording,
    redactor: Redactor,
    counted: Counts,
    /// The last line was a wait, which a driver may ask for again and again
    waits: bool,

    /// Lines behind bytes that may be the beginning of a credential
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Bytes of the held lines, with some before them that were written already
    window: Vec<u8>,
    /// How much of the window was written
    shown: usize,
    /// How much of the window holds no credential any more, nor the beginning of one
    certain: usize,
    /// The connection that the window is of
    link: Option<AttemptId>,
    cookies: Cookies,
}

/// A line that has yet to be written
enum Held {
    Line(String),
    Bytes { at: Instant, link: AttemptId, of_body: bool, len: usize },
}

/// How a recording goes
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Lines are written as the call goes on
    UnderWay,
    /// The trace is whole, to the end of the call
    Whole,
    /// The trace came to its bound, and the rest of the call is not in it
    Truncated {
        /// The bound in bytes
        max_bytes: u64,
    },
    /// The writer failed, and the rest of the call is not in the trace
    Failed(RecordError),
}

/// A trace that could not be written on; the call went on without it
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace could not be written: {message}")]
pub struct RecordError {
    /// The kind of the writer's error
    pub kind: io::ErrorKind,
    /// The writer's words
    pub message: String,
}

impl Recorder {
    /// The most bytes of a trace, unless [`Recorder::max_bytes`] says otherwise: 64 MiB
    pub const MAX_TRACE_BYTES: u64 = 64 << 20;

    /// The most text that waits for the next read to show whether the last one ended in a credential
    ///
    /// Past it the last bytes are redacted as if they were the beginning of one.
    pub const MAX_HELD_BYTES: usize = 4 << 20;

    /// For the line that says that a trace came to its bound
    const MARK_BYTES: u64 = 64;

    /// Writes to `out`, bodies whole
    pub fn new(out: impl io::Write + Send + Sync + 'static) -> Self {
        Self {
            out: Box::new(out),
            bodies: Bodies::Whole,
            max_bytes: Self::MAX_TRACE_BYTES,
            written: 0,
            state: Recording::UnderWay,
            redactor: Redactor::default(),
            counted: Counts::default(),
            waits: false,
            held: VecDeque::new(),
            held_bytes: 0,
            window: Vec::new(),
            shown: 0,
            certain: 0,
            link: None,
            cookies: Cookies::default(),
        }
    }

    /// The same, with as much of bodies as `bodies` says
    #[must_use]
    pub fn bodies(mut self, bodies: Bodies) -> Self {
        self.bodies = bodies;
        self
    }

    /// The same, for a trace of at most so many bytes
    ///
    /// Past that a line says so and the recording ends; the call goes on. More than
    /// [`Trace::MAX_BYTES`](super::Trace::MAX_BYTES) is not read back.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// How it goes
    pub(crate) fn state(&self) -> &Recording {
        &self.state
    }

    /// Writes the first line
    pub(crate) fn begin(&mut self, header: impl FnOnce(Bodies) -> Header, redactor: Redactor) {
        self.redactor = redactor;
        self.line(&header(self.bodies));
    }

    /// Takes in an event that the call accepted
    pub(crate) fn event(&mut self, at: Instant, noted: Noted<'_>) {
        if self.state != Recording::UnderWay {
            return;
        }
        self.waits = false;
        self.counted.events += 1;
        match noted {
            Noted::Bytes { link, of_body, bytes } => self.bytes(at, link, of_body, bytes),
            Noted::Other(other) => {
                let told = blanked(other.0);
                if matches!(told, Told::Eof { .. } | Told::Failed { .. } | Told::End { .. }) {
                    self.settle();
                }
                self.line(&EventLine { at, told });
            }
        }
    }

    /// Takes in secrets that the call has from now on, each with its placeholder
    pub(crate) fn hide(&mut self, secrets: Vec<(Vec<u8>, String)>) {
        self.redactor.add(secrets);
    }

    /// Takes in the head of a response, which a trace without whole bodies would not show
    pub(crate) fn head(&mut self, link: AttemptId, head: &ResponseHead) {
        if self.state == Recording::UnderWay && self.bodies != Bodies::Whole {
            let Told::Head { link, head } = blanked(Told::Head { link, head: HeadLine::of(head) }) else {
                return;
            };
            self.line(&HeadNote::new(link, head));
        }
    }

    /// Takes in a step
    pub(crate) fn step(&mut self, step: &Step<'_, Call>) {
        let waits = matches!(step, Step::Wait(_));
        if self.state != Recording::UnderWay || (waits && self.waits) {
            return;
        }
        self.waits = waits;
        self.counted.steps += 1;
        self.line(&StepLine::of(step).bodies(self.bodies));
        if matches!(step, Step::Done(_)) {
            self.settle();
            self.line(&Mark::End(self.counted));
            if self.state == Recording::UnderWay {
                self.state = self
                    .out
                    .flush()
                    .map_or_else(|error| Recording::Failed(error.into()), |()| Recording::Whole);
            }
        }
    }

    /// Writes a line once all before it are written
    fn line(&mut self, line: &impl serde::Serialize) {
        let mut line = serde_json::to_string(line).expect("lines are maps with names for keys");
        self.redactor.line(&mut line);
        self.held_bytes += line.len();
        self.held.push_back(Held::Line(line));
        self.release();
    }

    fn bytes(&mut self, at: Instant, link: AttemptId, of_body: bool, bytes: &[u8]) {
        if self.link != Some(link) {
            self.settle();
            self.link = Some(link);
            self.cookies = Cookies::default();
        }
        let came = self.window.len();
        self.window.extend_from_slice(bytes);
        if !of_body {
            self.cookies.blank(&mut self.window[came..]);
        }
        self.certain = self.redactor.scan(&mut self.window, self.certain);
        self.held_bytes += bytes.len();
        self.held.push_back(Held::Bytes { at, link, of_body, len: bytes.len() });
        self.release();
    }

    /// Nothing more comes that could make a credential of the last bytes
    fn settle(&mut self) {
        self.redactor.settle(&mut self.window[self.certain..]);
        self.certain = self.window.len();
        self.release();
    }

    /// Writes what waits for nothing
    fn release(&mut self) {
        self.write_certain();
        if self.held_bytes > Self::MAX_HELD_BYTES {
            // What comes next may still be the rest of it, and is searched together with it.
            let left = self.window[self.certain..].to_vec();
            self.redactor.settle(&mut self.window[self.certain..]);
            self.certain = self.window.len();
            self.write_certain();
            (self.shown, self.certain, self.window) = (left.len(), 0, left);
        }
    }

    fn write_certain(&mut self) {
        while let Some(line) = self.held.pop_front() {
            match line {
                Held::Bytes { len, .. } if self.shown + len > self.certain => {
                    self.held.push_front(line);
                    break;
                }
                Held::Line(line) => {
                    self.held_bytes -= line.len();
                    self.write(line);
                }
                Held::Bytes { at, link, of_body, len } => {
                    self.held_bytes -= len;
                    let content = Content::of(&self.window[self.shown..self.shown + len], self.bodies);
                    let told = match of_body {
                        false => Told::Received { link, content },
                        true => Told::Body { link, content },
                    };
                    let line = serde_json::to_string(&EventLine { at, told });
                    self.shown += len;
                    self.write(line.expect("lines are maps with names for keys"));
                }
            }
        }
        let gone = self.shown.min(self.certain);
        self.window.drain(..gone);
        self.shown -= gone;
        self.certain -= gone;
    }

    fn write(&mut self, mut line: String) {
        if self.state != Recording::UnderWay {
            return;
        }
        line.push('\n');
        if self.written + line.len() as u64 + Self::MARK_BYTES > self.max_bytes {
            self.state = Recording::Truncated { max_bytes: self.max_bytes };
            line.clear();
            let mark = serde_json::to_string(&Mark::Truncated { max_bytes: self.max_bytes });
            writeln!(line, "{}", mark.expect("a mark is JSON")).expect("a string takes all");
        }
        self.written += line.len() as u64;
        let mut done = self.out.write_all(line.as_bytes());
        if matches!(self.state, Recording::Truncated { .. }) {
            done = done.and_then(|()| self.out.flush());
        }
        if let Err(error) = done {
            self.state = Recording::Failed(error.into());
        }
    }
}

/// What the call had come to is written
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.state == Recording::UnderWay {
            self.settle();
            // Nobody is left to be told.
            _ = self.out.flush();
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("bodies", &self.bodies)
            .field("max_bytes", &self.max_bytes)
            .field("written", &self.written)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}

/// Blanks cookies in a head
fn blanked(mut told: Told<'static>) -> Told<'static> {
    if let Told::Head { head, .. } = &mut told {
        for (name, value) in &mut head.headers {
            if name == http::header::SET_COOKIE.as_str() {
                *value = "x".repeat(value.chars().count());
            }
        }
    }
    told
}
