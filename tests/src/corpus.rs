//! Real failures as small inputs: what a server sends and when, and how the call must end.
//!
//! A case is played under virtual time with its bytes read whole, byte by byte and at random cuts,
//! and every run must come to the same turn, the same end at the same instant, and the same
//! requests. Times are seconds from the moment at which the request was wholly written.

mod checks;
mod told;

use std::time::Duration;

use steadfast::call::{Env, Request, RequestBuilder};
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;
use steadfast::outcome::{CallError, Completion, Ending, ErrorKind, Note, Turn};
use steadfast_scenario::{
    Call, Cancel, Connection, Consumer, Listen, Read, Script, Server, Shape, Step, Tally,
};
use steadfast_sim::{Played, Sim, Split};

pub use checks::deliveries;

/// The head of a stream whose body is chunked
pub const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// How a server's side of a connection ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last chunk of the body, then the connection is held open
    Clean,
    /// A FIN in the middle of a chunked body; for any other body simply a FIN
    Cut,
    /// A reset
    Reset,
    /// Nothing more comes, and the socket stays open
    Open,
}

/// A call against one scripted answer after the other
#[derive(Clone)]
pub struct Case {
    request: RequestBuilder,
    overrides: Overrides,
    connections: Vec<Connection>,
    caller: Call,
    listen: Listen,
    tls: bool,
    env: Env,
}

/// One answer: pieces and pauses, after the request was read
#[derive(Clone, Default)]
pub struct Answer {
    steps: Vec<Step>,
    at: Duration,
    chunked: bool,
}

impl Answer {
    /// A stream with the usual head at t = 0
    pub fn stream() -> Self {
        Self::raw(HEAD).chunked()
    }

    /// An answer whose head is these bytes, sent at t = 0
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::default().send(bytes)
    }

    /// A whole answer with a length
    pub fn whole(status: &str, fields: &str, body: &str) -> Self {
        Self::raw(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// What follows is sent in chunks
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Sends these bytes of the body
    pub fn send(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut framed = Vec::new();
        if self.chunked {
            framed.extend(format!("{:x}\r\n", bytes.len()).as_bytes());
            framed.extend(bytes);
            framed.extend(b"\r\n");
        } else {
            framed.extend(bytes);
        }
        self.steps.push(Step::Send(framed));
        self
    }

    /// Sends each of these so that no read has more than one, a millisecond apart
    pub fn reads(mut self, pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        const APART: Duration = Duration::from_millis(1);
        for piece in pieces {
            self = self.send(piece);
            self.steps.push(Step::Pause(APART));
            self.at += APART;
        }
        self
    }

    /// Sends these bytes as they are, whatever the framing
    pub fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Send(bytes.as_ref().to_vec()));
        self
    }

    /// Lets time pass until `seconds`
    ///
    /// # Panics
    ///
    /// If that has passed.
    pub fn at(mut self, seconds: f64) -> Self {
        let at = Duration::from_secs_f64(seconds);
        let pause = at.checked_sub(self.at).expect("time goes forward");
        if !pause.is_zero() {
            self.steps.push(Step::Pause(pause));
        }
        self.at = at;
        self
    }

    /// Sends `bytes` every `seconds`, for ever
    pub fn for_ever(mut self, seconds: f64, bytes: impl AsRef<[u8]>) -> Self {
        let piece = Self { steps: Vec::new(), at: Duration::ZERO, chunked: self.chunked }.send(bytes);
        let mut steps = vec![Step::Pause(Duration::from_secs_f64(seconds))];
        steps.extend(piece.steps);
        self.steps.push(Step::Repeat { times: None, steps });
        self
    }

    /// Ends the connection
    pub fn end(mut self, end: End) -> Connection {
        match end {
            End::Clean if self.chunked => self.steps.push(Step::Send(b"0\r\n\r\n".to_vec())),
            End::Clean | End::Open | End::Reset | End::Cut => {}
        }
        let mut steps = vec![Step::Read(Read::Request)];
        steps.append(&mut self.steps);
        steps.extend(match end {
            End::Clean if self.chunked => vec![Step::AwaitClose],
            // The end of a body that nothing else delimits
            End::Clean => vec![Step::CloseNotify, Step::AwaitClose],
            End::Cut => vec![Step::Fin, Step::AwaitClose],
            End::Reset => vec![Step::Reset],
            End::Open => vec![Step::AwaitClose],
        });
        Connection { times: 1, steps }
    }
}

