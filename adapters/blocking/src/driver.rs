//! The loop: what the machine asks for, done; what happened, told.

use std::sync::Arc;

use steadfast::call::{AttemptId, Call, Command, Fact, Item, Origin, Timer};
use steadfast::machine::{Drain, Event, Interest, IoFailure, Machine, Step, Wait};
use steadfast::outcome::Outcome;
use steadfast::time::Instant;

use crate::client::Shared;
use crate::connection::{Came, Connection};
use crate::input::Input;
use crate::opening::{Opened, Opening};
use crate::sleeper::{Bell, Sleeper};

/// Drives one call, on the thread of its consumer
pub(crate) struct Driver {
    call: Call,
    shared: Arc<Shared>,
    origin: Origin,
    sleeper: Sleeper,
    /// The connection of the attempt under way; a call has one at a time
    link: Option<(AttemptId, Link)>,
    input: Input,
    /// The timer that is due and for whose sake the socket has been looked at
    looked: Option<Timer>,
    /// The machine knows that the caller gave up
    is_cancelled: bool,
    /// The retry that the budget refuses, which is still to be told
    refused: Option<AttemptId>,
}

enum Link {
    Opening(Box<Opening>),
    Open(Connection),
    /// It could not even be begun with
    Failed(IoFailure),
}

/// What the driver came to
pub(crate) enum Output<T> {
    Item(T),
    /// Comes once
    Done(Box<Outcome>),
}

/// Where a drain stopped
enum Stop<T> {
    Output(Output<T>),
    Wait(Wait<Call>),
}

