//! A recorded call as the trace of a client's.
//!
//! What the relay saw of the provider is told to a call of the core, at the times at which it came: a
//! connection, the request sent, then the head, the pieces of the body and its end, as a transport tells
//! them that parses HTTP itself. Where several were sent, it is the last that is told of: of the others no
//! answer was recorded. The request's own bytes are in no trace. No bound is in force, so that the call
//! ends as it did; `replay --what-if` says how it would have under some.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use serde::Deserialize;
use steadfast::call::{AttemptId, Call as ClientCall, Command, Env, Fact, Request};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::http1::ResponseHead;
use steadfast::machine::{Ended, Event, Machine, Step};
use steadfast::time::Instant;
use steadfast::trace::{Memory, Recorder};
use steadfast_relay::record::{Body, Call};

/// More steps than an event leads to
const MAX_STEPS: usize = 1 << 20;

/// Why a call has no trace
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoTrace {
    #[error("it is not over")]
    NotOver,
    #[error("no provider answered it")]
    NoAnswer,
    #[error("{0} bytes of its answer are not recorded")]
    Incomplete(u64),
    #[error("its request is none that a call can make: {0}")]
    Request(String),
    #[error("the call machine does not take it: {0}")]
    Machine(String),
}

/// The trace, as lines
pub(super) fn trace(call: &Call, answer: &Body) -> Result<Vec<u8>, NoTrace> {
    let (Some(ended), Some(ending)) = (call.ended, &call.ending) else { return Err(NoTrace::NotOver) };
    let (Some(answered), Some(head)) = (call.answered, head(call)) else { return Err(NoTrace::NoAnswer) };
    let missing = call.answer_bytes.saturating_sub(answer.kept());
    if missing > 0 {
        return Err(NoTrace::Incomplete(missing));
    }
    let memory = Memory::default();
    let mut driven = Driven::new(call, &memory)?;
    driven.tell(call.begun, Event::Start)?;
    let Some(link) = driven.link else { return Err(NoTrace::Machine("it opens no connection".to_owned())) };
    let connected = call.begun.saturating_add(connect_micros(call)).min(answered);
    driven.tell(connected, Event::Connected(link))?;
    let sent = driven.call.outgoing(link).iter().map(|part| part.len()).sum();
    driven.tell(connected, Event::Sent(link, sent))?;
    driven.tell(answered, Event::Fact(Fact::Head(link, head)))?;
    for piece in &answer.pieces {
        driven.tell(piece.at, Event::Fact(Fact::Body(link, &piece.bytes)))?;
    }
    match ending.as_str() {
        "passed" => driven.tell(ended, Event::Fact(Fact::End(link)))?,
        "broken" => driven.tell(ended, Event::Eof(link, Ended::Clean))?,
        // The relay, or the app, gave it up.
        _ => driven.tell(ended, Event::Cancel)?,
    }
    driven.run_out(ended)?;
    drop(driven);
    Ok(memory.bytes())
}

/// A call that is told what happened, and takes what it delivers at once
struct Driven {
    call: ClientCall,
    /// The time that is the call's origin, in microseconds since 1970
    origin: i64,
    link: Option<AttemptId>,
    deadline: Option<Instant>,
    is_done: bool,
}

impl Driven {
    fn new(call: &Call, memory: &Memory) -> Result<Self, NoTrace> {
        let method = Method::from_bytes(call.method.as_bytes())
            .map_err(|error| NoTrace::Request(error.to_string()))?;
        let target = call.target.split('?').next().unwrap_or_default();
        let mut request = Request::builder(method, &format!("http://relay.invalid{target}"));
        let dialect = dialect(target);
        if let Some(dialect) = dialect {
            request = request.dialect(dialect);
        }
        request = match (dialect, is_stream(call)) {
            (Some(_), true) => request.stream(),
            (Some(_), false) => request,
            (None, _) => request.raw(),
        };
        let request = request.build().map_err(|error| NoTrace::Request(error.to_string()))?;
        let env = Env { seed: 0, unix_at_origin: Duration::from_micros(call.begun.max(0).unsigned_abs()) };
        let mut client = ClientCall::new(request, unbounded(), env, Instant::ORIGIN);
        client
            .record(Recorder::new(memory.clone()))
            .map_err(|misuse| NoTrace::Machine(misuse.to_string()))?;
        Ok(Self { call: client, origin: call.begun, link: None, deadline: None, is_done: false })
    }

