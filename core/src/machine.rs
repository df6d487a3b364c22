//! The one shape of every machine.
//!
//! A machine is a value that decides and never acts. A driver owns the sockets and the clock: it
//! tells the machine what happened ([`Machine::handle`]), then takes steps until it is told to
//! wait ([`Drain::next`]).
//!
//! ```text
//!            Event + Instant                 Step::Do(command)     start it, do not await it
//!  driver ───────────────────▶  handle  ──▶  Step::Deliver(item)   hand it to the consumer
//!    ▲                            Drain      Step::Wait(wait)      read, write, sleep: then handle
//!    └──────────────────────────────────────  Step::Done(done)     once, at the end
//! ```
//!
//! - `handle` is the only mutation, and the [`Drain`] it returns borrows the machine: nothing can
//!   be fed while steps are left in somebody's hands.
//! - [`Wait`] is the only source of a deadline, and it exists only when nothing else is left to do.
//!   Deadlines are derived from the state; a machine never asks for a wake-up.
//! - Parsing is lazy: one call of `next` yields at most one item. A consumer that stops calling is
//!   back-pressure, and dropping a `Drain` early loses nothing: what was not parsed is kept.
//!
//! # What a driver owes the machine
//!
//! [`porting`](crate::porting) shows a driver that does all of it, and how to write another.
//!
//! 1. Drain to [`Step::Wait`] or [`Step::Done`] after every event. Start what [`Step::Do`] says and do
//!    not await it: writes, connects and closes go on while the machine decides other things.
//! 2. Read only where [`Wait::io`] asks for it: the rest is the back-pressure. Read before writing,
//!    so that an answer to a request that is still going out is seen.
//! 3. Where [`Wait::taken`] is set, report [`Event::Taken`] once the consumer asks for more, and
//!    nothing that arrived before that.
//! 4. Compare the clock with the deadline before sleeping, and at each `Wait`. *Arrived beats
//!    expired*: when a deadline is due, look at every connection once more, past any readiness that is
//!    remembered from before, and feed what is there.
//! 5. *One look, then the clock*: if the same timer is due after that look, report
//!    [`Event::Elapsed`], even if the look brought data, and even if `Taken` came in between. Or a
//!    peer that never stops sending would starve the timer.
//! 6. A caller's cancel goes before everything else that is to be told.
//! 7. Report a failed write by [`Event::Failed`] with [`Stage::Write`] and read on: the answer may lie
//!    in the socket already. An end or a failed read is the last thing told of a connection.
//! 8. Instants never go back. One origin for the life of the machine.
//! 9. Where an item is bytes for a connection ([`Machine::passes`]), write them at once, as many as it
//!    takes, and say so by [`Drain::took`]; the rest is in [`Machine::outgoing`].
//! 10. Where an [`Interest`] wants neither reading nor writing, and the connection can tell its peer's end
//!     without being read, report [`Event::Eof`] or [`Event::Failed`] when that comes.
//! 11. Where [`Interest::supply`] is not zero, read on in what is sent, at most so many bytes, without
//!     waiting for it, and report [`Event::Supplied`]. It comes after reading and writing.
//!
//! # What the machine promises
//!
//! - Progress law: after [`Event::Elapsed`] at `now`, the next deadline is later than `now`, or the
//!   state has changed.

mod failure;

use std::fmt;

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::time::Instant;

pub use failure::io_failure;

/// A sans-IO state machine: events in, steps out
///
/// The methods that take a [`Permit`] are the machine's side of the contract: only
/// [`Machine::handle`] and [`Drain`] can call them.
pub trait Machine: Sized {
    /// Names one connection of this machine
    type Link: Copy + Eq + fmt::Debug;
    /// Why a deadline exists; the same type reaches the error that its expiry causes
    type Timer: Copy + Eq + fmt::Debug;
    /// What to read and write while waiting: an [`Interest`] for each connection in use
    type Io: IntoIterator<Item = Interest<Self::Link>> + Copy;
    /// What only this machine can be told, beside the events that all machines share
    type Fact<'e>;
    /// What the consumer gets; lent, because most of it lies in the driver's own buffer
    type Item<'i>
    where
        Self: 'i;
    /// What the driver has to start
    type Command;
    /// What is known once everything has ended
    type Done;