impl Driver {
    /// A driver for a call that begins now
    pub(crate) fn new(mut call: Call, shared: Arc<Shared>) -> Self {
        drop(call.handle(shared.now(), Event::Start).expect("a call that has not begun"));
        let sleeper = Sleeper::default();
        Self {
            origin: call.request().origin().clone(),
            call,
            shared,
            input: Input::new(sleeper.bell()),
            sleeper,
            link: None,
            looked: None,
            is_cancelled: false,
            refused: None,
        }
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Tells the call a fact of its caller's; what follows comes when something is next asked
    pub(crate) fn tell_fact(&mut self, fact: Fact<'_>) {
        drop(self.call.handle(self.shared.now(), Event::Fact(fact)).expect(KEPT));
    }

    pub(crate) fn bell(&self) -> &Arc<Bell> {
        self.sleeper.bell()
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Goes on until the call delivers, which `take` turns into an owned value, or is done
    pub(crate) fn next<T>(&mut self, take: &mut impl FnMut(Item<'_>) -> T) -> Output<T> {
        let Self { call, shared, origin, sleeper, link, input, looked, is_cancelled, refused } = self;
        // A caller's cancel goes before everything, also before what is left of the last bytes.
        let mut drain = if is_cancel_due(sleeper, is_cancelled) {
            call.handle(shared.now(), Event::Cancel).expect(KEPT)
        } else {
            call.drain()
        };
        loop {
            let wait = match run(drain, shared, origin, sleeper, link, refused, take) {
                Stop::Output(output) => return output,
                Stop::Wait(wait) => wait,
            };
            let now = shared.now();
            let due = wait.deadline.filter(|(at, _)| *at <= now).map(|(_, timer)| timer);
            let event = if is_cancel_due(sleeper, is_cancelled) {
                Event::Cancel
            } else if let Some(id) = refused.take() {
                Event::Fact(Fact::RetryRefused(id))
            } else if wait.taken {
                // Whoever asks is the consumer, so it is back.
                Event::Taken
            } else if due.is_some() && *looked == due {
                // One look, then the clock: endless pings must not starve a timer.
                *looked = None;
                Event::Elapsed
            } else {
                *looked = due;
                match look(call, link, wait.io, now, input) {
                    Some(event) => event,
                    // Arrived beats expired, and nothing has arrived.
                    None if due.is_some() => {
                        *looked = None;
                        Event::Elapsed
                    }
                    None => {
                        if link.is_none() {
                            sleeper.close();
                        }
                        let wake = [wait.deadline.map(|(at, _)| at), opening_due(link)];
                        sleeper.sleep(wake.into_iter().flatten().min().map(|at| at - shared.now()));
                        drain = call.drain();
                        continue;
                    }
                }
            };
            drain = call.handle(now, event).expect(KEPT);
        }
    }
}

const KEPT: &str = "the driver keeps the machine's contract";

/// Whether the caller's cancel has yet to be told, which it then is
fn is_cancel_due(sleeper: &Sleeper, is_told: &mut bool) -> bool {
    let is_due = !*is_told && sleeper.bell().is_cancelled();
    *is_told |= is_due;
    is_due
}

/// Takes steps until the call delivers, waits or is done
fn run<T>(
    mut drain: Drain<'_, Call>,
    shared: &Arc<Shared>,
    origin: &Origin,
    sleeper: &mut Sleeper,
    link: &mut Option<(AttemptId, Link)>,
    refused: &mut Option<AttemptId>,
    take: &mut impl FnMut(Item<'_>) -> T,
) -> Stop<T> {
    loop {
        match drain.next() {
            Step::Do(Command::Connect(id)) => {
                let opening = sleeper.open().and_then(|registry| {
                    Opening::new(Arc::clone(shared), origin.clone(), registry, sleeper.bell())
                });
                let opening = opening.map_or_else(Link::Failed, |opening| Link::Opening(Box::new(opening)));
                *link = Some((id, opening));
            }
            Step::Do(Command::Retry(id)) => {
                let is_refused = shared.with_budget(|budget| !budget.withdraw(shared.now())) == Some(true);
                *refused = is_refused.then_some(id);
            }
            // Without a pool, what could be kept is closed too.
            Step::Do(Command::Close(..)) => {
                if let Some((_, Link::Open(connection))) = link.take() {
                    connection.close();
                }
            }
            Step::Deliver(item) => return Stop::Output(Output::Item(take(item))),
            Step::Wait(wait) => return Stop::Wait(wait),
            Step::Done(outcome) => return Stop::Output(Output::Done(Box::new(outcome))),
        }
    }
}

/// Looks at the connection, by the operating system's own word, until something has happened
fn look<'b>(
    call: &Call,
    link: &mut Option<(AttemptId, Link)>,
    interest: Option<Interest<AttemptId>>,
    now: Instant,
    input: &'b mut Input,
) -> Option<Event<'b, Call>> {
    if let Some((_, Link::Open(connection))) = link {
        return exchange(call, connection, interest?, input);
    }
    let (id, opening) = match link.take()? {
        (id, Link::Opening(opening)) => (id, opening),
        (id, Link::Failed(failure)) => return Some(Event::Failed(id, failure)),
        (_, Link::Open(_)) => unreachable!("it was looked at before"),
    };
    match opening.go_on(now) {
        Ok(Opened::NotYet(opening)) => {
            *link = Some((id, Link::Opening(opening)));
            None
        }
        Ok(Opened::Open(connection)) => {
            *link = Some((id, Link::Open(connection)));
            Some(Event::Connected(id))
        }
        Err(failure) => Some(Event::Failed(id, failure)),
    }
}

/// Reads and writes what is wanted and can be
///
/// Reading comes first: an answer to a request that is still going out must be seen. What is read of the
/// request comes last, once what was read before is written.
fn exchange<'b>(
    call: &Call,
    connection: &mut Connection,
    Interest { link: id, read, write, supply }: Interest<AttemptId>,
    input: &'b mut Input,
) -> Option<Event<'b, Call>> {
    if read && let Some(came) = connection.read(&mut input.buffer) {
        return Some(match came {
            Ok(Came::Bytes(read)) => Event::Received(id, &input.buffer[..read]),
            Ok(Came::End(ended)) => Event::Eof(id, ended),
            Err(failure) => Event::Failed(id, failure),
        });
    }
    if write {
        let sent = connection.write(call.outgoing(id))?;
        return Some(sent.map_or_else(|failure| Event::Failed(id, failure), |sent| Event::Sent(id, sent)));
    }
    match connection.flush() {
        Ok(_) => input.of_request(call, id, supply),
        Err(failure) => Some(Event::Failed(id, failure)),
    }
}

/// When a connection that is being opened wants to go on by itself
fn opening_due(link: &Option<(AttemptId, Link)>) -> Option<Instant> {
    if let Some((_, Link::Opening(opening))) = link { opening.due() } else { None }
}
