//! A whole scenario: the call, the server's script, and the ends expected.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::parse::{self, ParseError};
use crate::script::Script;

/// A call, a server, and how it must end
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How much later than its bound a timeout may be seen on real sockets; 0.25 s if not stated
    pub tolerance: Duration,
    /// What the caller does
    pub call: Call,
    /// What the server does
    pub script: Script,
    /// How each call must end, in order; never empty, the last one holds for all further calls
    pub expect: Vec<Expect>,
    /// What the server must have seen by the end
    pub seen: Seen,
}

impl Scenario {
    /// Reads a scenario file
    ///
    /// Errors: [`ParseError`], which names the scenario and the field.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::scenario(text)
    }

    /// The scenario's name: that of its file
    pub fn name(&self) -> &str {
        &self.script.name
    }

    /// What the server does, in a few words for a table
    pub fn about(&self) -> &str {
        &self.script.about
    }

    /// How call number `call` must end, from 0
    ///
    /// # Panics
    ///
    /// If `expect` was emptied by hand: a parsed scenario expects at least one end.
    pub fn expected(&self, call: u32) -> &Expect {
        let mut first_after = 0;
        for expect in &self.expect {
            first_after += u64::from(expect.times);
            if u64::from(call) < first_after {
                return expect;
            }
        }
        self.expect.last().expect("a scenario expects at least one end")
    }
}

/// What the caller does
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Whether it asks for a stream
    pub shape: Shape,
    /// The dialect it speaks
    pub dialect: Dialect,
    /// Fields of the configuration: seconds, possibly infinite, or a count
    pub config: BTreeMap<String, f64>,
    /// The least length of the request body in bytes, by padding; 0 for none
    pub body_bytes: u64,
    /// How slowly a stream's deltas are taken; at once where absent
    pub consumer: Option<Consumer>,
    /// When the caller gives up
    pub cancel: Option<Cancel>,
    /// How many calls are made, at least 1
    pub calls: u32,
    /// Whether they all run at once; else one after the other
    pub parallel: bool,
}

/// Whether an answer comes whole or as it is made
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Whole
    Unary,
    /// As it is made
    Stream,
}

/// The dialect of a provider's API
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI Chat Completions and compatible
    OpenaiChat,
    /// OpenAI Responses
    OpenaiResponses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini `generateContent`
    Gemini,
}

/// A consumer that takes its time
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// How long it works before it asks for more
    pub pause: Duration,
    /// After how many deltas it does so, at least 1
    pub every: u32,
}

/// When a caller gives up
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// So long after the call's start; at zero before anything was done
    At(Duration),
    /// When it has taken so many deltas, at least 1
    AfterDeltas(u32),
    /// When it has the completed turn
    AfterTurn,
}

/// How one call must end; what is absent may be anything
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// For how many calls in a row this holds, at least 1
    pub times: u32,
    /// The kind of end
    pub result: End,
    /// Which bound fired: present exactly for a timeout
    pub phase: Option<Phase>,
    /// The bound that fired: the error's `elapsed` lies between it and it plus the tolerance
    pub limit: Option<Duration>,
    /// The status: present exactly for a status
    pub status: Option<u16>,
    /// The body that came with the status, as far as it came
    pub body: Option<String>,
    /// The provider's word for why it stopped, in the turn or the blocking
    pub finish_reason: Option<String>,
    /// Text of the turn, partial where the call failed
    pub text: Option<String>,
    /// Length of that text in bytes, where it is too long to write down
    pub text_bytes: Option<u64>,
    /// Tokens of the answer, as the provider counted them
    pub output_tokens: Option<u64>,
    /// Attempts made
    pub attempts: Option<u32>,
    /// What the failure may have cost
    pub billing: Option<Billing>,
    /// The least time from the call's start to its end
    pub min_elapsed: Option<Duration>,
    /// The most time from the call's start to its end; holds without further tolerance
    pub max_elapsed: Option<Duration>,
    /// The most time from the call's start to the delivery of its completed turn
    pub max_turn_at: Option<Duration>,
}

/// The kind of an end
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// A whole answer
    Completed,
    /// An answer that the provider stopped early
    Incomplete,
    /// A prompt that the provider refused
    Blocked,
    /// A bound fired
    Timeout,
    /// An answer with an HTTP status that is no success
    Status,
    /// An error inside a successful answer
    InBand,
    /// An end before the turn was complete
    Truncated,
    /// A success without any answer in it
    Empty,
    /// The connection failed
    Transport,
    /// The peer broke a protocol
    Protocol,
    /// A proxy on the way refused or failed
    Proxy,
    /// The caller gave up
    Cancelled,
    /// The caller's own code failed
    Consumer,
}

/// Which bound fired
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// `connect_timeout`
    Connect,
    /// `request_timeout`
    Request,
    /// `stream_idle_timeout`
    StreamIdle,
    /// `total_deadline` or `stream_deadline`
    Deadline,
    /// `content_idle_timeout`
    ContentIdle,
    /// `first_content_timeout`
    FirstContent,
    /// The wait behind another call
    Queue,
}

/// What a failure may have cost
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    /// No byte of the request went out
    NotSent,
    /// The provider may have run it
    MaybeBilled,
    /// Some of the answer reached the caller
    Delivered,
}

/// What the server must have seen by the end; what is absent may be anything
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Connections accepted
    pub connections: Option<u32>,
    /// Requests whose head came
    pub requests: Option<u32>,
    /// The least time for which its sending was held up by a peer that did not read
    pub min_blocked: Option<Duration>,
    /// The most bytes that it read of all connections together
    pub max_received: Option<u64>,
    /// Connections whose close by the peer it saw
    pub closed_by_peer: Option<u32>,
}
