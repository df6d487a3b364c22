//! The loop: what the machine asks for, done; what happened, told.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use steadfast::machine::{Drain, Ended, Event, Interest, IoFailure, Machine, Step, Supply, Wait};
use steadfast::time::Instant;

use crate::connection::{Ask, Connection, Read, Socket};
use crate::scratch;

/// How often one poll goes round before it lets other tasks run
pub const MAX_ROUNDS_PER_POLL: usize = 128;

/// What a runtime brings
pub trait Runtime<M: Machine> {
    /// Its sockets
    type Socket: Socket;

    /// The time, since an origin of its own that never changes
    fn now(&self) -> Instant;

    /// Wakes the task no earlier than `at`; ready once that has come
    fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()>;

    /// Lets the reactor look at all sockets once; ready when it has
    ///
    /// A connection that is being opened is known by what the reactor last heard, which may be old
    /// news when the thread was busy elsewhere. A runtime without such a memory is always ready.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Calls `poll` so that the runtime's fairness budget cannot make what is ready look pending
    fn unbudgeted(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>));

    /// Reads on in what the machine sends over that connection, as far as `buffer` has room, which is as
    /// much as the machine asks for
    ///
    /// A machine that sends only what it has asks for nothing.
    fn poll_supply<'b>(
        &mut self,
        machine: &M,
        link: M::Link,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<Supply<'b>> {
        let _ = (machine, link, cx, buffer);
        Poll::Pending
    }

    /// What a command of the machine means
    fn act(&mut self, command: M::Command) -> Action<M, Self::Socket>;
}

/// A connection that is being opened
pub type Opening<S> = Pin<Box<dyn Future<Output = Result<Connection<S>, IoFailure>> + Send>>;

/// What a command of the machine means
pub enum Action<M: Machine, S> {
    /// Open this connection
    Open(M::Link, Opening<S>),
    /// Close it
    Close(M::Link),
    /// Leave it to this, open as it is, for a later exchange
    Release(M::Link, Release<S>),
    /// End our side of it, and read on
    Finish(M::Link),
    /// Tell the machine this, before anything else
    Tell(M::Fact<'static>),
    /// Tell the machine what comes of this, when it is there; one at a time
    Later(Later<M>),
    /// Nothing is to be done
    Nothing,
}

/// A fact that is yet to come
pub type Later<M> = Pin<Box<dyn Future<Output = <M as Machine>::Fact<'static>> + Send>>;

/// What takes a connection back whose exchange is over
pub type Release<S> = Box<dyn FnOnce(Connection<S>) + Send>;

/// What a poll of the driver came to
#[derive(Debug)]
pub enum Output<I, D> {
    /// The machine delivered something
    Item(I),
    /// All is over; comes once
    Done(D),
}

/// Drives one machine
///
/// Pulled by its consumer: [`Driver::poll`] goes on until there is an item to take. Dropping it
/// closes every connection. Nothing is lost if a future that polls it is dropped: reading and
/// telling the machine happen in one poll.
pub struct Driver<M: Machine, R: Runtime<M>> {
    machine: M,
    runtime: R,
    links: Vec<(M::Link, Link<R::Socket>)>,
    /// The timer that is due and for whose sake the sockets have been looked at
    ///
    /// Not its deadline: that may move by the consumer's own time, and is due all the same.
    looked: Option<M::Timer>,
    /// What the runtime has to say to a command
    answer: Answer<M>,
}

/// What a runtime has to say to a command
enum Answer<M: Machine> {
    Nothing,
    Now(M::Fact<'static>),
    Later(Later<M>),
}

impl<M: Machine> Answer<M> {
    /// What can be told now
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<M::Fact<'static>> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => None,
            Self::Now(fact) => Some(fact),
            Self::Later(mut later) => match later.as_mut().poll(cx) {
                Poll::Ready(fact) => Some(fact),
                Poll::Pending => {
                    *self = Self::Later(later);
                    None
                }
            },
        }
    }
}

enum Link<S> {
    Opening(Opening<S>),
    Open(Connection<S>),
}

/// Where a drain stopped
enum Stop<I, M: Machine> {
    Output(Output<I, M::Done>),
    Wait(Wait<M>),
}

impl<M: Machine, R: Runtime<M>> Driver<M, R> {
    /// A driver for a machine that has not begun
    pub fn new(machine: M, runtime: R) -> Self {
        let mut driver = Self { machine, runtime, links: Vec::new(), looked: None, answer: Answer::Nothing };
        driver.tell(Event::Start);
        driver
    }

    /// The same driver, with a connection that is open from the start
    pub fn with_open(mut self, link: M::Link, connection: Connection<R::Socket>) -> Self {
        self.links.push((link, Link::Open(connection)));
        self
    }

