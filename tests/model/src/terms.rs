//! What can happen to a call, what can be seen of it, and under which settings.

use std::time::Duration;

use steadfast::call::{Retries, Shape, Timer};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::Stage;
use steadfast::outcome::{Billing, Phase};
use steadfast::time::Instant;

/// One thing that happens to a call
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// The caller wants the call to begin
    Start,
    /// Time goes on to the end of `total_deadline` before the call begins
    StartLate,
    /// The caller gives up
    Cancel,
    /// The consumer asks for more
    Taken,
    /// The consumer's callback fails
    ConsumerFails,
    /// A little time passes, less than to the next deadline
    Tick,
    /// The next deadline is slept past by a little, and nobody has told it yet
    Oversleep,
    /// Time passes to the next deadline, and it is told
    Elapse,
    /// The connection is open
    Connected,
    /// The connection is one that an earlier call left
    Reused,
    /// Nobody listens there
    Refused,
    /// The connection takes a part of the request
    SentPart,
    /// The connection takes what is left of the request
    SentAll,
    /// Writing fails
    WriteFails,
    /// 103, an interim response
    Interim,
    /// The first half of a stream's head
    HalfHead,
    /// The head of a stream, or the rest of it
    StreamHead,
    /// The head of a unary answer
    UnaryHead,
    /// 503 with its body
    Busy,
    /// 503 without its body
    BusyHead,
    /// 429 with its body, and a `Retry-After` that fits
    Limited,
    /// 429 with its body, and a `Retry-After` beyond every deadline
    LimitedLong,
    /// 400 with its body
    Bad,
    /// 503 with its body and `x-should-retry: false`
    BusyFinal,
    /// 400 with its body and `x-should-retry: true`
    BadAgain,
    /// 429 with its body, which says that a quota is used up
    Quota,
    /// The body of a unary answer, or of an error answer
    Body,
    /// The body of a unary answer, which is an error that may pass
    BodyOverload,
    /// The body of a unary answer, which is not JSON
    BodyNotJson,
    /// A piece of the answer
    Delta,
    /// Two pieces of the answer, in one read
    TwoDeltas,
    /// The first half of a piece of the answer
    HalfDelta,
    /// The other half
    RestDelta,
    /// A piece of the answer without its line end
    OpenDelta,
    /// That line end
    LineEnd,
    /// A comment
    Comment,
    /// The completion marker
    Marker,
    /// A completion marker that says that the answer was cut at its length
    LengthMarker,
    /// What the provider counted
    Usage,
    /// The sentinel
    Sentinel,
    /// A piece of the answer and everything that ends it, in one read
    DeltaToEnd,
    /// The completion marker and the end of the body, in one read
    MarkerAndEnd,
    /// An error inside the stream that may pass
    Overload,
    /// An error inside the stream that will not
    Invalid,
    /// An event that is not JSON
    NotJson,
    /// The proper end of the body
    BodyEnd,
    /// The proper end of the body, and bytes behind it
    BodyEndAndMore,
    /// The peer ends the connection
    Eof,
    /// The peer ends the connection, and TLS is not ended before it
    Cut,
    /// The connection breaks
    Reset,
    /// A byte of the request's body is read
    Supply,
    /// Much of it is read at once: `much_of` what is asked for
    SupplyMuch,
    /// It is found to have ended
    SupplyEnd,
    /// It cannot be read on
    SupplyFails,
    /// A byte of a body that is handed out as it comes
    RawByte,
    /// A piece of reasoning, of `THOUGHT_BYTES`
    Thought,
    /// A byte comes on a connection that is closed
    Late,
}

/// Bytes that are read at once where much of what is asked for is there: they fill the window by more than
/// half, and not wholly
pub(crate) fn much_of(wanted: usize) -> usize {
    wanted - wanted / 4
}

/// How much [`Input::Tick`] is
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// How far [`Input::Oversleep`] sleeps past the deadline
pub(crate) const LATE: Duration = Duration::from_millis(700);

/// The `Retry-After` of [`Input::Limited`]
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(3);

/// The `Retry-After` of [`Input::LimitedLong`]
pub(crate) const RETRY_AFTER_LONG: Duration = Duration::from_secs(5000);

/// The length of every unary body, filled up with blanks
pub(crate) const BODY_BYTES: usize = 256;

/// The length of [`Input::Thought`]
pub(crate) const THOUGHT_BYTES: usize = 60;

/// When every call is made; far from the origin of time, so that nothing leans on that
pub(crate) const BEGAN: Instant = Instant::from_nanos(1_000_000_000_000_000);

/// How a stream's body is framed
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// In chunks
    Chunked,
    /// By the end of its connection
    UntilEof,
}

/// The body of a request
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// There from the start
    Whole,
    /// Read as it goes out, in chunks
    Chunked,
    /// The same, which can be read once
    ChunkedOnce,
    /// Read as it goes out, and two bytes long
    OfTwoBytes,
}

