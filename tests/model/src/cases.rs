//! Under which settings calls are checked.

use steadfast::call::Retries;
use steadfast::config::Overrides;
use steadfast::dialect::Dialect::{Anthropic, Gemini, Ollama, OpenAiChat};

use crate::terms::Input::*;
use crate::terms::{Case, Framing, Input, Upload};

/// What the driver and the consumer do, and time
const ALWAYS: &[Input] = &[Start, Cancel, Taken, Tick, Oversleep, Elapse, Connected, SentAll, Eof, Reset];

/// How an attempt can begin
const SETUP: &[Input] = &[StartLate, Reused, Refused, SentPart, WriteFails];

/// Answers that are no success
const STATUSES: &[Input] = &[Busy, BusyHead, Limited, LimitedLong, Bad, BusyFinal, BadAgain, Quota, Body];

/// An answer without a fault
const BODY: &[Input] = &[StreamHead, Delta, Marker, Sentinel, BodyEnd];

/// Events that come in parts
const PARTS: &[Input] = &[Comment, HalfDelta, RestDelta, OpenDelta, LineEnd];

/// Faults inside a stream
const FAULTS: &[Input] = &[Overload, Invalid, NotJson];

/// Several things in one read
const TOGETHER: &[Input] = &[TwoDeltas, DeltaToEnd, MarkerAndEnd, BodyEndAndMore];

/// How a request's body is read
const UPLOAD: &[Input] = &[Supply, SupplyMuch, SupplyEnd, SupplyFails];

/// As little as shows what a case of its own is about
const FEW: &[Input] = &[Start, Cancel, Taken, Elapse, Connected, SentAll];

/// Every case
pub fn cases() -> Vec<Case> {
    [unary(), dialects(), attempts(), clocks(), drivers(), uploads(), raw(), small()]
        .into_iter()
        .flatten()
        .collect()
}

fn unary() -> Vec<Case> {
    let answers: &[Input] = &[UnaryHead, Body, BodyOverload, BodyNotJson];
    let caps = Overrides::new().max_body_bytes(100);
    let short = Overrides::new().max_retry_after(2.0);
    let little = Overrides::new().max_attempts(3).total_deadline(32.0);
    vec![
        Case::unary("unary", &[ALWAYS, answers, &[Busy, Limited]]),
        Case::unary("unary setup", &[ALWAYS, SETUP, &[Interim, HalfHead, UnaryHead, Body]]),
        Case::unary("statuses", &[ALWAYS, STATUSES, &[SentPart, WriteFails]]),
        Case::unary("small body", &[ALWAYS, answers]).bounds(&caps),
        Case::unary("short waits asked for", &[ALWAYS, STATUSES]).bounds(&short),
        Case::unary("little time", &[ALWAYS, STATUSES, &[Refused, UnaryHead]]).bounds(&little),
    ]
}

fn dialects() -> Vec<Case> {
    vec![
        Case::stream("chat", OpenAiChat, &[ALWAYS, BODY, FAULTS, &[Comment, Usage, LengthMarker]]),
        Case::stream("chat in parts", OpenAiChat, &[ALWAYS, BODY, PARTS]),
        Case::stream("chat together", OpenAiChat, &[ALWAYS, BODY, TOGETHER, &[ConsumerFails]]),
        Case::stream("anthropic", Anthropic, &[ALWAYS, BODY, FAULTS, TOGETHER, &[Comment]]),
        Case::stream("gemini", Gemini, &[ALWAYS, BODY, FAULTS, TOGETHER, &[Comment, Usage]]),
        Case::stream("ollama", Ollama, &[ALWAYS, BODY, PARTS, &[Invalid, NotJson, DeltaToEnd]]),
    ]
}

fn attempts() -> Vec<Case> {
    let attempts = |most| Overrides::new().max_attempts(most);
    let heads: &[Input] = &[Interim, HalfHead, Busy, UnaryHead, Body];
    let again: &[Input] = &[StreamHead, Delta, BodyEnd, Refused, Busy, Limited, Overload];
    let setup = |name| Case::stream(name, OpenAiChat, &[ALWAYS, SETUP, BODY, &[Busy]]);
    vec![
        Case::stream("chat setup", OpenAiChat, &[ALWAYS, SETUP, BODY, heads]),
        Case::stream("one attempt", OpenAiChat, &[ALWAYS, BODY, &[Refused, Busy, Overload]])
            .bounds(&attempts(1)),
        Case::stream("three attempts", OpenAiChat, &[ALWAYS, again]).bounds(&attempts(3)),
        Case { retries: Retries::UnlessBilled, ..setup("unless billed") },
        Case { retries: Retries::Never, ..setup("never again") },
    ]
}

