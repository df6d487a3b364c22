//! Answers that are there already: recorded, or made up on the way.

use steadfast::call::{AttemptId, Call, Command, Item};
use steadfast::machine::{Drain, Ended, Event, FailureKind, IoFailure, Machine, Stage, Step, Wait};
use steadfast::outcome::Outcome;
use steadfast::time::Instant;

use crate::play::MAX_EVENTS;

/// The sending side of a server, whose bytes need no time to come
pub trait Source {
    /// What comes next on the connection of that attempt
    fn next(&mut self, attempt: AttemptId) -> Arrival<'_>;
}

/// What comes over a connection
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// Bytes, in one read
    Bytes(&'a [u8]),
    /// The end of the server's sending side
    Eof(Ended),
    /// A reset
    Reset,
    /// Nothing more, though the connection stays open
    Silence,
}

/// A call that waits for ever
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endless;

/// Makes a call, which has not begun, to a server that is all `source`
///
/// Connections open at once, and every request is taken at once. Time stands still while anything
/// comes, and then jumps from deadline to deadline: how the bytes are cut into reads makes no
/// difference to any clock. Bytes are lent to the call, never copied for it.
///
/// Errors: [`Endless`] where nothing more comes and no bound of the configuration is in force.
///
/// # Panics
///
/// If the call breaks what every machine promises.
pub fn replay(
    mut call: Call,
    source: &mut impl Source,
    mut take: impl FnMut(Item<'_>),
) -> Result<Outcome, Endless> {
    let mut now = Instant::ORIGIN;
    let mut pause = feed(&mut call, now, Event::Start, &mut take);
    for _ in 0..MAX_EVENTS {
        let event = match pause {
            Pause::Over(outcome) => return Ok(*outcome),
            Pause::Connect(id) => Event::Connected(id),
            Pause::Wait(Wait { taken: true, .. }) => Event::Taken,
            Pause::Wait(wait) => match (wait.io, wait.deadline) {
                (Some(io), _) if io.write => {
                    Event::Sent(io.link, call.outgoing(io.link).iter().map(|part| part.len()).sum())
                }
                (io, deadline) => {
                    let arrived = io.filter(|io| io.read).map(|io| (io.link, source.next(io.link)));
                    match arrived {
                        Some((id, Arrival::Bytes(bytes))) => Event::Received(id, bytes),
                        Some((id, Arrival::Eof(ended))) => Event::Eof(id, ended),
                        Some((id, Arrival::Reset)) => Event::Failed(id, reset()),
                        Some((_, Arrival::Silence)) | None => {
                            let (at, _) = deadline.ok_or(Endless)?;
                            assert!(at >= now, "a deadline that has passed: {call:?}");
                            now = at;
                            Event::Elapsed
                        }
                    }
                }
            },
        };
        pause = feed(&mut call, now, event, &mut take);
    }
    panic!("no end after {MAX_EVENTS} events: {call:?}")
}

/// What a call asks for once it has taken all its steps
enum Pause {
    Connect(AttemptId),
    Wait(Wait<Call>),
    Over(Box<Outcome>),
}

fn feed(call: &mut Call, now: Instant, event: Event<'_, Call>, take: &mut impl FnMut(Item<'_>)) -> Pause {
    let drain = call.handle(now, event).expect("the contract of the machine is kept");
    steps(drain, take)
}

fn steps(mut drain: Drain<'_, Call>, take: &mut impl FnMut(Item<'_>)) -> Pause {
    let mut connect = None;
    for _ in 0..MAX_EVENTS {
        match drain.next() {
            Step::Do(Command::Connect(id)) => connect = Some(id),
            Step::Do(Command::Close(..) | Command::Retry(_)) => {}
            Step::Deliver(item) => take(item),
            Step::Wait(wait) => return connect.map_or(Pause::Wait(wait), Pause::Connect),
            Step::Done(outcome) => return Pause::Over(Box::new(outcome)),
        }
    }
    panic!("no rest after {MAX_EVENTS} steps")
}

fn reset() -> IoFailure {
    IoFailure { stage: Stage::Read, kind: FailureKind::Reset, message: "connection reset by peer".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast::call::{Env, Request};
    use steadfast::config::{Overrides, RequestConfig};
    use steadfast::dialect::Dialect;
    use steadfast::outcome::{ErrorKind, Phase};

    use super::*;

    /// The same answer on every connection
    struct Answer {
        bytes: &'static [u8],
        end: Arrival<'static>,
        of: Option<AttemptId>,
        sent: usize,
    }

    impl Source for Answer {
        fn next(&mut self, attempt: AttemptId) -> Arrival<'_> {
            if self.of.replace(attempt) != Some(attempt) {
                self.sent = 0;
            }
            match self.bytes.get(self.sent..self.sent + 1) {
                Some(byte) => {
                    self.sent += 1;
                    Arrival::Bytes(byte)
                }
                None => self.end,
            }
        }
    }

    fn play(bytes: &'static str, end: Arrival<'static>, overrides: Overrides) -> Result<Outcome, Endless> {
        let request = Request::post("http://replay.invalid").dialect(Dialect::OpenAiChat).stream();
        let config = RequestConfig::default().with(&overrides).unwrap();
        let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
        let call = Call::new(request.build().unwrap(), config, env, Instant::ORIGIN);
        let mut answer = Answer { bytes: bytes.as_bytes(), end, of: None, sent: 0 };
        replay(call, &mut answer, |_| {})
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    #[test]
    fn time_passes_only_when_nothing_comes() {
        let overrides = Overrides::new().stream_idle_timeout(7.0);
        let outcome = play(HEAD, Arrival::Silence, overrides).unwrap();
        let ErrorKind::Timeout(timeout) = outcome.result.unwrap_err().kind else { panic!("no timeout") };
        let seven = Duration::from_secs(7);
        assert_eq!((timeout.phase, timeout.elapsed, timeout.limit), (Phase::StreamIdle, seven, seven));
        assert_eq!(outcome.timeline.elapsed(), seven);
    }

    #[test]
    fn each_attempt_gets_the_answer() {
        let overrides = Overrides::new().max_attempts(3);
        let outcome =
            play("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", Arrival::Reset, overrides).unwrap();
        let statuses: Vec<_> = outcome.timeline.attempts.iter().map(|attempt| attempt.status).collect();
        assert_eq!(statuses, [Some(503); 3]);
    }

    #[test]
    fn ends_are_reported() {
        let ends = [
            (Arrival::Eof(Ended::Clean), "empty"),
            (Arrival::Eof(Ended::WithoutCloseNotify), "empty"),
            (Arrival::Reset, "transport"),
        ];
        for (end, kind) in ends {
            let outcome = play(HEAD, end, Overrides::new().max_attempts(1)).unwrap();
            assert_eq!(outcome.result.unwrap_err().kind.name(), kind, "{end:?}");
        }
    }

    #[test]
    fn a_call_without_bounds_is_endless() {
        let none = f64::INFINITY;
        let overrides = Overrides::new().stream_idle_timeout(none);
        assert_eq!(play(HEAD, Arrival::Silence, overrides).unwrap_err(), Endless);
        let overrides = Overrides::new().request_timeout(none).total_deadline(none);
        assert_eq!(play("HTTP/1.1", Arrival::Silence, overrides).unwrap_err(), Endless);
    }
}
