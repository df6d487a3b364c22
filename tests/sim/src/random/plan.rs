//! What a run is made of: calls, and what their servers do.

use std::fmt;
use std::time::Duration;

use steadfast::call::{Retries, Shape};
use steadfast::config::{Field, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::{Ended, FailureKind, Stage};
use steadfast::retry::RetryBudgetSettings;

/// Calls, in a row or at once, over the connections that they leave each other, and what the servers do
///
/// Plain data: drawn ([`Plan::draw`]), or made by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The bounds of all calls
    pub config: RequestConfig,
    /// Seed of the random pauses of the first call; the others have the numbers after it
    pub seed: u64,
    /// Wall-clock time at the start, in seconds since the Unix epoch
    pub unix_seconds: u64,
    /// The calls share a retry budget, and what it allows
    pub budget: Option<RetryBudgetSettings>,
    /// One after the other, but for those that begin beside the one before
    pub calls: Vec<CallPlan>,
    /// What the server does in each attempt, in order; after the last one it begins anew
    pub exchanges: Vec<Exchange>,
}

/// One call, and whoever makes it
#[derive(Clone, Debug, PartialEq)]
pub struct CallPlan {
    /// Whose events the server speaks; `None` for an answer that is only bytes, which is no stream
    pub dialect: Option<Dialect>,
    /// How the answer comes
    pub shape: Shape,
    /// Whether more than one attempt may be made
    pub retries: Retries,
    /// Bytes of the request's body
    pub body_bytes: u32,
    /// The body is read as it goes out, and like this
    pub streamed: Option<Streamed>,
    /// Header fields are made for each attempt, and like this
    pub made: Option<MadeFields>,
    /// It goes to a proxy, which forwards it and answers in the server's place
    pub forwarded: bool,
    /// Between the end of the call before and this one; between their starts, where it begins beside that
    pub idle: Duration,
    /// Begins while the call before it may be under way
    pub beside: bool,
    /// Who makes the call, and drives it
    pub client: Client,
}

/// How a body is read as it goes out
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// Its length is known before
    pub of_known_length: bool,
    /// It can be read once
    pub once: bool,
    /// Before each read of it
    pub pause: Duration,
    /// The most bytes of one read; zero is no limit
    pub read_bytes: u32,
    /// It cannot be read on after so many bytes
    pub fails_at: Option<u32>,
}

/// How the header fields of each attempt are made
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFields {
    /// It takes so long
    pub pause: Duration,
    /// It fails for the connection of that number, from 1
    pub fails_at: Option<u32>,
}

/// The client's side of a call: its driver, and its consumer
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// The most bytes of one read; zero is no limit
    pub read_bytes: u32,
    /// The most bytes of one write; zero is no limit
    pub write_bytes: u32,
    /// The consumer is away after every so many items, for so long
    pub away: Option<(u32, Duration)>,
    /// While the consumer is away somebody else reports that deadlines have come
    pub watched: bool,
    /// The driver wakes up late every so many times, by so long
    pub late: Option<(u32, Duration)>,
    /// The machine is suspended once, after so many events and for so long
    pub suspended: Option<(u32, Duration)>,
    /// When the caller gives up
    pub cancel: Cancel,
    /// The consumer fails at its item of that number, from 1; zero is never
    pub fails_at: u32,
    /// At which steps a drain is dropped and taken up again: bit by bit, and round again
    pub drops: u32,
    /// Tells of connections that are closed already
    pub stale: bool,
    /// Looks at a connection that was left before it uses it
    pub looks: bool,
}

/// When a caller gives up
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cancel {
    /// Never
    #[default]
    Never,
    /// So long after the call's start
    After(Duration),
    /// Before the event of that number, from 1; 0 is before the call has begun
    AtEvent(u32),
}