impl Case {
    /// A stream of that dialect
    pub fn stream(dialect: Dialect) -> Self {
        Self::new(
            Request::post("http://corpus.invalid/v1").body("{}").dialect(dialect).stream(),
            Shape::Stream,
        )
    }

    /// A unary call of that dialect
    pub fn unary(dialect: Dialect) -> Self {
        Self::new(Request::post("http://corpus.invalid/v1").body("{}").dialect(dialect), Shape::Unary)
    }

    fn new(request: RequestBuilder, shape: Shape) -> Self {
        let caller = Call {
            shape,
            dialect: steadfast_scenario::Dialect::OpenaiChat,
            config: Default::default(),
            body_bytes: 0,
            consumer: None,
            cancel: None,
            calls: 1,
            parallel: false,
        };
        Self {
            request,
            overrides: Overrides::new().max_attempts(1),
            connections: Vec::new(),
            caller,
            listen: Listen::Accept,
            tls: false,
            env: Env { seed: 1, unix_at_origin: Duration::ZERO },
        }
    }

    /// Changes the request
    pub fn request(mut self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        self.request = change(self.request);
        self
    }

    /// Changes the configuration, which makes one attempt where it says nothing else
    pub fn config(mut self, change: impl FnOnce(Overrides) -> Overrides) -> Self {
        self.overrides = change(self.overrides);
        self
    }

    /// The answer on the next connection; the last one answers all further ones
    pub fn answer(mut self, connection: Connection) -> Self {
        self.connections.push(connection);
        self
    }

    /// A stream of this body in one chunk, on the next connection
    pub fn body(self, body: impl AsRef<[u8]>, end: End) -> Self {
        self.answer(Answer::stream().send(body).end(end))
    }

    /// Over TLS, where an end without `close_notify` is no clean one
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Another way to listen
    pub fn listen(mut self, listen: Listen) -> Self {
        self.listen = listen;
        self
    }

    /// The consumer works for `seconds` after each delta
    pub fn slow_consumer(mut self, seconds: f64) -> Self {
        self.caller.consumer = Some(Consumer { pause: Duration::from_secs_f64(seconds), every: 1 });
        self
    }

    /// The caller gives up
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.caller.cancel = Some(cancel);
        self
    }

    /// The seed of the call, and the wall-clock time at which it begins, in seconds since the epoch
    pub fn env(mut self, seed: u64, unix: u64) -> Self {
        self.env = Env { seed, unix_at_origin: Duration::from_secs(unix) };
        self
    }

    /// Plays it, whole, byte by byte, and at random cuts
    ///
    /// # Panics
    ///
    /// If two of the runs differ.
    pub fn play(&self) -> Ran {
        let whole = self.play_whole();
        let random = (0..8).map(|seed| Split::Random(fastrand::Rng::with_seed(seed), 48));
        for split in std::iter::once(Split::UpTo(1)).chain(random) {
            let cut = self.play_split(split.clone());
            assert_eq!(cut.facts(), whole.facts(), "read as {split:?}");
        }
        whole
    }

    /// Plays it in one way, with its bytes read whole: for many runs that differ in something else
    pub fn play_whole(&self) -> Ran {
        self.play_split(Split::UpTo(16 * 1024))
    }

    fn play_split(&self, split: Split) -> Ran {
        let script = Script {
            name: "corpus".to_owned(),
            about: String::new(),
            server: Server { listen: self.listen, tls: self.tls, receive_buffer: None, send_buffer: None },
            connections: self.connections.clone(),
        };
        let request =
            self.request.clone().overrides(self.overrides).build().expect("a request that can be sent");
        let mut sim = Sim::new(&script).split(split).env(self.env);
        let played = sim.play(request, &self.caller);
        let ran = Ran { played, tally: sim.tally() };
        ran.check(self.caller.shape);
        ran
    }
}

/// What came of a case
#[derive(Debug)]
pub struct Ran {
    /// The call
    pub played: Played,
    /// What the server saw
    pub tally: Tally,
}

impl Ran {
    /// What no split of the bytes may change
    fn facts(&self) -> String {
        let timeline = &self.played.outcome.timeline;
        let end = match &self.played.outcome.result {
            Ok(completion) => format!("{:?}", completion.ending),
            Err(error) => format!("{error} {:?} {:?}", error.billing, error.retry_after),
        };
        format!(
            "{end} {:?} {:?} {:?} {:?} {} requests, notes {:?}",
            self.turn(),
            self.played.turn_of_deltas.choices,
            timeline.elapsed(),
            self.played.turn_at,
            self.tally.requests,
            timeline.notes,
        )
    }

