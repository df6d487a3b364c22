//! Bytes into the dialects, through the whole call.

use std::time::Duration;

use serde_json::value::RawValue;
use steadfast::call::{AttemptId, Call, Env, Item, Request};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::framing::Framing;
use steadfast::machine::Ended;
use steadfast::outcome::{Choice, Outcome, Turn};
use steadfast::time::Instant;
use steadfast_sim::{Arrival, Source, replay};

use crate::reads::splits;

/// What an input chooses, in its first two bytes
#[derive(Clone, Copy)]
struct Plan {
    dialect: Dialect,
    stream: bool,
    content_type: Option<&'static str>,
    end: Arrival<'static>,
    status: u16,
    /// In one chunk, whose end ends the body; otherwise the connection's end does
    chunked: bool,
    /// Small caps on events and bodies
    capped: bool,
}

/// What came of a call
struct Told {
    /// All that a split must not change
    all: String,
    /// How it ended, and the turn
    result: (&'static str, Turn),
}

/// The body of a response in one of the dialects; the first two bytes choose which, and what is around it
///
/// Any split gives the same outcome, turn, number of deltas and notes, and the deltas are the turn. A
/// JSON document says the same whether a stream was asked for or not, and a JSON array the same as the
/// event stream with its elements.
pub fn dialect(data: &[u8]) {
    let Some(([first, second], body)) = data.split_first_chunk() else { return };
    let plan = Plan::new(*first, *second);
    let whole = play(plan, body, &|response| vec![response]);
    for split in 0..3 {
        let other = play(plan, body, &|response| splits(response)[split].clone());
        assert_eq!(other.all, whole.all, "split {split}");
    }
    let clean = Plan { end: Arrival::Eof(Ended::Clean), chunked: true, capped: false, status: 200, ..plan };
    if let Dialect::Gemini = plan.dialect {
        array_is_stream(clean, body);
    }
    // Where a stream was asked for, what stands behind a whole document is noise after the end.
    if plan.dialect.framing(Some(JSON)).is_none() && is_document(body) {
        let answer =
            |stream| play(Plan { stream, content_type: Some(JSON), ..clean }, body, &|all| vec![all]);
        assert_eq!(answer(true).result, answer(false).result, "asked for as a stream, and as a whole");
    }
}

const JSON: &str = "application/json";

impl Plan {
    fn new(first: u8, second: u8) -> Self {
        Self {
            dialect: Dialect::ALL[usize::from(first % 8)],
            stream: first & 0x08 == 0,
            content_type: [Some("text/event-stream"), Some("application/x-ndjson"), Some(JSON), None]
                [usize::from(first >> 4 & 3)],
            end: [
                Arrival::Eof(Ended::Clean),
                Arrival::Eof(Ended::WithoutCloseNotify),
                Arrival::Reset,
                Arrival::Silence,
            ][usize::from(first >> 6)],
            status: if second & 0x07 == 0 { 429 } else { 200 },
            chunked: second & 0x08 == 0,
            capped: second & 0x30 == 0x30,
        }
    }

    fn response(self, body: &[u8]) -> Vec<u8> {
        let mut response = format!("HTTP/1.1 {} x\r\n", self.status);
        if let Some(content_type) = self.content_type {
            response += &format!("content-type: {content_type}\r\n");
        }
        if !self.chunked {
            return [response.as_bytes(), b"\r\n", body].concat();
        }
        response += "transfer-encoding: chunked\r\n\r\n";
        let size = format!("{:x}\r\n", body.len());
        match body {
            [] => [response.as_bytes(), b"0\r\n\r\n"].concat(),
            _ => [response.as_bytes(), size.as_bytes(), body, b"\r\n0\r\n\r\n"].concat(),
        }
    }
}

/// A response in reads
struct Reads<'a> {
    left: std::vec::IntoIter<&'a [u8]>,
    end: Arrival<'static>,
}

impl Source for Reads<'_> {
    fn next(&mut self, _: AttemptId) -> Arrival<'_> {
        self.left.next().map_or(self.end, Arrival::Bytes)
    }
}

