//! Operations into the call machine: whatever happens, in whatever order.

mod driver;
mod record;
mod wire;

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use steadfast::call::{Fact, Request, Retries};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::{Ended, Event, FailureKind, IoFailure, Stage};

use driver::Driver;
use wire::Words;

/// The most operations that are played
const MAX_OPERATIONS: usize = 120;

/// A call, and what happens to it
#[derive(Arbitrary, Clone, Debug)]
struct Play {
    seed: u64,
    dialect: u8,
    stream: bool,
    retries: u8,
    config: [u8; 9],
    /// Whether the consumer takes each item at once
    eager: bool,
    /// At which points, in turn, a drain is dropped
    drops: u16,
    operations: Vec<Operation>,
}

/// One thing that happens
#[derive(Arbitrary, Clone, Debug)]
enum Operation {
    /// The connection asked for last opens
    Connected,
    /// The connection asked for last is one that was left open
    Reused,
    /// The connection takes so many bytes, if it has that many to take
    Sent(u8),
    /// The server sends something: it lies in the socket
    Says(Words),
    /// So many bytes are read, where the machine reads
    Read(u8),
    /// All that lies in the socket is read, whether or not the machine reads
    ReadAll,
    /// The peer's end, after all bytes were read
    Eof(bool),
    /// Something failed
    Failed(u8),
    /// An end or a failure of a connection before the present one
    Stale(bool),
    /// The consumer is back
    Taken,
    /// The end of a wait is reported, whether or not it has come
    Elapsed,
    /// Time passes up to the next deadline
    Expires,
    /// Milliseconds pass, deadlines on the way expire
    Passes(u16),
    /// As many pass, and the driver was held up
    Late(u16),
    /// The clock steps back
    Back(u8),
    /// The caller gives up
    Cancel,
    /// The caller's callback fails
    ConsumerFails,
    /// Another transport reports a head, of this status
    Head(u8),
    /// Another transport reports a piece of the body
    Body(Words),
    /// Another transport reports the end of the body
    End,
}

/// Operations: the driver does anything that its contract permits, and a good deal that it does not
///
/// After every step the invariants of the design hold, as [`record`] lists them; from the point at
/// which nothing more comes, the call ends within its bounds; and where drains are dropped on the way,
/// nothing else changes.
pub fn call_operations(data: &[u8]) {
    let Ok(play) = Play::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let undisturbed = play.run(0);
    if play.drops != 0 {
        let dropped = play.run(play.drops);
        assert_eq!(dropped, undisturbed, "a dropped drain changes something");
    }
}

impl Play {
    /// Plays it to the end; returns each event and step
    fn run(&self, drops: u16) -> Vec<String> {
        let dialect = Dialect::ALL[usize::from(self.dialect) % Dialect::ALL.len()];
        let request = Request::post("http://fuzz.invalid/v1").body("{}").dialect(dialect);
        let request = if self.stream { request.stream() } else { request };
        let request = request.retries(match self.retries % 4 {
            0 | 1 => Retries::Allowed,
            2 => Retries::UnlessBilled,
            _ => Retries::Never,
        });
        let config = self.config();
        let mut driver =
            Driver::new(request.build().expect("a request"), config, self.seed, self.eager, drops);
        driver.feed(Event::Start);
        for operation in self.operations.iter().take(MAX_OPERATIONS) {
            happen(&mut driver, dialect, operation);
        }
        driver.finish()
    }

    fn config(&self) -> RequestConfig {
        let [connect, request, idle, deadline, attempts, stream, content, marker, caps] = self.config;
        let tenth = |value: u8| Duration::from_millis(100 * (1 + u64::from(value)));
        let mut overrides = Overrides::new()
            .connect_timeout(tenth(connect))
            .request_timeout(tenth(request))
            .stream_idle_timeout(tenth(idle))
            .total_deadline(tenth(deadline))
            .max_attempts(1 + u32::from(attempts % 4))
            .after_marker(Duration::from_millis(10 * u64::from(marker)));
        if stream & 1 != 0 {
            overrides = overrides.stream_deadline(tenth(stream));
        }
        if content & 1 != 0 {
            overrides = overrides.content_idle_timeout(tenth(content));
        }
        if content & 2 != 0 {
            overrides = overrides.first_content_timeout(tenth(content / 2));
        }
        if caps & 1 != 0 {
            overrides = overrides.max_event_bytes(128).max_head_bytes(256).max_body_bytes(512);
        }
        if caps & 2 != 0 {
            overrides = overrides.max_retry_after(Duration::from_secs(1));
        }
        RequestConfig::default().with(&overrides).expect("values in their ranges")
    }
}

fn happen(driver: &mut Driver, dialect: Dialect, operation: &Operation) {
    let Some(link) = driver.link() else {
        return;
    };
    let failure = |stage| IoFailure { stage, kind: FailureKind::Reset, message: "reset".to_owned() };
    let words;
    let event = match operation {
        Operation::Connected => Event::Connected(link),
        Operation::Reused => Event::Reused(link),
        Operation::Sent(bytes) => Event::Sent(link, driver.outgoing().min(usize::from(*bytes))),
        Operation::Says(words) => return driver.server_says(|chunked| words.bytes(dialect, chunked)),
        Operation::Read(bytes) => return driver.read(usize::from(*bytes)),
        Operation::ReadAll => return driver.read_all(),
        Operation::Eof(true) => Event::Eof(link, Ended::Clean),
        Operation::Eof(false) => Event::Eof(link, Ended::WithoutCloseNotify),
        Operation::Failed(which) => {
            Event::Failed(link, failure([Stage::Read, Stage::Write, Stage::Connect][usize::from(which % 3)]))
        }
        Operation::Stale(is_end) => match (driver.first_link(), is_end) {
            (Some(first), true) => Event::Eof(first, Ended::Clean),
            (Some(first), false) => Event::Failed(first, failure(Stage::Read)),
            (None, _) => return,
        },
        Operation::Taken => Event::Taken,
        Operation::Elapsed => Event::Elapsed,
        Operation::Expires => return driver.expire(),
        Operation::Passes(millis) => return driver.pass(Duration::from_millis((*millis).into())),
        Operation::Late(millis) => return driver.late(Duration::from_millis((*millis).into())),
        Operation::Back(millis) => return driver.back(Duration::from_millis((*millis).into())),
        Operation::Cancel => Event::Cancel,
        Operation::ConsumerFails => Event::Fact(Fact::ConsumerFailed("no")),
        Operation::Head(which) => Event::Fact(Fact::Head(link, driver::head(*which))),
        Operation::Body(body) => {
            words = body.bytes(dialect, false);
            Event::Fact(Fact::Body(link, &words))
        }
        Operation::End => Event::Fact(Fact::End(link)),
    };
    driver.feed(event);
}
