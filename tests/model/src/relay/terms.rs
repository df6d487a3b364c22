//! What can happen to an exchange, what can be seen of it, and under which settings.

use steadfast::relay::{Shape, Timer};

/// One thing that happens to an exchange
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// A whole request
    Ask,
    /// Two requests in one read
    AskTwice,
    /// The first half of a request's head
    AskHalf,
    /// The rest of the head, and the body
    AskRest,
    /// A request's head, of which the body is still to come
    AskHead,
    /// That body
    AskBody,
    /// What is no body
    AskBadBody,
    /// A head that is refused
    AskBad,
    /// A request for no route
    AskNowhere,
    /// The app's connection takes all that waits for it
    AppTakes,
    /// The app closes its connection
    AppLeaves,
    /// The relay is stopped
    Cancel,
    /// The relay is about to stop
    Drain,
    /// No connection may be opened now
    Full,
    /// The connection is open
    Connected,
    /// It is one that an earlier exchange left
    Reused,
    /// It cannot be opened
    ConnectFails,
    /// The provider's connection takes a byte
    SentPart,
    /// It takes all that waits for it
    SentAll,
    /// Writing to it fails
    WriteFails,
    /// An interim answer
    Interim,
    /// 503, whole
    Busy,
    /// 529, whole
    Overloaded,
    /// 429, whole
    Limited,
    /// The head of an answer
    Head,
    /// A part of its body
    Part,
    /// The end of its body
    Last,
    /// The end of its body, and a byte more
    LastAndMore,
    /// A whole answer in one read
    Whole,
    /// What is no HTTP
    Garbage,
    /// The provider ends its side
    Eof,
    /// Its connection breaks
    Reset,
    /// A second passes, or less where the next deadline is nearer
    Tick,
    /// Time passes to the next deadline, and it is told
    Elapse,
}

/// What is seen of one event
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What is to be opened and closed, in order
    pub commands: Vec<Act>,
    /// What the app has got of the answers since an exchange last ended, or `~` for the beginning of a head
    ///
    /// A head is written `[200]`, or `[502 upstream_failed]` for one of the relay's own, of which the body is
    /// left out; with ` close` where it says so.
    pub app: String,
    /// Exchanges that are told as over
    pub over: Vec<Told>,
    /// What is waited for; none where the connection is over
    pub wait: Option<Waits>,
    /// Whether it ends by a reset
    pub reset: Option<bool>,
    /// What is not expected of any exchange, in words
    pub other: Vec<String>,
}

/// What the driver is to do
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Open a connection; whether one will do that an earlier exchange left
    Connect(bool),
    /// Drop it
    Abort,
    /// Leave it to a later exchange
    Keep,
    /// End our side of the app's connection
    Finish,
}

/// What is told of an exchange that is over
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How it ended, in words
    pub ending: String,
    /// How often it was sent
    pub sends: u32,
}

/// What is waited for
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// When, in nanoseconds, and why
    pub deadline: Option<(u64, Timer)>,
    /// Whether the app is read, and written to
    pub app: (bool, bool),
    /// Whether the provider is
    pub up: Option<(bool, bool)>,
}

/// How a body says where it ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By its length
    Length,
    /// In chunks
    Chunked,
    /// By the end of the connection
    UntilClose,
}

/// How much of what is passed to it a socket takes at once
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// All, and what waits as well
    All,
    /// A byte
    One,
    /// Nothing
    Nothing,
}

/// Under which settings exchanges are checked
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name
    pub name: &'static str,
    /// What can happen
    pub alphabet: Vec<Input>,
    /// Of the app's request
    pub request: Framing,
    /// Of the provider's answer
    pub answer: Framing,
    /// The app speaks HTTP/1.0
    pub is_old: bool,
    /// What the app's connection takes
    pub takes: Takes,
    /// The provider's dialect
    pub shape: Shape,
}

/// A second, in nanoseconds
pub(crate) const SECOND: u64 = 1_000_000_000;
/// When an exchange's connection is accepted, in nanoseconds: there is room before it
pub(crate) const BEGAN: u64 = 1_000_000 * SECOND;

/// What an answer's body is, in each framing: parts and the end
impl Framing {
    pub(crate) const fn part(self) -> &'static str {
        match self {
            Self::Length | Self::UntilClose => "ab",
            Self::Chunked => "2\r\nab\r\n",
        }
    }

    pub(crate) const fn last(self) -> &'static str {
        match self {
            Self::Length => "cd",
            Self::Chunked => "0\r\n\r\n",
            Self::UntilClose => "",
        }
    }
}

/// All cases
pub fn cases() -> Vec<Case> {
    use Input::*;
    let always: &[Input] = &[Ask, AppLeaves, Connected, SentAll, Elapse];
    let resends: &[Input] =
        &[Reused, ConnectFails, SentPart, WriteFails, Busy, Overloaded, Limited, Eof, Reset, Full, Whole];
    let answers: &[Input] = &[Head, Part, Last, LastAndMore, Eof, Reset, Garbage, Interim, Tick, AskTwice];
    let apps: &[Input] =
        &[AskHalf, AskRest, AskHead, AskBody, AskBad, AskNowhere, AskTwice, Busy, Whole, Head, Last, Part];
    let ends: &[Input] = &[Drain, Cancel, Head, Last, Whole, AskTwice, AskHalf, Busy, AppTakes];
    let slow: &[Input] = &[AppTakes, Head, Part, Last, Whole, Eof, Reset, Tick, AskTwice, AskNowhere, Busy];
    let case = |name, answer, parts: &[&[Input]]| Case {
        name,
        alphabet: parts.concat(),
        request: Framing::Length,
        answer,
        is_old: false,
        takes: Takes::All,
        shape: Shape::OpenAi,
    };
    let body: &[Input] = &[AskHead, AskBody, AskBadBody, SentPart, WriteFails, Busy, Head, Part, Last, Eof];
    vec![
        case("resends", Framing::Length, &[always, resends]),
        Case { shape: Shape::Anthropic, ..case("resends to Anthropic", Framing::Length, &[always, resends]) },
        case("length", Framing::Length, &[always, answers]),
        case("chunked", Framing::Chunked, &[always, answers]),
        case("until close", Framing::UntilClose, &[always, answers]),
        Case { is_old: true, ..case("old app, chunked", Framing::Chunked, &[always, answers]) },
        Case { is_old: true, ..case("old app, until close", Framing::UntilClose, &[always, answers]) },
        case("requests", Framing::Length, &[always, apps]),
        case("body", Framing::Length, &[always, body]),
        Case { request: Framing::Chunked, ..case("chunked body", Framing::Chunked, &[always, body]) },
        case("ends", Framing::Length, &[always, ends]),
        Case { takes: Takes::Nothing, ..case("slow app", Framing::Chunked, &[always, slow, ends]) },
        Case { takes: Takes::One, ..case("app that takes a byte", Framing::Chunked, &[always, slow]) },
        Case { takes: Takes::Nothing, ..case("slow app, until close", Framing::UntilClose, &[always, slow]) },
        Case {
            takes: Takes::One,
            is_old: true,
            ..case("slow old app", Framing::UntilClose, &[always, slow])
        },
    ]
}