    /// The answer as far as it came
    pub fn turn(&self) -> &Turn {
        self.played.outcome.turn()
    }

    /// The successful end
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn completion(&self) -> &Completion {
        self.played
            .outcome
            .result
            .as_ref()
            .unwrap_or_else(|error| panic!("failed: {error}\n{}", self.played.outcome.timeline))
    }

    /// The failure
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn error(&self) -> &CallError {
        match &self.played.outcome.result {
            Err(error) => error,
            Ok(completion) => panic!("ended well: {:?} with {:?}", completion.ending, completion.turn),
        }
    }

    /// The kind of failure
    pub fn kind(&self) -> &ErrorKind {
        &self.error().kind
    }

    /// Seconds from start to end
    pub fn seconds(&self) -> f64 {
        self.played.outcome.timeline.elapsed().as_secs_f64()
    }

    /// Whether the timeline has that note
    pub fn noted(&self, note: Note) -> bool {
        self.played.outcome.timeline.notes.contains(&note)
    }

    /// Checks for a whole answer
    ///
    /// # Panics
    ///
    /// If it is not that.
    pub fn assert_completed(&self, finish_reason: Option<&str>, text: &str) -> &Self {
        assert_eq!(self.completion().ending, Ending::Completed);
        assert_eq!((self.turn().finish_reason(), self.turn().text()), (finish_reason, text));
        self
    }

    /// Checks for an answer that the provider stopped early
    ///
    /// # Panics
    ///
    /// If it is not that.
    pub fn assert_incomplete(&self, word: &str, text: &str) -> &Self {
        assert_eq!(self.completion().ending, Ending::Incomplete(word.to_owned()));
        assert_eq!(self.turn().text(), text);
        self
    }

    /// Checks for a failure of that kind, by its name, with this much of the answer
    ///
    /// # Panics
    ///
    /// If it is not that.
    pub fn assert_failed(&self, kind: &str, text: &str) -> &Self {
        assert_eq!((self.kind().name(), self.turn().text()), (kind, text), "{}", self.error());
        self
    }

    /// Checks how many requests the server saw
    ///
    /// # Panics
    ///
    /// If there were not so many.
    pub fn assert_requests(&self, requests: u32) -> &Self {
        assert_eq!(self.tally.requests, requests);
        self
    }
}

/// The events that cases are written in, one JSON document in each
pub mod events {
    /// Chat: a piece of text
    pub fn c(text: &str) -> String {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    }

    /// Chat: a finish reason
    pub fn f(reason: &str) -> String {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
    }

    /// Chat: a fragment of `choices[0].delta.tool_calls`
    pub fn tool(call: &str) -> String {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}},\"finish_reason\":null}}]}}\n\n"
        )
    }

    /// Chat: usage, and no choice
    pub const U: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n";

    /// Chat: the sentinel
    pub const D: &str = "data: [DONE]\n\n";

    /// Anthropic: the message starts
    pub const AS: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";

    /// Anthropic: a block of text starts
    pub const AB: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";

    /// Anthropic: a piece of text
    pub fn at(text: &str) -> String {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    }

    /// Anthropic: the block ends
    pub const AE: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";

    /// Anthropic: the stop reason
    pub fn ad(reason: &str) -> String {
        format!(
            "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":2}}}}\n\n"
        )
    }

    /// Anthropic: the message ends
    pub const AX: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    /// Anthropic: a ping
    pub const AP: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

    /// Responses: the response is created
    pub const RC: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"status\":\"in_progress\",\"output\":[]}}\n\n";

    /// Responses: a piece of text
    pub fn rt(text: &str) -> String {
        format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"i1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{text}\"}}\n\n"
        )
    }

    /// Responses: the response is complete
    pub const RX: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":9,\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":2,\"total_tokens\":7}}}\n\n";

    /// Gemini: a piece of text
    pub fn g(text: &str) -> String {
        format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\r\n\r\n"
        )
    }

    /// Gemini: the last piece of text, with its finish reason
    pub fn gf(text: &str, reason: &str) -> String {
        format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"{reason}\"}}]}}\r\n\r\n"
        )
    }
}