/// What a server does in one attempt
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What becomes of opening a connection, where a new one is opened
    pub connect: Connect,
    /// On a connection that was left, the server's side ends so long after it is taken up again; with
    /// [`End::Open`] the server is gone, and nothing is ever heard of that
    pub stale: Option<(Duration, End)>,
    /// The bytes of a request that are taken before the answer begins, and no more before that;
    /// `None` is the whole request
    pub reads: Option<u32>,
    /// The connection breaks for writing once so many bytes of the request are taken
    pub write_breaks: Option<u32>,
    /// The transport has parsed the response, and reports facts of it
    pub facts: bool,
    /// From the request to the first byte of the response
    pub delay: Duration,
    /// Interim heads before the final one
    pub interims: u32,
    /// The head of the response
    pub head: Head,
    /// The body of a stream, and the pause before each piece; other bodies are whole at once, after
    /// the first of these pauses
    pub pieces: Vec<(Duration, Piece)>,
    /// The first bytes come one by one, each so long after the one before
    pub trickle: Option<Duration>,
    /// Bytes after the end of the response, so long after it
    pub surplus: Option<Duration>,
    /// Where the server's side ends, if before its last byte
    pub cut: Option<Cut>,
    /// How it ends, and how long after its last byte
    pub end: (Duration, End),
}

/// What becomes of opening a connection
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// It is open after so long
    Opens(Duration),
    /// It fails after so long
    Fails(Duration, Stage, FailureKind),
    /// Nothing is ever heard of it
    Silent,
}

/// How the server's side of a connection ends
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not at all: it stays open, and mute
    #[default]
    Open,
    /// A FIN
    Fin(Ended),
    /// A FIN, told twice
    FinTwice,
    /// A reset
    Reset,
}

/// Where the bytes of a server are cut off
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// After so many 65536ths of them
    At(u16),
    /// So many before their end
    Back(u32),
}

/// The head of a response
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its status
    pub status: u16,
    /// How long it asks to wait
    pub retry_after: RetryAfter,
    /// `x-should-retry`
    pub should_retry: Option<bool>,
    /// What the body is said to be
    pub content_type: ContentType,
    /// How the end of the body is found
    pub framing: Framing,
    /// What the body of an error says
    pub problem: Problem,
    /// The body comes as gzip, unasked, unless the connection's end is that of the body
    pub gzip: bool,
    /// Header fields of no meaning, in bytes
    pub padding: u32,
}

/// How a response asks to wait before another attempt
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// It does not
    None,
    /// `Retry-After`, in seconds
    Seconds(u32),
    /// `Retry-After`, in seconds and tenths: so many tenths
    Tenths(u32),
    /// `retry-after-ms`
    Millis(u32),
    /// `x-ms-retry-after-ms`, and a `Retry-After` of a minute, which it beats
    MillisAndSeconds(u32),
    /// `Retry-After`, as a date so many seconds after the call's wall clock at the run's start
    Date(u32),
    /// A date that is past
    Past,
    /// `Retry-After` with no meaning
    Garbage(&'static str),
    /// More digits than can be held
    Huge,
}

/// What a body is said to be
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// What it is
    Right,
    /// Nothing is said
    None,
    /// Plain text, whatever it is
    Plain,
    /// JSON, and where a stream was asked for, the whole answer is one JSON document indeed
    WholeJson,
    /// JSON, where Gemini was asked for a stream: its events are the elements of one array
    JsonArray,
    /// A page of HTML, which it is
    Html,
}

/// How the end of a body is found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Chunks of one piece each
    Chunks,
    /// `Content-Length`
    Length,
    /// The connection's end
    Eof,
    /// Chunks, the second of which is broken
    BrokenChunks,
}

/// What an error is about
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An overload, which passes
    Overload,
    /// A request that is wrong, and stays so
    Invalid,
    /// An account without money
    Quota,
}

/// A piece of a stream's body; a dialect that has no word for one leaves it out
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What comes before the first text
    Opening,
    /// Text that no other piece of the run has
    Text,
    /// Reasoning, and in the same event text that no other piece has
    Thought,
    /// Text of a second answer
    SecondChoice,
    /// Reasoning, or a refusal, of many bytes
    Long,
    /// A whole tool call
    Tool,
    /// A comment of the framing
    Comment,
    /// The provider's keep-alive
    Ping,
    /// An event of a kind that nobody knows
    Unknown,
    /// `null`
    Null,
    /// Usage, in an event of its own
    Usage,
    /// The completion marker
    Marker,
    /// The completion marker, where the provider stopped the model early
    StopsEarly,
    /// The sentinel
    Sentinel,
    /// An error inside the answer
    InBand(Problem),
    /// The prompt is refused
    Blocked,
    /// Data that is not JSON
    NotJson,
    /// An event that is larger than `max_event_bytes`, where that is small
    Flood,
}

