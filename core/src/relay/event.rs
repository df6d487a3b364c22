//! What the exchange is told, asks for, and delivers.

use std::sync::Arc;

use http::StatusCode;

use super::answer::{Code, Served};
use super::progress::Gap;
use super::route::Routes;
use crate::call::{AttemptId, CloseMode, Origin};
use crate::http1::{Fields, IncomingRequest};
use crate::outcome::Timeline;

/// One side of an exchange
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The connection of the app, which is open from the start
    App,
    /// A connection to a provider
    Up(AttemptId),
}

/// What the driver has to start; none is awaited
#[derive(Debug)]
pub enum Command {
    /// Get a connection to the provider, and report `Connected`, `Reused` or `Failed`; or
    /// [`Fact::Refused`] where none may be opened now
    ///
    /// [`AttemptId::may_be_reused`] does not count here: `reuse` says whether one will do that an
    /// earlier exchange left.
    Connect {
        /// The connection's name
        id: AttemptId,
        /// Where the provider is
        origin: Origin,
        /// Whether one will do that an earlier exchange left
        reuse: bool,
    },
    /// Close a connection to a provider, open or still opening; nothing more is reported of it
    Close(AttemptId, CloseMode),
    /// The request is for the relay itself: report [`Fact::Served`]
    Serve(Box<IncomingRequest>),
    /// End our side of the app's connection behind what was written, and read on
    Finish,
}

/// Facts of the relay alone
#[derive(Debug)]
pub enum Fact {
    /// The connection that was asked for may not be opened: the relay is full, or about to stop
    /// (rule RLY-6)
    Refused(AttemptId, Code),
    /// The relay is about to stop: this exchange goes on to its end and the connection is closed then;
    /// one that waits for a request is closed now
    Draining,
    /// Other routes, in force for every request that begins from now on
    Routes(Arc<Routes>),
    /// What is answered to the request that [`Command::Serve`] named
    Served(Box<Served>),
}

/// What the exchange delivers
#[derive(Debug)]
pub enum Item<'i> {
    /// Bytes for a connection: write `before` and then `bytes`, as much as it takes at once, and say by
    /// [`Drain::took`](crate::machine::Drain::took) how many of both; what is left waits in
    /// [`Machine::outgoing`](crate::machine::Machine::outgoing)
    Pass {
        /// Whose
        to: Link,
        /// What has been waiting to be written
        before: &'i [u8],
        /// What lies in the driver's own buffer
        bytes: &'i [u8],
    },
    /// What is to be recorded; nothing of it is kept here
    Tap(Tap<'i>),
    /// The exchange is over. The next one may follow on the same connection
    Over(Box<Exchanged>),
}

/// A piece of what is recorded, as it goes by
#[derive(Debug)]
pub enum Tap<'i> {
    /// The app's request, before anything is changed in it
    Request(&'i IncomingRequest),
    /// A piece of its body
    RequestBody(&'i [u8]),
    /// The head of the provider's answer
    Answer(StatusCode, &'i Fields),
    /// A piece of its body
    AnswerBody(&'i [u8]),
}

/// Why an exchange has a deadline; at the same instant the earlier one in this list wins
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// From the start of the request to the last byte of the answer
    Total,
    /// From the start of the request to the head of the provider's answer
    FirstByte,
    /// From the last part of the answer that reached the app
    Silence,
    /// Opening a connection to the provider
    Connect,
    /// From the first byte of a request to the end of its head
    RequestHead,
    /// The pause before a request is sent again
    Pause,
    /// Reading what the app still sends behind an answer of the relay's own
    Linger,
    /// Waiting for a request
    KeepAlive,
}

impl Timer {
    /// The name of the limit, as it stands in a route's settings
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::FirstByte => "first_byte",
            Self::Silence => "silence",
            Self::Connect => "connect",
            Self::RequestHead => "request_head",
            Self::Pause => "pause",
            Self::Linger => "linger",
            Self::KeepAlive => "keep_alive",
        }
    }
}

/// How an exchange ended
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The provider's answer has reached the app whole
    Passed,
    /// The relay answered itself, what was asked of itself
    Served,
    /// The relay answered with an error of its own
    Refused(Code),
    /// A limit ended the answer: the connection was closed, nothing was added
    Limit(Timer),
    /// The provider's answer broke off, and so did the app's
    Broken,
    /// The app has left
    AppLeft,
    /// The relay was stopped
    Stopped,
}

impl Ending {
    /// What kind of ending it is, in snake case
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Served => "served",
            Self::Refused(_) => "refused",
            Self::Limit(_) => "limit",
            Self::Broken => "broken",
            Self::AppLeft => "app_left",
            Self::Stopped => "stopped",
        }
    }
}

/// What is known of an exchange that is over
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Its id, as it stands in answers of the relay's own
    pub request_id: String,
    /// How it ended
    pub ending: Ending,
    /// The label of the key that the app showed, where the relay asks for one
    pub app: Option<Arc<str>>,
    /// The name of the route that it took; `None` where none did
    pub route: Option<Arc<str>>,
    /// The status that the app got, where it got one
    pub status: Option<StatusCode>,
    /// How often the request was sent, in part at least
    pub sends: u32,
    /// Bytes of body from the app
    pub request_bytes: u64,
    /// Bytes of body from the provider, of the answer that was passed on
    pub answer_bytes: u64,
    /// The longest time in which no part of the answer reached the app, which [`Limits::silence`] bounds;
    /// `None` before the head of an answer
    ///
    /// [`Limits::silence`]: super::Limits::silence
    pub longest_gap: Option<Gap>,
    /// Attempts, waits and phases
    pub timeline: Timeline,
}

/// Where an exchange is
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waiting for a request, or for the end of its head
    Idle,
    /// Waiting for what the relay itself answers
    Serving,
    /// Opening a connection to the provider
    Connecting,
    /// Sending the request, and waiting for the head of the answer
    Waiting,
    /// Pausing before the request is sent again
    Pausing,
    /// Passing the answer on
    Answering,
    /// Writing the rest of an answer whose end is known
    Flushing,
    /// Reading what the app still sends, so that it sees the answer
    Lingering,
    /// Over, and the connection with it
    Over,
}