    /// Takes in one event and returns those of its bytes that are still to be parsed
    ///
    /// Errors: [`Misuse`] when the driver broke the contract; the event is then without effect.
    fn accept<'e>(
        &mut self,
        permit: Permit,
        now: Instant,
        event: Event<'e, Self>,
    ) -> Result<&'e [u8], Misuse>;

    /// Takes one step, parsing from the front of `input` and adding what it used to `used`
    fn step<'s>(&'s mut self, permit: Permit, input: &'s [u8], used: &mut usize) -> Step<'s, Self>;

    /// Where an item goes that is bytes for a connection, and the bytes, in order
    ///
    /// `None` for what the consumer gets, which is everything that most machines deliver.
    fn passes<'i>(item: &'i Self::Item<'_>) -> Option<(Self::Link, [&'i [u8]; 2])> {
        let _ = item;
        None
    }

    /// So many bytes of the item that was delivered last went straight to where they belong
    ///
    /// Only for a machine that delivers bytes for its connections; see [`Drain::took`].
    fn took(&mut self, permit: Permit, bytes: usize) {
        let _ = (permit, bytes);
    }

    /// Copies out of `input` whatever queued items still point into it
    ///
    /// Called when a [`Drain`] is dropped before its end.
    fn detach(&mut self, permit: Permit, input: &[u8]);

    /// Where an interrupted [`Drain`] leaves its unread bytes
    fn tail(&mut self, permit: Permit) -> &mut Tail;

    /// Bytes still to be written to `link`, in order: two slices, either of which may be empty
    ///
    /// The driver reports what the connection took by [`Event::Sent`].
    fn outgoing(&self, link: Self::Link) -> [&[u8]; 2];

    /// Tells the machine what happened at `now`, and borrows it for the steps that follow
    ///
    /// Errors: [`Misuse`] when the driver broke the contract. Its text names the fix, and the
    /// machine is as it was.
    fn handle<'m, 'e: 'm>(
        &'m mut self,
        now: Instant,
        event: Event<'e, Self>,
    ) -> Result<Drain<'m, Self>, Misuse> {
        let tail = self.tail(Permit(()));
        if tail.lent || tail.forgotten {
            return Err(Misuse::ForgottenDrain);
        }
        if !tail.is_empty() && matches!(event, Event::Received(..) | Event::Elapsed) {
            return Err(Misuse::Undrained);
        }
        let bytes = self.accept(Permit(()), now, event)?;
        if bytes.is_empty() {
            return Ok(self.drain());
        }
        self.tail(Permit(())).lent = true;
        Ok(Drain { machine: self, input: Input::Lent(bytes), used: 0 })
    }

    /// Goes on with the steps: nothing new has happened
    fn drain(&mut self) -> Drain<'_, Self> {
        let tail = self.tail(Permit(()));
        tail.forgotten |= tail.lent;
        tail.lent = true;
        let used = std::mem::take(&mut tail.read);
        let input = Input::Kept(std::mem::take(&mut tail.bytes));
        Drain { machine: self, input, used }
    }
}

/// Lets [`Machine::handle`] and [`Drain`] call a machine's side of the contract, and nobody else
///
/// It cannot be made outside of this module, so bytes and steps cannot be lost past a [`Drain`].
#[derive(Clone, Copy, Debug)]
pub struct Permit(());

/// What happened, as every driver can report it
pub enum Event<'e, M: Machine> {
    /// The caller wants this machine to begin
    Start,
    /// The deadline of the last [`Wait`] has come, and one last look at the sockets found nothing
    Elapsed,
    /// The consumer has taken what was delivered and is waiting for more
    Taken,
    /// The caller gives up
    Cancel,
    /// A connection asked for is open, through name look-up, TCP, proxy and TLS
    Connected(M::Link),
    /// A connection asked for is one that an earlier exchange left open
    ///
    /// It may have ended meanwhile without a sign, and so is given up for less than a new one.
    Reused(M::Link),
    /// The connection took so many bytes of [`Machine::outgoing`]
    Sent(M::Link, usize),
    /// What [`Interest::supply`] asks for, read from where it comes from
    Supplied(M::Link, Supply<'e>),
    /// Bytes came
    Received(M::Link, &'e [u8]),
    /// The peer will send no more
    Eof(M::Link, Ended),
    /// Opening, reading or writing failed
    Failed(M::Link, IoFailure),
    /// Something that only this machine can be told
    Fact(M::Fact<'e>),
}

impl<M: Machine> fmt::Debug for Event<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Start => f.write_str("Start"),
            Event::Elapsed => f.write_str("Elapsed"),
            Event::Taken => f.write_str("Taken"),
            Event::Cancel => f.write_str("Cancel"),
            Event::Connected(link) => write!(f, "Connected({link:?})"),
            Event::Reused(link) => write!(f, "Reused({link:?})"),
            Event::Sent(link, n) => write!(f, "Sent({link:?}, {n})"),
            Event::Supplied(link, supply) => write!(f, "Supplied({link:?}, {supply:?})"),
            Event::Received(link, bytes) => write!(f, "Received({link:?}, {} bytes)", bytes.len()),
            Event::Eof(link, ended) => write!(f, "Eof({link:?}, {ended:?})"),
            Event::Failed(link, failure) => write!(f, "Failed({link:?}, {failure:?})"),
            Event::Fact(_) => f.write_str("Fact"),
        }
    }
}