impl Exchange {
    /// An answer of one piece of text that comes at once, and whose connection may be used again
    pub fn new() -> Self {
        let pieces = [Piece::Opening, Piece::Text, Piece::Marker, Piece::Sentinel];
        Self {
            connect: Connect::Opens(Duration::ZERO),
            stale: None,
            reads: None,
            write_breaks: None,
            facts: false,
            delay: Duration::ZERO,
            interims: 0,
            head: Head::new(200),
            pieces: pieces.map(|piece| (Duration::ZERO, piece)).to_vec(),
            trickle: None,
            surplus: None,
            cut: None,
            end: (Duration::ZERO, End::Open),
        }
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

impl Head {
    /// A head with that status, and nothing special
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            retry_after: RetryAfter::None,
            should_retry: None,
            content_type: ContentType::Right,
            framing: Framing::Chunks,
            problem: Problem::Overload,
            gzip: false,
            padding: 0,
        }
    }

    /// Whether the response holds an answer to a call with or without a dialect
    pub(crate) fn is_answer(&self, has_dialect: bool) -> bool {
        (200..300).contains(&self.status)
            && (!has_dialect || (self.status != 204 && self.content_type != ContentType::Html))
    }
}

impl CallPlan {
    /// A streaming call of that dialect, by a driver and a consumer that are always in time
    pub fn stream(dialect: Dialect) -> Self {
        Self {
            dialect: Some(dialect),
            shape: Shape::Stream,
            retries: Retries::Allowed,
            body_bytes: 2,
            streamed: None,
            made: None,
            forwarded: false,
            idle: Duration::ZERO,
            beside: false,
            client: Client { looks: true, ..Client::default() },
        }
    }
}

/// Line by line, without what is as usual
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = RequestConfig::default();
        for field in Field::ALL {
            if self.config.get(field) != usual.get(field) {
                writeln!(f, "config {field} = {}", self.config.get(field))?;
            }
        }
        writeln!(f, "pauses drawn from seed {}, wall clock {}", self.seed, self.unix_seconds)?;
        if let Some(budget) = &self.budget {
            writeln!(f, "{budget:?}")?;
        }
        for (number, call) in self.calls.iter().enumerate() {
            let CallPlan {
                dialect,
                shape,
                retries,
                body_bytes,
                streamed,
                made,
                forwarded,
                idle,
                beside,
                client,
            } = call;
            let dialect = dialect.map_or("no dialect", Dialect::name);
            writeln!(
                f,
                "call {}: {shape:?}, {dialect}, retries {retries:?}, body of {body_bytes} bytes, {} {idle:?}",
                number + 1,
                if *beside { "beside the one before, after" } else { "after" }
            )?;
            if let Some(streamed) = streamed {
                writeln!(f, "    {streamed:?}")?;
            }
            if let Some(made) = made {
                writeln!(f, "    {made:?}")?;
            }
            if *forwarded {
                writeln!(f, "    forwarded by a proxy")?;
            }
            let usual = Client { looks: client.looks, ..Client::default() };
            if *client != usual {
                writeln!(f, "    {client:?}")?;
            }
        }
        for (number, exchange) in self.exchanges.iter().enumerate() {
            writeln!(f, "exchange {}: {:?}, then {:?}", number + 1, exchange.connect, exchange.head)?;
            let Exchange {
                stale,
                reads,
                write_breaks,
                facts,
                delay,
                interims,
                trickle,
                surplus,
                cut,
                end,
                ..
            } = exchange;
            writeln!(
                f,
                "    delay {delay:?}, reads {reads:?}, write_breaks {write_breaks:?}, interims {interims}, facts {facts}, trickle {trickle:?}"
            )?;
            writeln!(f, "    surplus {surplus:?}, cut {cut:?}, end {end:?}, if reused: stale {stale:?}")?;
            for (pause, piece) in &exchange.pieces {
                writeln!(f, "    +{pause:?} {piece:?}")?;
            }
        }
        Ok(())
    }
}
