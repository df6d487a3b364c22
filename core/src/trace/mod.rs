//! Record and replay: what a call was told and what it decided, line by line.
//!
//! A call is a pure function of what its driver tells it (INV-9). So a trace of the events is all that
//! it takes to have the call again, step by step and byte for byte, on any machine: a failure in
//! production replays on a laptop. And with other bounds the same events show how the call would have
//! ended under another configuration.
//!
//! | file | what is in it |
//! |---|---|
//! | `recorder` | [`Recorder`]: writes a trace while its call goes on |
//! | `memory` | [`Memory`]: a writer into memory |
//! | `redact` | credentials and cookies, out of what is written |
//! | `bodies` | [`Bodies`]: how much of what came a trace holds |
//! | `format`, `event`, `step` | the lines: the first and the last one, events, steps ([`StepLine`]) |
//! | `reader` | [`Trace`]: reads one |
//! | `replay` | [`Trace::replay`]: the same events, and whether the steps are the same |
//! | `what_if` | [`Trace::what_if`]: the same arrivals under another configuration |
//!
//! ```
//! use std::time::Duration;
//! use steadfast::call::{Call, Env, Request};
//! use steadfast::config::{Overrides, RequestConfig};
//! use steadfast::machine::{Event, Machine, Step};
//! use steadfast::time::Instant;
//! use steadfast::trace::{Alternative, Memory, Recorder, Trace};
//!
//! let request = Request::post("http://localhost/v1").bearer("sk-example").body("{}").build()?;
//! let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
//! let config = RequestConfig::default().with(&Overrides::new().max_attempts(1))?;
//! let mut call = Call::new(request, config, env, Instant::ORIGIN);
//!
//! // Any writer will do; the clients of the adapters take a recorder with `record`.
//! let memory = Memory::default();
//! call.record(Recorder::new(memory.clone()))?;
//!
//! // A driver that knows only how to wait: nobody ever connects.
//! let (mut now, mut event) = (Instant::ORIGIN, Event::Start);
//! 'call: loop {
//!     let mut drain = call.handle(now, event)?;
//!     now = loop {
//!         match drain.next() {
//!             Step::Wait(wait) => break wait.deadline.ok_or("no bound is in force")?.0,
//!             Step::Done(_) => break 'call,
//!             Step::Do(_) | Step::Deliver(_) => {}
//!         }
//!     };
//!     event = Event::Elapsed;
//! }
//!
//! let trace = Trace::read(&memory.bytes()[..])?;
//! let replay = trace.replay(|_, _| {});
//! assert!(replay.is_identical());
//!
//! // The same silence for as long as it is known; after that the trace knows nothing.
//! let config = trace.config().with(&Overrides::new().connect_timeout(3.0))?;
//! let what_if = trace.what_if(config)?;
//! let Alternative::Ended(outcome) = what_if.alternative else { panic!("it ends") };
//! assert_eq!(outcome.timeline.elapsed(), Duration::from_secs(3));
//! assert_eq!(what_if.known_until, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where it hooks in
//!
//! In the call itself: [`Call::record`](crate::call::Call::record). Every driver tells a call what
//! happens and takes its steps from it, so every driver is served, one that is not ours too, and none can
//! forget a line. A call that is not recorded pays for it by a look at an empty field.
//!
//! # The lines
//!
//! A trace is JSON Lines, in the order in which things happened. Instants are nanoseconds since the
//! driver's origin. The first line is all that the call was made of:
//!
//! | key | what |
//! |---|---|
//! | `trace` | the version of this format: 1 |
//! | `bodies` | `whole`, `hashed` or `lengths` ([`Bodies`]) |
//! | `request` | `method`; `url`, of the query only the names; `shape`, `dialect`, `retries`, `forwarded`; `head_bytes` and `body_bytes`, the lengths of what goes out; `streamed`, where the body is read as it goes out; `head_fields`, where header fields are made for each attempt: the names of the others, and the lengths of their values; `credentials`, a placeholder for each |
//! | `config` | the whole configuration in force, as [`RequestConfig`](crate::config::RequestConfig) is written |
//! | `seed`, `unix_at_origin` | those of [`Env`](crate::call::Env) |
//! | `began` | when the call was made |
//!
//! Then there is a line for each event that the call accepted, written before the steps that follow from
//! it: `at`, `event`, and
//!
//! | `event` | keys |
//! |---|---|
//! | `start`, `elapsed`, `taken`, `cancel` | |
//! | `connected`, `reused`, `end` | `link`: the connection, from 1 |
//! | `sent` | `link`, `bytes` |
//! | `head_supplied` | `link`, `fields`: of header fields that were made for the attempt the names, and what stands for the values |
//! | `supplied`, `supply_ended`, `supply_failed` | `link`, and `bytes` or `message`: what was read of a body that is read as it goes out |
//! | `received`, `body` | `link`, and the content: `bytes`, its length, and `text` where it is UTF-8, else `hex`; or `hash` |
//! | `eof` | `link`, `ended` |
//! | `failed` | `link`, `failure`: `stage`, `kind`, `message` |
//! | `head` | `link`, `status`, `headers`: a list of name and value |
//! | `consumer_failed` | `message` |
//!
//! and a line for each step, see [`StepLine`]. A wait that a driver asks for again is written once. Where
//! bodies are not whole, a line `{"head":{"link":…,"status":…,"headers":[…]}}` shows the head of each
//! response, which would else be lost in the bytes. The last line is one of these:
//!
//! | key | what |
//! |---|---|
//! | `end` | the call is over; `events` and `steps` count the lines. The timeline is in the step `done` before it |
//! | `truncated` | the trace came to its bound, `max_bytes`, and the call went on |
//!
//! A trace without it was cut, and is read as far as it goes.
//!
//! # What is never in it
//!
//! - No byte of the request: only how many there were.
//! - No credential of the request that a server echoes, in any spelling that errors are searched for, nor
//!   the beginning of one at the end of what came. A placeholder of the same length stands in its place,
//!   and the replayed call takes it for its credential, so that its steps are the same. Where a read ends
//!   in what may be the beginning of one, its line waits for the next read; how the bytes are cut makes no
//!   difference. A credential that a model spells out over several events is no longer one: its pieces
//!   are text.
//! - No cookie that a server sets: what follows `set-cookie:` at the beginning of a line is blanked.
//!
//! The answer itself is in it, where bodies are whole: keep such a trace as you keep the answers.
//!
//! # What it does not show
//!
//! A body in a content coding replays only where the feature `content-decoding` is as it was.

mod bodies;
mod event;
mod format;
mod memory;
mod reader;
mod recorder;
mod redact;
mod replay;
mod step;
#[cfg(test)]
mod tests;
mod what_if;

pub use bodies::{Bodies, UnknownBodies};
pub(crate) use event::Noted;
pub(crate) use format::Header;
pub use memory::Memory;
pub use reader::{Finish, Problem, Trace, TraceError};
pub use recorder::{RecordError, Recorder, Recording};
pub(crate) use redact::{Redactor, placeholder};
pub use replay::{Difference, Line, Replay};
pub use step::StepLine;
pub use what_if::{Alternative, WhatIf};
