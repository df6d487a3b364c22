//! Under which settings calls are checked.

use steadfast::call::{Retries, Shape};
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;

use crate::terms::{Case, Framing, Input};

/// What the driver and the consumer do, and time
const ALWAYS: [Input; 10] = {
    use Input::*;
    [Start, Cancel, Taken, Tick, Oversleep, Elapse, Connected, SentAll, Eof, Reset]
};

/// Every case
pub fn cases() -> Vec<Case> {
    use Dialect::{Anthropic, Gemini, Ollama, OpenAiChat};
    use Input::*;
    let none = Overrides::new();
    let setup = [StartLate, Reused, Refused, SentPart, WriteFails];
    let statuses = [Busy, BusyHead, Limited, LimitedLong, Bad, BusyFinal, BadAgain, Quota];
    let body = [StreamHead, Delta, Marker, Sentinel, BodyEnd];
    let pieces = [Comment, HalfDelta, RestDelta, OpenDelta, LineEnd];
    let faults = [Overload, Invalid, NotJson];
    let together = [Usage, DeltaToEnd, MarkerAndEnd, ConsumerFails];
    vec![
        case(
            "unary",
            OpenAiChat,
            Shape::Unary,
            &none,
            &[&[UnaryHead, Body, BodyOverload, BodyNotJson], &[Busy, Limited]],
        ),
        case(
            "unary setup",
            OpenAiChat,
            Shape::Unary,
            &none,
            &[&setup, &[Interim, HalfHead, UnaryHead, Body]],
        ),
        case("statuses", OpenAiChat, Shape::Unary, &none, &[&statuses, &[Body, SentPart, WriteFails]]),
        case("chat", OpenAiChat, Shape::Stream, &none, &[&body, &faults, &[Comment, Usage]]),
        case("chat pieces", OpenAiChat, Shape::Stream, &none, &[&body, &pieces]),
        case("chat together", OpenAiChat, Shape::Stream, &none, &[&body, &together]),
        case(
            "chat setup",
            OpenAiChat,
            Shape::Stream,
            &none,
            &[&setup, &[Interim, HalfHead, Busy, UnaryHead, Body], &body],
        ),
        case("anthropic", Anthropic, Shape::Stream, &none, &[&body, &faults, &[Comment, DeltaToEnd]]),
        case(
            "gemini",
            Gemini,
            Shape::Stream,
            &none,
            &[&body, &faults, &[Comment, Usage, DeltaToEnd, MarkerAndEnd]],
        ),
        case("ollama", Ollama, Shape::Stream, &none, &[&body, &pieces, &[Invalid, NotJson, DeltaToEnd]]),
        case(
            "one attempt",
            OpenAiChat,
            Shape::Stream,
            &none.max_attempts(1),
            &[&body, &[Refused, Busy, Overload]],
        ),
        case(
            "three attempts",
            OpenAiChat,
            Shape::Stream,
            &none.max_attempts(3),
            &[&[StreamHead, Delta, BodyEnd, Refused, Busy, Limited, Overload]],
        ),
        case(
            "little time",
            OpenAiChat,
            Shape::Unary,
            &none.max_attempts(3).total_deadline(32.0),
            &[&[Refused, Busy, Limited, BusyHead, UnaryHead, Body]],
        ),
        case(
            "no bounds",
            OpenAiChat,
            Shape::Stream,
            &none
                .connect_timeout(f64::INFINITY)
                .request_timeout(f64::INFINITY)
                .stream_idle_timeout(f64::INFINITY)
                .total_deadline(f64::INFINITY),
            &[&body, &[Refused, Busy, BusyHead, Limited, LimitedLong, Comment]],
        ),
        case("short waits asked for", OpenAiChat, Shape::Unary, &none.max_retry_after(2.0), &[&statuses]),
        case(
            "stream deadline",
            OpenAiChat,
            Shape::Stream,
            &none.stream_deadline(35.0),
            &[&body, &[Busy, Limited, BusyHead, Comment]],
        ),
        case(
            "content clocks",
            OpenAiChat,
            Shape::Stream,
            &none.first_content_timeout(9.0).content_idle_timeout(5.0),
            &[&body, &[Comment, HalfDelta, RestDelta, Usage]],
        ),
        case(
            "content idle",
            OpenAiChat,
            Shape::Stream,
            &none.content_idle_timeout(5.0),
            &[&body, &[Comment, Usage]],
        ),
        case(
            "first content",
            Gemini,
            Shape::Stream,
            &none.first_content_timeout(9.0),
            &[&body, &[Comment, Usage]],
        ),
        case(
            "long after marker",
            OpenAiChat,
            Shape::Stream,
            &none.after_marker(8.0).stream_deadline(30.0),
            &[&body, &[Comment, Usage, Overload, NotJson]],
        ),
        case(
            "nothing after marker",
            OpenAiChat,
            Shape::Stream,
            &none.after_marker(0.0),
            &[&body, &[Usage, Comment, DeltaToEnd, MarkerAndEnd]],
        ),
        Case {
            framing: Framing::UntilEof,
            ..case("until the end", OpenAiChat, Shape::Stream, &none, &[&body, &pieces, &[Overload]])
        },
        Case {
            retries: Retries::UnlessBilled,
            ..case("unless billed", OpenAiChat, Shape::Stream, &none, &[&body, &setup, &[Busy]])
        },
        Case {
            retries: Retries::Never,
            ..case("never again", OpenAiChat, Shape::Stream, &none, &[&body, &setup, &[Busy]])
        },
    ]
}

fn case(
    name: &'static str,
    dialect: Dialect,
    shape: Shape,
    overrides: &Overrides,
    more: &[&[Input]],
) -> Case {
    let mut case = Case::new(name, dialect, shape, overrides);
    case.alphabet.extend(ALWAYS);
    case.alphabet.extend(more.iter().copied().flatten());
    case
}