    /// The connection of that name, if it is open
    pub fn connection(&mut self, link: M::Link) -> Option<&mut Connection<R::Socket>> {
        let (_, found) = self.links.iter_mut().find(|(name, _)| *name == link)?;
        match found {
            Link::Open(connection) => Some(connection),
            Link::Opening(_) => None,
        }
    }

    /// The machine
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// What the runtime brought
    pub fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Gives up; the outcome comes with the next poll
    pub fn cancel(&mut self) {
        self.tell(Event::Cancel);
    }

    /// Tells the machine a fact of its caller's; what follows comes with the next poll
    pub fn tell_fact(&mut self, fact: M::Fact<'_>) {
        self.tell(Event::Fact(fact));
    }

    /// Goes on until the machine delivers, which `take` turns into an owned value, or is done
    pub fn poll<I>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(M::Item<'_>) -> I,
    ) -> Poll<Output<I, M::Done>> {
        scratch::with(|buffer| self.poll_with(cx, buffer, true, &mut take))
    }

    /// As [`Driver::poll`], for a consumer that does not come back: no timer is asked for, so this may be called
    /// outside of the runtime too
    pub fn poll_last<I>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(M::Item<'_>) -> I,
    ) -> Poll<Output<I, M::Done>> {
        scratch::with(|buffer| self.poll_with(cx, buffer, false, &mut take))
    }

