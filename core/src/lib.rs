//! LLM calls that end: the pure core.
//!
//! Every wait is bounded, every failure is typed, every completed turn is kept and paid for once.
//! This crate decides; it never acts. It has no sockets, threads, clock, randomness of the operating
//! system, and no async: time and bytes come in as events, and what to do comes out as steps. So the
//! same call runs on any runtime, its timing is tested exactly, and a recorded run replays bit for
//! bit. To simply make calls, use `steadfast-tokio` or `steadfast-smol`.
//!
//! | module | what is in it |
//! |---|---|
//! | [`machine`] | the one shape of every machine: events in, steps out |
//! | [`verb`] | what the providers offer, as requests: method, path, dialect and retries of each |
//! | [`body`] | bodies of requests: bytes, what is read as it goes out, forms |
//! | [`call`] | the call machine: attempts, timers, delivery, finalisation; its states and ties |
//! | [`chat`] | conversations: messages, what they cost, and the turn under way |
//! | [`connect`] | which addresses to try and when, which proxy, and its handshake |
//! | [`config`] | one configuration, and the four channels that set it |
//! | [`outcome`] | what a caller gets back: the turn or a typed failure, and the timeline |
//! | [`retry`] | what is tried again, and after how long |
//! | [`dialect`] | what the events of each provider mean |
//! | [`framing`] | bytes of a body to events |
//! | [`content`] | compressed bodies to bytes |
//! | [`http1`] | HTTP/1.1 over bytes |
//! | [`pool`] | which connection carries the next request, and when an idle one is closed |
//! | [`relay`] | the exchange between an app and a provider, bounded and safely retried |
//! | [`time`] | points in time and bounds, never a clock |
//! | [`trace`] | what happened in a call, recorded, and the call replayed from it |
//! | [`porting`] | how to write a driver, by the example of the smallest one |
//! | [`policies`] | what is done where the field differs, and why |
//!
//! A recorded body is told what it means by the same machine, in thirty lines: see
//! `examples/decode_bytes.rs`, or the program's `steadfast decode`.
//!
//! # Driving a call
//!
//! A driver owns the clock and the connections. This one has both in memory; with a socket in place
//! of `Wire` it is a whole client. It never waits for anything but [`Step::Wait`](machine::Step):
//!
//! ```
//! use std::time::Duration;
//! use steadfast::call::{Call, Command, Env, Item, Request};
//! use steadfast::config::RequestConfig;
//! use steadfast::dialect::Dialect;
//! use steadfast::machine::{Ended, Event, Machine, Step};
//! use steadfast::outcome::{Delta, Outcome};
//! use steadfast::time::Instant;
//!
//! /// A connection of which the other side is already written
//! struct Wire(&'static [u8]);
//!
//! fn drive(mut call: Call, mut wire: Wire) -> Result<(String, Outcome), Box<dyn std::error::Error>> {
//!     let mut text = String::new();
//!     let mut now = Instant::ORIGIN;
//!     let mut event = Event::Start;
//!     loop {
//!         let mut connected = None;
//!         let mut drain = call.handle(now, event)?;
//!         let wait = loop {
//!             match drain.next() {
//!                 Step::Do(Command::Connect(id)) => connected = Some(id),
//!                 Step::Do(Command::Close(..) | Command::Retry(_)) => {}
//!                 Step::Deliver(Item::Delta(Delta::Text { text: piece, .. })) => text.push_str(piece),
//!                 Step::Deliver(_) => {}
//!                 Step::Wait(wait) => break wait,
//!                 Step::Done(outcome) => return Ok((text, outcome)),
//!             }
//!         };
//!         drop(drain);
//!         now = now + Duration::from_millis(1);
//!         event = match (connected, wait.io) {
//!             (Some(id), _) => Event::Connected(id),
//!             _ if wait.taken => Event::Taken,
//!             (None, Some(io)) if io.write => {
//!                 let sent = call.outgoing(io.link).iter().map(|part| part.len()).sum();
//!                 Event::Sent(io.link, sent)
//!             }
//!             (None, Some(io)) if !wire.0.is_empty() => Event::Received(io.link, std::mem::take(&mut wire.0)),
//!             (None, Some(io)) => Event::Eof(io.link, Ended::Clean),
//!             // Nothing to do but to wait: here time may jump, a real driver sleeps.
//!             (None, None) => {
//!                 now = wait.deadline.ok_or("nothing to wait for")?.0;
//!                 Event::Elapsed
//!             }
//!         };
//!     }
//! }
//!
//! let request = Request::post("http://localhost/v1/chat/completions")
//!     .json(&serde_json::json!({"stream": true, "messages": []}))
//!     .dialect(Dialect::OpenAiChat)
//!     .stream()
//!     .build()?;
//! let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
//! let call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
//! let wire = Wire(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
//!     data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n\
//!     data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
//!     data: [DONE]\n\n");
//! let (text, outcome) = drive(call, wire)?;
//! assert_eq!(text, "Hi");
//! assert_eq!(outcome.word(), "completed");
//! assert_eq!(outcome.timeline.attempts.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Whether a fault is planted at this place, to see whether a test finds it
#[cfg(feature = "planted-faults")]
macro_rules! planted {
    ($fault:ident) => {
        crate::planted::is(crate::planted::Fault::$fault)
    };
}

/// No fault is planted anywhere
#[cfg(not(feature = "planted-faults"))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

pub mod body;
pub mod call;
pub mod chat;
pub mod config;
pub mod connect;
pub mod content;
pub mod dialect;
mod fnv;
pub mod framing;
/// The crate whose types stand for methods, statuses and header fields in this one's interface
pub use http;
pub mod http1;
pub mod machine;
pub mod outcome;
mod percent;
#[cfg(feature = "planted-faults")]
pub mod planted;
#[doc = include_str!("policies.md")]
pub mod policies {}
pub mod pool;
#[doc = include_str!("porting.md")]
pub mod porting {}
pub mod relay;
pub mod retry;
pub mod time;
pub mod trace;
pub mod verb;
