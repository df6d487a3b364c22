//! How often each fault, and each transition of the call machine, was met.

use std::fmt;

use steadfast::call::State;

/// Makes the faults and their names from one list
macro_rules! faults {
    ($(#[doc = $about:literal] $variant:ident $name:literal,)+) => {
        /// Something out of the ordinary that a run can meet
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $(#[doc = $about] $variant,)+
        }

        impl Fault {
            /// All of them: first the wire's, then the client's
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// Its name
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

faults! {
    /// A connection that takes its time
    SlowConnect "slow-connect",
    /// A connection that is not made
    ConnectFails "connect-fails",
    /// A connection of which nothing is heard
    ConnectSilent "connect-silent",
    /// A connection that ended while it was left
    StaleConnection "stale-connection",
    /// Bytes on a connection before the request
    UnaskedBytes "unasked-bytes",
    /// A server that does not read on
    UnreadRequest "unread-request",
    /// An answer before the whole request
    EarlyAnswer "early-answer",
    /// A connection that breaks for writing
    WriteBreaks "write-breaks",
    /// An interim head
    Interim "interim-head",
    /// A head larger than its bound
    LargeHead "large-head",
    /// A status that is no success
    ErrorStatus "error-status",
    /// A wish to wait
    RetryAfter "retry-after",
    /// `x-should-retry`
    ShouldRetry "x-should-retry",
    /// A page of HTML
    Html "html",
    /// One JSON document in place of a stream
    WholeJson "whole-json",
    /// The events of Gemini as one JSON array
    JsonArray "json-array",
    /// A body that comes as gzip
    Gzip "gzip",
    /// A comment
    Comment "comment",
    /// A keep-alive of the provider
    Ping "ping",
    /// An event of an unknown kind
    UnknownEvent "unknown-event",
    /// `null`
    Null "null",
    /// A second choice
    SecondChoice "second-choice",
    /// The completion marker once more
    MarkerAgain "marker-again",
    /// An error inside the answer
    InBand "in-band-error",
    /// A refused prompt
    Blocked "blocked",
    /// Data that is not JSON
    NotJson "not-json",
    /// A message that begins once more after words
    SecondMessage "second-message",
    /// More than a bound allows, or a broken chunk
    Broken "broken",
    /// Silence, for longer than a moment
    Pause "pause",
    /// A message that is cut somewhere
    Cut "cut",
    /// Bytes that come one by one
    Trickle "trickle",
    /// A FIN
    Fin "fin",
    /// A FIN without `close_notify`
    FinWithoutCloseNotify "fin-without-close-notify",
    /// A FIN that is told twice
    FinTwice "fin-twice",
    /// A reset
    Reset "reset",
    /// A peer that is gone while its connection stays open
    HalfOpen "half-open",
    /// Bytes after the end of the message
    Surplus "surplus",
    /// A message that ends after its call
    LateEnd "late-end",
    /// A response read in small pieces
    SplitReads "split-reads",
    /// A request written in small pieces
    ShortWrites "short-writes",
    /// A consumer that is away
    Away "slow-consumer",
    /// Deadlines that are reported meanwhile
    Watched "watched-while-away",
    /// A driver that wakes up late
    Late "late-driver",
    /// A machine that was suspended
    Suspended "suspended",
    /// A caller that gives up at some time
    CancelAfter "cancel-after",
    /// A caller that gives up at some event
    CancelAtEvent "cancel-at-event",
    /// A consumer that fails
    ConsumerFails "consumer-fails",
    /// A drain that is dropped
    DroppedDrain "dropped-drain",
    /// Events of a connection that is closed
    StaleEvent "stale-event",
    /// A response that comes as facts
    Facts "facts",
    /// A call that begins while another one is under way
    Together "calls-at-once",
    /// A call that is over before one that began earlier, each on its connection
    Reordered "reordered-connections",
    /// A head, or as much of one, that is nearly as large as may be
    HeadNearCap "head-near-its-cap",
    /// The same of an event
    EventNearCap "event-near-its-cap",
    /// The same of a body
    BodyNearCap "body-near-its-cap",
    /// The same of an answer that is put together from a stream
    TurnNearCap "turn-near-its-cap",
    /// A body that is read as it goes out
    StreamedBody "streamed-body",
    /// A body that cannot be read on
    BodyFails "body-fails",
    /// A body that has nothing yet
    BodyWaits "body-waits",
    /// A retry that the shared budget refuses
    RetryRefused "retry-refused",
    /// Header fields that are made for an attempt
    MadeFields "made-fields",
    /// The same, which takes its time
    MadeFieldsWait "made-fields-wait",
    /// The same, which fails
    MadeFieldsFail "made-fields-fail",
    /// A request that a proxy forwards
    Forwarded "forwarded",
    /// A proxy that wants to know who asks
    ProxyRefuses "proxy-refuses",
    /// A server error in answer to a request that a proxy forwards
    ProxyFails "proxy-fails",
    /// A connection used again
    Reused "reused-connection",
}

/// How often each was met
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    faults: [u64; Fault::ALL.len()],
    transitions: [u64; State::TRANSITIONS.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self { faults: [0; Fault::ALL.len()], transitions: [0; State::TRANSITIONS.len()] }
    }
}

impl Coverage {
    /// So many runs meet every row, whatever the first seed is: the rarest of them some forty times
    pub const MIN_RUNS: u64 = 5_000;

    pub(crate) fn fault(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    pub(crate) fn transition(&mut self, index: usize) {
        self.transitions[index] += 1;
    }

    /// Each fault, and how often it was met
    pub fn faults(&self) -> impl Iterator<Item = (Fault, u64)> {
        Fault::ALL.into_iter().zip(self.faults)
    }

    /// Each transition of the call machine, and how often it was met
    ///
    /// Looked at after each step: one that a call passed together with another in a single step is not
    /// counted.
    pub fn transitions(&self) -> impl Iterator<Item = ((State, State), u64)> {
        State::TRANSITIONS.into_iter().zip(self.transitions)
    }

    /// The rows that were never met
    pub fn missing(&self) -> Vec<String> {
        let faults = self.faults().filter(|(_, hits)| *hits == 0).map(|(fault, _)| fault.name().to_owned());
        let transitions = self.transitions().filter(|(_, hits)| *hits == 0);
        faults.chain(transitions.map(|((from, to), _)| format!("{from:?} -> {to:?}"))).collect()
    }

    /// Adds what another run met
    pub fn add(&mut self, other: &Self) {
        for (held, more) in self.faults.iter_mut().zip(other.faults) {
            *held += more;
        }
        for (held, more) in self.transitions.iter_mut().zip(other.transitions) {
            *held += more;
        }
    }
}

/// Two tables: faults, transitions
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:>12}", "fault", "hits")?;
        for (fault, hits) in self.faults() {
            writeln!(f, "{:<28} {hits:>12}", fault.name())?;
        }
        writeln!(f, "{:<28} {:>12}", "transition", "hits")?;
        for ((from, to), hits) in self.transitions() {
            writeln!(f, "{:<28} {hits:>12}", format!("{from:?} -> {to:?}"))?;
        }
        Ok(())
    }
}

/// Which transitions may follow each other: a step can pass several
pub(crate) struct Paths {
    /// By `from` and `to`: the place of that transition, where it is one
    edges: [[Option<u8>; STATES]; STATES],
    /// By `from`: a bit for each state that can be reached
    reach: [u16; STATES],
}

const STATES: usize = State::Over as usize + 1;

impl Paths {
    pub(crate) fn new() -> Self {
        let mut paths = Self { edges: [[None; STATES]; STATES], reach: [0; STATES] };
        for (at, (from, to)) in State::TRANSITIONS.into_iter().enumerate() {
            paths.edges[from as usize][to as usize] = Some(at as u8);
            paths.reach[from as usize] |= 1 << to as usize;
        }
        for through in 0..STATES {
            for from in 0..STATES {
                if paths.reach[from] & (1 << through) != 0 {
                    paths.reach[from] |= paths.reach[through];
                }
            }
        }
        paths
    }

    /// The place of a single transition among [`State::TRANSITIONS`]
    pub(crate) fn edge(&self, from: State, to: State) -> Option<usize> {
        self.edges[from as usize][to as usize].map(usize::from)
    }

    /// Whether a call can come from one state to the other
    pub(crate) fn can(&self, from: State, to: State) -> bool {
        self.reach[from as usize] & (1 << to as usize) != 0
    }
}