fn play(plan: Plan, body: &[u8], split: &dyn for<'a> Fn(&'a [u8]) -> Vec<&'a [u8]>) -> Told {
    let request = Request::post("http://fuzz.invalid/v1").bearer(KEY).dialect(plan.dialect);
    let request = if plan.stream { request.stream() } else { request };
    let mut overrides = Overrides::new().max_attempts(1);
    if plan.capped {
        overrides = overrides.max_event_bytes(200).max_body_bytes(600);
    }
    let config = RequestConfig::default().with(&overrides).expect("values in their ranges");
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let call = Call::new(request.build().expect("a request"), config, env, Instant::ORIGIN);
    let response = plan.response(body);
    let mut source = Reads { left: split(&response).into_iter(), end: plan.end };
    let (mut delivered, mut deltas, mut finished, mut unknown) = (Turn::default(), 0, 0, String::new());
    let outcome = replay(call, &mut source, |item| match item {
        Item::Delta(delta) => {
            assert!(!delta.is_empty() || is_call(&delta), "an empty delta: {delta:?}");
            delivered.apply(&delta);
            deltas += 1;
        }
        Item::Unknown { name, data } => unknown += &format!("{name}: {data}\n"),
        Item::Bytes(_) => unreachable!("the call has a dialect"),
        Item::Finished(turn) => {
            assert_eq!(said(turn), said(&delivered), "what is finished is what was delivered");
            finished += 1;
        }
    })
    .expect("bounds are in force");
    if plan.stream {
        assert_eq!(said(outcome.turn()), said(&delivered), "the deltas are the turn");
    }
    check(&outcome, plan);
    let end = match &outcome.result {
        Ok(completion) => format!("{:?}", completion.ending),
        Err(error) => format!("{error} {error:?}"),
    };
    let (turn, timeline) = (outcome.turn(), &outcome.timeline);
    let events = timeline.attempts.first().map_or(0, |attempt| attempt.events);
    let notes = &timeline.notes;
    let all = format!(
        "{end}\n{turn:?}\n{deltas} deltas, {finished} times finished, {events} events, {notes:?}\n{unknown}"
    );
    Told { all, result: (outcome.word(), turn.clone()) }
}

const KEY: &str = "sk-do-not-print-this-key";

fn is_call(delta: &steadfast::outcome::Delta<'_>) -> bool {
    matches!(delta, steadfast::outcome::Delta::ToolCall { .. })
}

fn check(outcome: &Outcome, plan: Plan) {
    let json = serde_json::to_string(outcome).expect("an outcome is JSON");
    assert!(!json.contains(KEY) || outcome.result.is_ok(), "a failure shows the key");
    let turn = outcome.turn();
    assert!(turn.choices.is_sorted_by(|one, other| one.index < other.index), "choices are sorted");
    if plan.capped {
        let held: usize = turn.choices.iter().map(bytes_of).sum();
        assert!(held <= 600, "{held} bytes of an answer are held");
    }
    if let Ok(completion) = &outcome.result {
        assert!(completion.status.is_success());
        assert!(plan.stream || !completion.body.is_empty(), "a whole answer without a body");
    }
}

fn bytes_of(choice: &Choice) -> usize {
    let calls = choice.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
    choice.text.len() + choice.reasoning.len() + choice.refusal.len() + calls.sum::<usize>()
}

/// What a consumer of the deltas knows of a turn
fn said(turn: &Turn) -> Vec<Choice> {
    let choices = turn.choices.iter().filter(|choice| !choice.is_empty()).cloned();
    choices.map(|choice| Choice { finish_reason: None, ..choice }).collect()
}

fn is_document(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start(), [b'{' | b'[', ..]) && serde_json::from_slice::<&RawValue>(body).is_ok()
}

/// The elements of an array come to the same as events
fn array_is_stream(plan: Plan, body: &[u8]) {
    let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(body) else { return };
    // In an event stream a CR would end a line, and a line without its LF is not the same text.
    if elements.is_empty() || body.contains(&b'\r') {
        return;
    }
    let mut events = String::new();
    for element in elements {
        for line in element.get().split('\n') {
            events += &format!("data: {line}\n");
        }
        events += "\n";
    }
    let plan = Plan { stream: true, ..plan };
    let array = Plan { content_type: Some(JSON), ..plan };
    let stream = Plan { content_type: Some("text/event-stream"), ..plan };
    debug_assert_eq!(plan.dialect.framing(array.content_type), Some(Framing::JsonArray));
    let (array, stream) =
        (play(array, body, &|all| vec![all]), play(stream, events.as_bytes(), &|all| vec![all]));
    assert_eq!(array.result, stream.result, "as an array, and as an event stream");
}