/// The settings of a call, and what can happen to it
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name in reports
    pub name: &'static str,
    /// What the events mean; of no account to a body that is handed out as it comes
    pub dialect: Dialect,
    /// How the answer comes
    pub shape: Shape,
    /// Whether a stream comes in chunks
    pub framing: Framing,
    /// The body of the request
    pub upload: Upload,
    /// Whether the largest gap of a stream is compared
    pub gaps: bool,
    /// Whether more than one attempt may be made
    pub retries: Retries,
    /// Whether the driver drops its `Drain` at each item and goes on with another
    pub drops: bool,
    /// The bounds
    pub config: RequestConfig,
    /// What can happen
    pub alphabet: Vec<Input>,
}

impl Case {
    /// A call for a stream
    pub(crate) fn stream(name: &'static str, dialect: Dialect, alphabet: &[&[Input]]) -> Self {
        Self::new(name, dialect, Shape::Stream, alphabet)
    }

    /// A unary call
    pub(crate) fn unary(name: &'static str, alphabet: &[&[Input]]) -> Self {
        Self::new(name, Dialect::OpenAiChat, Shape::Unary, alphabet)
    }

    /// A call whose body is handed out as it comes
    pub(crate) fn raw(name: &'static str, alphabet: &[&[Input]]) -> Self {
        Self::new(name, Dialect::OpenAiChat, Shape::Raw, alphabet)
    }

    fn new(name: &'static str, dialect: Dialect, shape: Shape, alphabet: &[&[Input]]) -> Self {
        let bounds = Overrides::new()
            .connect_timeout(10.0)
            .request_timeout(30.0)
            .stream_idle_timeout(7.0)
            .total_deadline(100.0)
            .after_marker(2.0)
            .max_attempts(2);
        let (framing, retries, drops) = (Framing::Chunked, Retries::Allowed, false);
        let (upload, gaps) = (Upload::Whole, false);
        let config = RequestConfig::default();
        let alphabet = alphabet.concat();
        Self { name, dialect, shape, framing, upload, gaps, retries, drops, config, alphabet }.bounds(&bounds)
    }

    /// With other bounds than those that all cases share
    pub(crate) fn bounds(self, bounds: &Overrides) -> Self {
        let config = self.config.with(bounds).expect("bounds that are written here are in range");
        Self { config, ..self }
    }
}

/// What can be seen of a call
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A connection is asked for
    Connect(u32),
    /// A connection is to be closed
    Close(u32, Mode),
    /// A piece of the answer is delivered
    Delta,
    /// The same of its reasoning
    Thought,
    /// A byte of the body is handed out
    RawByte,
    /// The answer is whole
    Finished,
    /// The call waits
    Wait(Waiting),
    /// The call is over
    Done(Ended),
    /// Anything that the model has no word for
    Other(String),
}

/// What a connection is closed for
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To be dropped
    Abort,
    /// To be used again
    Keep,
    /// To be used again once its message has ended
    Finish,
}

/// What a call waits for
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it ends
    pub deadline: Option<(Instant, Timer)>,
    /// The connection, whether it is to be read and written, and how much of the request is to be read
    pub io: Option<(u32, bool, bool, usize)>,
    /// Whether the consumer has an item
    pub taken: bool,
}

/// How a call ended
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How
    pub result: Outcome,
    /// What it may have cost, for one that failed
    pub billing: Option<Billing>,
    /// For how long the server asked to wait, for one that failed
    pub retry_after: Option<Duration>,
    /// How many attempts were made
    pub attempts: u32,
    /// How many pieces of the answer there are
    pub pieces: usize,
    /// Whether the provider said why it stopped
    pub has_reason: bool,
    /// Whether the provider said what it counted
    pub has_usage: bool,
    /// The longest time between bytes of the last stream, where it is compared
    pub largest_gap: Option<Duration>,
}

/// The results of a call, as far as the model tells them apart
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The answer is whole
    Completed,
    /// The provider stopped early
    Incomplete,
    /// A wait reached its bound
    Timeout {
        /// Which one
        phase: Phase,
        /// How long it lasted
        elapsed: Duration,
        /// How long it was allowed to last
        limit: Duration,
        /// The field that bounds it
        setting: &'static str,
    },
    /// A status, and whether its body is whole
    Status(u16, bool),
    /// An error inside the answer
    InBand,
    /// The body ended properly, and too early
    TruncatedAtEnd,
    /// The body was cut
    TruncatedInBody,
    /// There was no answer
    Empty,
    /// The connection failed
    Transport(Stage),
    /// The peer broke a protocol
    Protocol,
    /// The caller gave up
    Cancelled,
    /// The consumer failed
    Consumer,
    /// Anything that the model has no word for
    Other(&'static str),
}