/// What is read from where a message comes from that goes out piece by piece
#[derive(PartialEq, Eq)]
pub enum Supply<'e> {
    /// Header fields to add to those of the message, or to put in the place of those of the same name
    Head(HeaderMap),
    /// These bytes come next
    Bytes(&'e [u8]),
    /// There are no more
    End,
    /// It cannot be read, in words
    Failed(String),
}

/// Fields and bytes by their number
impl fmt::Debug for Supply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(fields) => write!(f, "{} fields", fields.len()),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::End => f.write_str("End"),
            Self::Failed(message) => write!(f, "Failed({message:?})"),
        }
    }
}

/// How the peer's sending side ended
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// A FIN over plain TCP, a `close_notify` over TLS
    Clean,
    /// A FIN over TLS with no `close_notify` before it: the end is not authenticated
    WithoutCloseNotify,
}

/// What went wrong on a connection, as plain data
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct IoFailure {
    /// What was being done
    pub stage: Stage,
    /// What kind of failure it was
    pub kind: FailureKind,
    /// The operating system's or the TLS library's words
    pub message: String,
}

/// What a connection was doing when it failed
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Looking up the host's name
    Resolve,
    /// Opening the TCP connection
    Connect,
    /// Setting up the tunnel through a proxy
    Proxy,
    /// The TLS handshake
    Tls,
    /// Writing the request
    Write,
    /// Reading the response
    Read,
}

impl Stage {
    /// The stage's name in lower case, as it appears in messages and JSON
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// The kind of a connection's failure
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The name does not exist, or has no address
    NotFound,
    /// Nobody listens there
    Refused,
    /// There is no way to that host or network
    Unreachable,
    /// The peer reset the connection, or it broke
    Reset,
    /// The peer's certificate was not accepted
    Certificate(CertificateFault),
    /// The peer did not accept ours, or wants one and got none
    ClientCertificate(ClientCertificateFault),
    /// The peer broke TLS
    Tls,
    /// A proxy did not make the tunnel
    Proxy(ProxyRefusal),
    /// Anything else; see the message
    Other,
}

/// Why a peer's certificate was not accepted
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CertificateFault {
    /// Its time is over
    Expired,
    /// Its time has not begun; or the clock of this machine is slow
    NotYetValid,
    /// It is for other names
    WrongHost,
    /// No root that we trust has issued it
    UnknownIssuer,
    /// It was issued by nobody but itself, and is none of the roots that we trust
    SelfSigned,
    /// Its issuer has revoked it
    Revoked,
    /// Anything else
    Other,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "has expired",
            Self::NotYetValid => "is not valid yet",
            Self::WrongHost => "is for another host",
            Self::UnknownIssuer => "has an unknown issuer",
            Self::SelfSigned => "is self-signed, and not among the trusted roots",
            Self::Revoked => "was revoked",
            Self::Other => "was not accepted",
        })
    }
}

/// What a peer misses in our own certificate, as its alert says (RFC 8446 section 6.2)
///
/// With TLS 1.2 some servers only say that the handshake failed, which is [`FailureKind::Tls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientCertificateFault {
    /// It wants one, and got none
    Required,
    /// It did not accept the one it got
    Refused,
}

/// How a proxy refused
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyRefusal {
    /// It wants credentials, or others than ours: status 407 or 401 to CONNECT, or SOCKS5's word for it
    AuthenticationRequired,
    /// It answered CONNECT with this status
    Status(u16),
    /// It replied with this code of SOCKS5 (RFC 1928 section 6)
    Socks(u8),
    /// It broke its protocol, or went past a bound
    Protocol,
    /// It was not asked: its URL cannot be used, or it cannot be told the host's name
    Unusable,
}

/// One thing for the driver to do
pub enum Step<'s, M: Machine + 's> {
    /// Start this, do not wait for it
    Do(M::Command),
    /// Hand this to the consumer
    Deliver(M::Item<'s>),
    /// Nothing is left to do until one of these happens
    Wait(Wait<M>),
    /// All is over; comes once
    Done(M::Done),
}

/// What a machine waits for
pub struct Wait<M: Machine> {
    /// When to report [`Event::Elapsed`], and which wait then ends; `None` means never
    pub deadline: Option<(Instant, M::Timer)>,
    /// What to read and write meanwhile
    pub io: M::Io,
    /// Whether the machine waits for the consumer: report [`Event::Taken`] when it is back
    pub taken: bool,
}

impl<M: Machine> fmt::Debug for Wait<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("deadline", &self.deadline)
            .field("io", &self.io.into_iter().collect::<Vec<_>>())
            .field("taken", &self.taken)
            .finish()
    }
}

