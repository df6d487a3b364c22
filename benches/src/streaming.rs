//! A call in the middle of a stream, fed event by event.

use std::time::Duration;

use serde_json::json;
use steadfast::call::{AttemptId, Call, Command, Env, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::machine::{Drain, Event, Machine, Step};
use steadfast::outcome::Delta;
use steadfast::time::Instant;

/// The dialects whose answers are at hand
pub const DIALECTS: [Dialect; 4] =
    [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini];

/// How the bytes of a stream arrive, and how their items are taken
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Each event whole in one read, and every read drained to its end
    Whole,
    /// Each event cut in two, and every read drained to its end
    Split,
    /// Each event in a chunk of its own, and the drain dropped at each item, as a pulled driver does
    Pulled,
    /// Eight events in a read, and the drain dropped at each item
    PulledByEight,
}

/// Every [`Manner`]
pub const MANNERS: [Manner; 4] = [Manner::Whole, Manner::Split, Manner::Pulled, Manner::PulledByEight];

/// A call that is streaming
pub struct Streaming {
    call: Call,
    id: AttemptId,
    now: Instant,
    /// Bytes of text and arguments that were lent
    pub taken: usize,
}

impl Streaming {
    /// A call whose response has begun: its head came, and the first events of its answer
    pub fn new(dialect: Dialect) -> Self {
        let request = Request::post("https://api.example.com/v1/messages")
            .bearer("sk-0123456789abcdef0123456789abcdef")
            .json(&json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Say hello."}]}))
            .dialect(dialect)
            .stream()
            .build()
            .expect("a valid request");
        let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
        let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
        let id = match call.handle(Instant::ORIGIN, Event::Start).expect("a call that begins").next() {
            Step::Do(Command::Connect(id)) => id,
            Step::Do(Command::Close(..) | Command::Retry(_))
            | Step::Deliver(_)
            | Step::Wait(_)
            | Step::Done(_) => {
                panic!("a call begins with a connection")
            }
        };
        let mut streaming = Self { call, id, now: Instant::ORIGIN, taken: 0 };
        streaming.feed(Event::Connected(id));
        let request = streaming.call.outgoing(id).iter().map(|part| part.len()).sum();
        streaming.feed(Event::Sent(id, request));
        let head = "HTTP/1.1 200 OK\r\ndate: Mon, 07 Jul 2025 12:00:00 GMT\r\n\
            content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\
            x-request-id: req_0123456789\r\nserver: example\r\n\r\n";
        streaming.feed(Event::Received(id, head.as_bytes()));
        streaming.receive(chunk(opening(dialect)).as_bytes());
        streaming
    }

    /// The call
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The room that the turn's growing texts have
    pub fn room(&self) -> [usize; 2] {
        let choice = self.call.turn().choices.first();
        let arguments =
            choice.and_then(|choice| choice.tool_calls.last()).map(|call| call.arguments.capacity());
        [choice.map_or(0, |choice| choice.text.capacity()), arguments.unwrap_or(0)]
    }

    /// Bytes arrive, and all that comes of them is taken
    pub fn receive(&mut self, bytes: &[u8]) {
        self.feed(Event::Received(self.id, bytes));
        self.feed(Event::Taken);
    }

    /// As [`Streaming::receive`], dropping the drain at each item
    pub fn receive_pulled(&mut self, bytes: &[u8]) {
        self.now = self.now + Duration::from_millis(1);
        let Self { call, taken, .. } = self;
        let mut drain =
            call.handle(self.now, Event::Received(self.id, bytes)).expect("a driver that is right");
        loop {
            let wait = match drain.next() {
                Step::Deliver(item) => {
                    *taken += weight(&item);
                    None
                }
                Step::Wait(wait) => Some(wait),
                Step::Do(_) | Step::Done(_) => panic!("the stream goes on"),
            };
            drop(drain);
            drain = match wait {
                None => call.drain(),
                Some(wait) if wait.taken => {
                    call.handle(self.now, Event::Taken).expect("a driver that is right")
                }
                Some(_) => return,
            };
        }
    }

    fn feed<'e>(&'e mut self, event: Event<'e, Call>) {
        self.now = self.now + Duration::from_millis(1);
        let drain = self.call.handle(self.now, event).expect("a driver that is right");
        self.taken += drained(drain);
    }
}

/// Takes every step until there is nothing more to do; how many bytes were lent
fn drained(mut drain: Drain<'_, Call>) -> usize {
    let mut taken = 0;
    loop {
        match drain.next() {
            Step::Deliver(item) => taken += weight(&item),
            Step::Wait(_) => return taken,
            Step::Do(_) | Step::Done(_) => panic!("the stream goes on"),
        }
    }
}

fn weight(item: &Item<'_>) -> usize {
    match item {
        Item::Delta(Delta::Text { text, .. }) => text.len(),
        Item::Delta(Delta::ToolArguments { fragment, .. }) => fragment.len(),
        Item::Delta(_) | Item::Bytes(_) | Item::Unknown { .. } | Item::Finished(_) => 0,
    }
}

/// `content` as one chunk of the chunked transfer coding
pub fn chunk(content: &str) -> String {
    format!("{:x}\r\n{content}\r\n", content.len())
}

/// The events of an answer before its first text
#[expect(clippy::wildcard_enum_match_arm, reason = "DIALECTS lists those that are at hand")]
fn opening(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiChat => concat!(
            r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","#,
            r#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
            "\n\n",
        ),
        Dialect::OpenAiResponses => concat!(
            "event: response.created\n",
            r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}"#,
            "\n\nevent: response.output_item.added\n",
            r#"data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
            "\n\n",
        ),
        Dialect::Anthropic => concat!(
            "event: message_start\n",
            r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}"#,
            "\n\nevent: content_block_start\n",
            r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            "\n\n",
        ),
        Dialect::Gemini => concat!(
            r#"data: {"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}"#,
            "\n\n",
        ),
        _ => panic!("no answer of that dialect is at hand"),
    }
}

/// One event that brings a token of text, with an escape in it where `escaped`
#[expect(clippy::wildcard_enum_match_arm, reason = "DIALECTS lists those that are at hand")]
pub fn text_event(dialect: Dialect, escaped: bool) -> String {
    let text = if escaped { r"\n \u00e9" } else { " token" };
    let event = match dialect {
        Dialect::OpenAiChat => format!(
            r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{{"index":0,"delta":{{"content":"{text}"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
        ),
        Dialect::OpenAiResponses => format!(
            "event: response.output_text.delta\n{}",
            format_args!(
                r#"data: {{"type":"response.output_text.delta","sequence_number":9,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"{text}","logprobs":[],"obfuscation":"Qp4t"}}"#
            )
        ),
        Dialect::Anthropic => format!(
            "event: content_block_delta\n{}",
            format_args!(
                r#"data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
            )
        ),
        Dialect::Gemini => format!(
            r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":5,"candidatesTokenCount":7,"totalTokenCount":12}},"modelVersion":"m","responseId":"r"}}"#
        ),
        _ => panic!("no answer of that dialect is at hand"),
    };
    event + "\n\n"
}
