//! Bytes into the SSE framer.

use std::num::NonZeroUsize;
use std::time::Duration;

use sse_core::{SseDecoder, SseEvent};
use steadfast::framing::sse::{Field, Framer, TooLarge};

use crate::reads::{choice, splits};

/// Beyond any input
const LIMIT: usize = 16 << 20;

/// All that a stream tells
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// Name, data and last event id of each event
    messages: Vec<[String; 3]>,
    last_event_id: String,
    retry: Option<Duration>,
}

/// What the standard does not know of
#[derive(Debug, Default, PartialEq, Eq)]
struct Beside {
    /// Field and data of each `error` line and bare one, and how many messages came before it
    lines: Vec<(usize, Field, String)>,
    /// Name, data and field of what the end leaves
    tails: Vec<(Option<String>, String, Field)>,
    failure: Option<TooLarge>,
}

/// An event stream: the first byte sets the limit on an event, the rest is the body
///
/// Any split gives the same events, tail and error; below the limit sse-core gives the same events,
/// last id and reconnection time.
pub fn sse(data: &[u8]) {
    let (limit, body) = choice(data);
    let limit = if limit % 2 == 0 { LIMIT } else { usize::from(limit) };
    let whole = read(limit, &[body]);
    for reads in splits(body) {
        assert_eq!(read(limit, &reads), whole, "read in {reads:?}");
    }
    // The oracle holds a reconnection time in 32 bits.
    if limit == LIMIT && !body.windows(10).any(|run| run.iter().all(u8::is_ascii_digit)) {
        assert_eq!(whole.1.failure, None);
        assert_eq!(whole.0, oracle(body));
    }
}

fn read(limit: usize, reads: &[&[u8]]) -> (Told, Beside) {
    let mut framer = Framer::new(limit);
    let (mut told, mut beside) = (Told::default(), Beside::default());
    'body: for read in reads {
        let mut input = *read;
        loop {
            let (consumed, event) = match framer.next(input) {
                Ok(next) => next,
                Err(error) => {
                    assert_eq!(framer.next(input), Err(error), "a framer that has failed stays so");
                    beside.failure = Some(error);
                    break 'body;
                }
            };
            let Some(event) = event else {
                assert_eq!(consumed, input.len(), "without an event all of the input is used");
                break;
            };
            let data = text(framer.bytes(input, event.data));
            match event.field {
                Field::Data => {
                    let name = event.name.map_or("message".into(), |name| text(framer.bytes(input, name)));
                    told.messages.push([name, data, text(framer.last_event_id())]);
                }
                field @ (Field::Error | Field::Bare) => {
                    beside.lines.push((told.messages.len(), field, data));
                }
            }
            input = &input[consumed..];
        }
    }
    told.last_event_id = text(framer.last_event_id());
    told.retry = framer.retry();
    while beside.failure.is_none()
        && let Some(tail) = framer.tail()
    {
        assert!(beside.tails.len() < 2, "one line and one event at most");
        let name = tail.name.map(|name| text(framer.bytes(&[], name)));
        beside.tails.push((name, text(framer.bytes(&[], tail.data)), tail.field));
    }
    (told, beside)
}

/// What another implementation makes of it
fn oracle(mut body: &[u8]) -> Told {
    let mut decoder = SseDecoder::with_limit(NonZeroUsize::new(LIMIT).expect("it is not zero"));
    let mut told = Told::default();
    while let Some(event) = decoder.next(&mut body) {
        match event.expect("below the limit") {
            SseEvent::Message(message) => told.messages.push([
                message.event.into_owned(),
                message.data,
                message.last_event_id.as_deref().unwrap_or_default().to_owned(),
            ]),
            SseEvent::Retry(milliseconds) => told.retry = Some(Duration::from_millis(milliseconds.into())),
        }
    }
    told.last_event_id = decoder.last_event_id().map(|id| id.to_string()).unwrap_or_default();
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