/// What a machine wants of one connection
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest<L> {
    /// The connection
    pub link: L,
    /// Whether bytes are wanted; if not, leave them in the socket: that is the back-pressure
    pub read: bool,
    /// Whether [`Machine::outgoing`] has bytes to write
    pub write: bool,
    /// How many more bytes of what is sent are wanted from where they come from; none where it is zero
    ///
    /// Report [`Event::Supplied`] with so many, or fewer.
    pub supply: usize,
}

/// A borrow of the machine while it still has steps to take
///
/// Call [`Drain::next`] until it returns [`Step::Wait`] or [`Step::Done`]. Dropping it before
/// that is allowed, and how a driver applies back-pressure: the machine keeps the bytes that were
/// not parsed, and [`Machine::drain`] goes on from there.
#[must_use = "a machine that is not drained does nothing"]
pub struct Drain<'m, M: Machine> {
    machine: &'m mut M,
    input: Input<'m>,
    used: usize,
}

enum Input<'m> {
    Lent(&'m [u8]),
    Kept(Vec<u8>),
}

impl Input<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Input::Lent(bytes) => bytes,
            Input::Kept(bytes) => bytes,
        }
    }
}

impl<M: Machine> Drain<'_, M> {
    /// The next step; after `Wait` or `Done`, a `Wait` again
    #[allow(clippy::should_implement_trait, reason = "items are lent, an Iterator cannot lend")]
    pub fn next(&mut self) -> Step<'_, M> {
        self.machine.step(Permit(()), self.input.bytes(), &mut self.used)
    }

    /// A connection took so many bytes of what was delivered for it; the machine copies only the rest
    pub fn took(&mut self, bytes: usize) {
        self.machine.took(Permit(()), bytes);
    }

    /// The machine as it is between two steps
    ///
    /// Bytes that are not parsed yet are with the drain, and the machine does not count them as its own.
    pub fn machine(&self) -> &M {
        self.machine
    }
}

impl<M: Machine> Drop for Drain<'_, M> {
    fn drop(&mut self) {
        self.machine.detach(Permit(()), self.input.bytes());
        let tail = self.machine.tail(Permit(()));
        tail.lent = false;
        match &mut self.input {
            Input::Lent(bytes) => {
                tail.bytes.clear();
                tail.bytes.extend_from_slice(&bytes[self.used..]);
                tail.read = 0;
            }
            Input::Kept(bytes) if self.used < bytes.len() => {
                tail.bytes = std::mem::take(bytes);
                tail.read = self.used;
            }
            // So that the line end behind every chunk costs no allocation of its own.
            Input::Kept(bytes) if bytes.capacity() <= Tail::SPARE => {
                bytes.clear();
                tail.bytes = std::mem::take(bytes);
            }
            // An idle machine holds no buffer.
            Input::Kept(_) => {}
        }
    }
}

/// The bytes that an interrupted [`Drain`] left
#[derive(Default)]
pub struct Tail {
    bytes: Vec<u8>,
    read: usize,
    /// A [`Drain`] is out
    lent: bool,
    /// One was out when another was made: it will never bring its bytes back
    forgotten: bool,
}

impl Tail {
    /// The most bytes of room that an idle machine keeps for later
    const SPARE: usize = 64;

    /// Bytes that it holds
    pub(crate) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was left
    pub fn is_empty(&self) -> bool {
        self.read == self.bytes.len()
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tail({} bytes)", self.bytes.len() - self.read)
    }
}

/// A mistake of the driver; the text names the fix
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A [`Drain`] was leaked with `mem::forget`, and the bytes in it are lost
    #[error("a Drain was forgotten with bytes in it: let it go out of scope instead")]
    ForgottenDrain,
    /// Bytes or the end of a wait were fed while earlier bytes still wait to be parsed
    #[error(
        "earlier bytes are not parsed yet: drain() to Step::Wait before Received or Elapsed, and read only when Wait asks for it"
    )]
    Undrained,
    /// Something happened before [`Event::Start`]
    #[error("the machine has not begun: feed Event::Start first")]
    NotStarted,
    /// [`Event::Start`] came twice
    #[error("Event::Start came twice: make a new machine for each call")]
    StartedTwice,
    /// A connection was named that the machine never asked for
    #[error("that connection was never asked for: pass the id that came with the Connect command")]
    UnknownLink,
    /// A connection was used before it was reported open
    #[error("that connection is not open yet: feed Event::Connected or Reused before Sent, Received or Eof")]
    NotConnected,
    /// More bytes were reported as sent than there were to send
    #[error(
        "{sent} bytes were reported as sent, but only {outgoing} were outgoing: report what the socket took"
    )]
    SentTooMuch {
        /// What was reported
        sent: usize,
        /// What there was to send
        outgoing: usize,
    },
    /// A fact came that cannot follow what came before it
    #[error("{0}")]
    OutOfOrder(&'static str),
}