fn clocks() -> Vec<Case> {
    let none = Overrides::new();
    let endless = none
        .connect_timeout(f64::INFINITY)
        .request_timeout(f64::INFINITY)
        .stream_idle_timeout(f64::INFINITY)
        .total_deadline(f64::INFINITY);
    let chat = |name, more| Case::stream(name, OpenAiChat, &[ALWAYS, BODY, more]);
    vec![
        chat("no bounds", &[Refused, Busy, BusyHead, Limited, LimitedLong, Comment]).bounds(&endless),
        chat("stream deadline", &[Busy, Limited, BusyHead, Comment]).bounds(&none.stream_deadline(35.0)),
        chat("content clocks", &[Comment, HalfDelta, RestDelta, Usage])
            .bounds(&none.first_content_timeout(9.0).content_idle_timeout(5.0)),
        chat("content idle", &[Comment, Usage]).bounds(&none.content_idle_timeout(5.0)),
        Case::stream("first content", Gemini, &[ALWAYS, BODY, &[Comment, Usage]])
            .bounds(&none.first_content_timeout(9.0)),
        chat("long after marker", &[Comment, Usage, Overload, NotJson])
            .bounds(&none.after_marker(8.0).stream_deadline(30.0)),
        chat("nothing after marker", &[Usage, Comment, DeltaToEnd, MarkerAndEnd])
            .bounds(&none.after_marker(0.0)),
    ]
}

fn drivers() -> Vec<Case> {
    let until_eof: &[&[Input]] = &[ALWAYS, BODY, PARTS, &[Cut, Overload]];
    vec![
        Case { framing: Framing::UntilEof, ..Case::stream("until the end", OpenAiChat, until_eof) },
        Case { drops: true, ..Case::stream("dropped drains", OpenAiChat, &[ALWAYS, BODY, TOGETHER]) },
        Case { drops: true, ..Case::stream("dropped in events", Gemini, &[ALWAYS, BODY, TOGETHER]) },
    ]
}

fn uploads() -> Vec<Case> {
    let unary = |name| Case::unary(name, &[FEW, UPLOAD, &[Reused, WriteFails, Reset, Busy, UnaryHead, Body]]);
    let stream = &[FEW, UPLOAD, &[SentPart, Eof, BusyHead, StreamHead, Delta, Marker, Sentinel, BodyEnd]];
    vec![
        Case { upload: Upload::Chunked, ..unary("body in chunks") },
        Case { upload: Upload::ChunkedOnce, ..unary("body once") },
        Case { upload: Upload::OfTwoBytes, ..unary("body of two bytes") },
        Case { upload: Upload::Chunked, ..Case::stream("body and stream", OpenAiChat, stream) },
    ]
}

fn raw() -> Vec<Case> {
    let raw: &[Input] = &[StreamHead, RawByte];
    let deadline = Overrides::new().stream_deadline(15.0);
    let until_eof = Case::raw("raw until the end", &[ALWAYS, raw, &[Cut, Busy]]);
    vec![
        Case::raw("raw", &[ALWAYS, raw, &[BodyEnd, BodyEndAndMore, Busy, Limited]]).bounds(&deadline),
        Case { framing: Framing::UntilEof, ..until_eof },
    ]
}

fn small() -> Vec<Case> {
    let thoughts: &[Input] = &[StreamHead, Thought, Delta, Marker, Sentinel, BodyEnd, Busy];
    let caps = Overrides::new().max_body_bytes(100);
    let gaps: &[Input] = &[StreamHead, Delta, Comment, Sentinel];
    vec![
        Case::stream("thoughts", OpenAiChat, &[ALWAYS, thoughts]).bounds(&caps),
        Case { gaps: true, ..Case::stream("gaps", OpenAiChat, &[ALWAYS, gaps]) },
        Case::stream("told late", OpenAiChat, &[ALWAYS, &[Late, Refused, Busy, StreamHead, Delta, Sentinel]]),
    ]
}