    /// Tells an event that happened then, after the deadlines before
    fn tell(&mut self, at: i64, event: Event<'_, ClientCall>) -> Result<(), NoTrace> {
        let since = u64::try_from(at.saturating_sub(self.origin)).unwrap_or(0);
        let at = Instant::ORIGIN + Duration::from_micros(since);
        while let Some(deadline) = self.deadline.filter(|deadline| *deadline < at && !self.is_done) {
            self.feed(deadline, Event::Elapsed)?;
        }
        if self.is_done { Ok(()) } else { self.feed(at, event) }
    }

    /// What the call does by itself when nothing more happens
    fn run_out(&mut self, from: i64) -> Result<(), NoTrace> {
        while let Some(deadline) = self.deadline.filter(|_| !self.is_done) {
            self.feed(deadline, Event::Elapsed)?;
        }
        if self.is_done { Ok(()) } else { self.tell(from, Event::Cancel) }
    }

    fn feed(&mut self, at: Instant, event: Event<'_, ClientCall>) -> Result<(), NoTrace> {
        let mut is_taken = self.steps(at, event)?;
        while is_taken && !self.is_done {
            is_taken = self.steps(at, Event::Taken)?;
        }
        Ok(())
    }

    /// All steps that follow; whether the call waits for what it delivered to be taken
    fn steps(&mut self, at: Instant, event: Event<'_, ClientCall>) -> Result<bool, NoTrace> {
        let misuse = |misuse: steadfast::machine::Misuse| NoTrace::Machine(misuse.to_string());
        let mut drain = self.call.handle(at, event).map_err(misuse)?;
        for _ in 0..MAX_STEPS {
            match drain.next() {
                Step::Do(Command::Connect(id)) => self.link = Some(id),
                Step::Do(Command::Close(..) | Command::Retry(_)) | Step::Deliver(_) => {}
                Step::Wait(wait) => {
                    self.deadline = wait.deadline.map(|(at, _)| at);
                    return Ok(wait.taken);
                }
                Step::Done(_) => {
                    self.is_done = true;
                    return Ok(false);
                }
            }
        }
        Err(NoTrace::Machine("it does not come to rest".to_owned()))
    }
}

/// One attempt, and nothing that ends it but what happened
fn unbounded() -> RequestConfig {
    let never = f64::INFINITY;
    let overrides = Overrides::new()
        .connect_timeout(never)
        .request_timeout(never)
        .stream_idle_timeout(never)
        .total_deadline(never)
        .max_attempts(1);
    RequestConfig::default().with(&overrides).expect("each of these can be unbounded")
}

/// The dialect whose endpoint that is
fn dialect(path: &str) -> Option<Dialect> {
    const ENDINGS: [(&str, Dialect); 9] = [
        ("/chat/completions", Dialect::OpenAiChat),
        ("/completions", Dialect::OpenAiCompletions),
        ("/responses", Dialect::OpenAiResponses),
        ("/messages", Dialect::Anthropic),
        (":generateContent", Dialect::Gemini),
        (":streamGenerateContent", Dialect::Gemini),
        ("/interactions", Dialect::GeminiInteractions),
        ("/api/chat", Dialect::Ollama),
        ("/v2/chat", Dialect::Cohere),
    ];
    ENDINGS.into_iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, dialect)| dialect)
}

/// Whether the answer came as a stream
fn is_stream(call: &Call) -> bool {
    let path = call.target.split('?').next().unwrap_or_default();
    let content_type = call.answer_head.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map_or("", |(_, value)| value.as_str()).to_ascii_lowercase();
    path.ends_with(":streamGenerateContent")
        || content_type.starts_with("text/event-stream")
        || content_type.starts_with("application/x-ndjson")
}

/// The head of the provider's answer
fn head(call: &Call) -> Option<ResponseHead> {
    let status = StatusCode::from_u16(call.status?).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in &call.answer_head {
        headers.append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
    }
    Some(ResponseHead { version: Version::HTTP_11, status, reason: Default::default(), headers })
}

/// How long after the call's begin its last connection was open
fn connect_micros(call: &Call) -> i64 {
    #[derive(Deserialize)]
    struct Timeline {
        began: f64,
        spans: Vec<Span>,
    }
    #[derive(Deserialize)]
    struct Span {
        kind: String,
        ended: f64,
    }
    let timeline = call.timeline.as_deref().and_then(|json| serde_json::from_str::<Timeline>(json).ok());
    let connected = timeline.as_ref().and_then(|timeline| {
        let connect = timeline.spans.iter().rev().find(|span| span.kind == "connect")?;
        Some((connect.ended - timeline.began) * 1e6)
    });
    connected.unwrap_or(0.0) as i64
}