    fn poll_with<I>(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        waits: bool,
        take: &mut impl FnMut(M::Item<'_>) -> I,
    ) -> Poll<Output<I, M::Done>> {
        let Self { machine, runtime, links, looked, answer } = self;
        let mut drain = machine.drain();
        for _ in 0..MAX_ROUNDS_PER_POLL {
            let wait = match run(drain, runtime, links, answer, cx, take) {
                Stop::Output(output) => return Poll::Ready(output),
                Stop::Wait(wait) => wait,
            };
            let now = runtime.now();
            if let Some(answer) = answer.poll(cx) {
                let event = Event::Fact(answer);
                drain = machine.handle(now, event).expect("the driver keeps the machine's contract");
                continue;
            }
            let due = wait.deadline.filter(|(at, _)| *at <= now).map(|(_, timer)| timer);
            let event = if wait.taken {
                // Whoever polls is the consumer, so it is back.
                Event::Taken
            } else if due.is_none() {
                *looked = None;
                let came = if let Some(event) = look(machine, links, wait.io, Ask::Reactor, cx, buffer) {
                    Some(event)
                } else {
                    supply(machine, runtime, wait.io, cx, buffer)
                };
                match came {
                    Some(event) => event,
                    None => {
                        let Some((at, _)) = wait.deadline.filter(|_| waits) else { return Poll::Pending };
                        ready!(runtime.poll_until(at, cx));
                        drain = machine.drain();
                        continue;
                    }
                }
            } else if *looked == due {
                // One look, then the clock: endless pings must not starve a timer.
                *looked = None;
                Event::Elapsed
            } else {
                // Arrived beats expired.
                ready!(runtime.poll_turn(cx));
                *looked = due;
                let mut event = None;
                runtime.unbudgeted(cx, |cx| event = look(machine, links, wait.io, Ask::System, cx, buffer));
                event.unwrap_or_else(|| {
                    *looked = None;
                    Event::Elapsed
                })
            };
            drain = machine.handle(now, event).expect("the driver keeps the machine's contract");
        }
        drop(drain);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn tell(&mut self, event: Event<'_, M>) {
        drop(
            self.machine.handle(self.runtime.now(), event).expect("the driver keeps the machine's contract"),
        );
    }
}

/// Takes steps until the machine delivers, waits or is done
fn run<I, M: Machine, R: Runtime<M>>(
    mut drain: Drain<'_, M>,
    runtime: &mut R,
    links: &mut Vec<(M::Link, Link<R::Socket>)>,
    answer: &mut Answer<M>,
    cx: &mut Context<'_>,
    take: &mut impl FnMut(M::Item<'_>) -> I,
) -> Stop<I, M> {
    loop {
        let took = match drain.next() {
            Step::Do(command) => {
                follow(runtime.act(command), links, answer, cx);
                continue;
            }
            Step::Deliver(item) => match M::passes(&item) {
                None => return Stop::Output(Output::Item(take(item))),
                Some((link, parts)) => pass(links, link, parts, cx),
            },
            Step::Wait(wait) => return Stop::Wait(wait),
            Step::Done(done) => return Stop::Output(Output::Done(done)),
        };
        drain.took(took);
    }
}

/// Does what a command means
fn follow<M: Machine, S: Socket>(
    action: Action<M, S>,
    links: &mut Vec<(M::Link, Link<S>)>,
    answer: &mut Answer<M>,
    cx: &mut Context<'_>,
) {
    match action {
        Action::Open(link, opening) => links.push((link, Link::Opening(opening))),
        Action::Close(link) => {
            if let Some(mut connection) = take_open(links, link) {
                connection.close(cx);
            }
        }
        Action::Release(link, release) => {
            if let Some(connection) = take_open(links, link) {
                release(connection.exchanged());
            }
        }
        Action::Finish(link) => {
            let open = links.iter_mut().find(|(name, _)| *name == link);
            if let Some((_, Link::Open(connection))) = open {
                // One that is broken is told so when it is read.
                _ = connection.finish(cx);
            }
        }
        Action::Tell(fact) => *answer = Answer::Now(fact),
        Action::Later(later) => *answer = Answer::Later(later),
        Action::Nothing => {}
    }
}

/// Writes what was delivered for a connection, as much as it takes at once
///
/// What failed fails again when the rest is written, and is told then.
fn pass<L: Eq, S: Socket>(
    links: &mut [(L, Link<S>)],
    link: L,
    parts: [&[u8]; 2],
    cx: &mut Context<'_>,
) -> usize {
    match links.iter_mut().find(|(name, _)| *name == link) {
        Some((_, Link::Open(connection))) => match connection.poll_write(cx, parts) {
            Poll::Ready(Ok(took)) => took,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        },
        Some((_, Link::Opening(_))) | None => 0,
    }
}

/// Takes out a connection; `None` for one that was still being opened, which is dropped
fn take_open<L: Eq, S>(links: &mut Vec<(L, Link<S>)>, link: L) -> Option<Connection<S>> {
    let at = links.iter().position(|(open, _)| *open == link)?;
    match links.swap_remove(at).1 {
        Link::Open(connection) => Some(connection),
        Link::Opening(_) => None,
    }
}

/// Looks at every connection that is being opened or of interest, until something has happened
///
/// Reading comes first: an answer to a request that is still going out must be seen.
fn look<'b, M: Machine, S: Socket>(
    machine: &M,
    links: &mut Vec<(M::Link, Link<S>)>,
    interests: M::Io,
    ask: Ask,
    cx: &mut Context<'_>,
    buffer: &'b mut [u8],
) -> Option<Event<'b, M>> {
    for at in 0..links.len() {
        let (name, link) = &mut links[at];
        let name = *name;
        if let Link::Opening(opening) = link
            && let Poll::Ready(opened) = opening.as_mut().poll(cx)
        {
            return Some(match opened {
                Ok(connection) => {
                    let is_reused = connection.is_reused();
                    *link = Link::Open(connection);
                    if is_reused { Event::Reused(name) } else { Event::Connected(name) }
                }
                Err(failure) => {
                    links.swap_remove(at);
                    Event::Failed(name, failure)
                }
            });
        }
    }
    for Interest { link, read, write, .. } in interests {
        let open = links.iter_mut().find(|(name, _)| *name == link);
        let Some((_, Link::Open(connection))) = open else { continue };
        if read && let Poll::Ready(read) = connection.poll_read(ask, cx, buffer) {
            return Some(match read {
                Ok(Read::Bytes(n)) => Event::Received(link, &buffer[..n]),
                Ok(Read::Ended(ended)) => Event::Eof(link, ended),
                Err(failure) => Event::Failed(link, failure),
            });
        }
        if write {
            if let Poll::Ready(sent) = connection.poll_write(cx, machine.outgoing(link)) {
                return Some(match sent {
                    Ok(n) => Event::Sent(link, n),
                    Err(failure) => Event::Failed(link, failure),
                });
            }
        } else if let Poll::Ready(Err(failure)) = connection.poll_flush(cx) {
            return Some(Event::Failed(link, failure));
        }
        if !read && let Poll::Ready(ended) = connection.poll_hang_up(cx) {
            return Some(match ended {
                Ok(()) => Event::Eof(link, Ended::Clean),
                Err(failure) => Event::Failed(link, failure),
            });
        }
    }
    None
}

/// Reads on in what is sent, wherever the machine asks for it
fn supply<'b, M: Machine, R: Runtime<M>>(
    machine: &M,
    runtime: &mut R,
    interests: M::Io,
    cx: &mut Context<'_>,
    buffer: &'b mut [u8],
) -> Option<Event<'b, M>> {
    let Interest { link, supply, .. } = interests.into_iter().find(|interest| interest.supply > 0)?;
    let room = supply.min(buffer.len());
    match runtime.poll_supply(machine, link, cx, &mut buffer[..room]) {
        Poll::Ready(supply) => Some(Event::Supplied(link, supply)),
        Poll::Pending => None,
    }
}
