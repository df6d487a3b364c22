//! One connection of an app, and the runtime of its exchanges.

use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast::call::{CloseMode, Origin};
use steadfast::http::StatusCode;
use steadfast::relay::{Closing, Code, Command, Ending, Exchange, Fact, Item, Link, Served};
use steadfast::time::Instant;
use steadfast_driver::{
    Action, Connection, Driver, Handshake, Leased, Network, Opening, Output, Runtime, Socket, Timekeeper,
};
use steadfast_tokio::Tokio;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app_socket::AppSocket;
use crate::pages::Follower;
use crate::shared::{Admitted, Force, Relay, Seen};

/// How long an app may take from its connection to the end of its TLS handshake: 10 s
///
/// One that takes longer, or leaves meanwhile, is closed without a word.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// How long an app may take to read what its TLS holds back when its connection is over: 10 s
const LAST_BYTES_WITHIN: Duration = Duration::from_secs(10);

/// Serves the exchanges of one connection, to its end; or refuses the first one, where `is_past_cap`
pub(crate) async fn serve(stream: TcpStream, relay: Relay, is_past_cap: bool) {
    let Some(app) = accept(stream, &relay).await else { return };
    let time = relay.0.client.timekeeper();
    let seed = RandomState::new().hash_one(0_u8);
    let has_taps = relay.0.observer.is_some();
    let mut force = relay.0.force.subscribe();
    let in_force = force.borrow_and_update().clone();
    let exchange = Exchange::new(in_force.routes, has_taps, seed, time.now());
    let exchange = if in_force.is_draining || is_past_cap { exchange.draining() } else { exchange };
    let runtime = Exchanges { relay: relay.clone(), time, is_past_cap };
    let mut driver = Driver::new(exchange, runtime).with_open(Link::App, app);
    let (mut seen, mut is_whole) = (None, true);
    let mut follower = relay.0.watch.clone().map(Follower::new);
    let closing = loop {
        let output = poll_fn(|cx| {
            let mut over = None;
            let output = driver.poll(cx, |item: Item<'_>| {
                if let Item::Over(exchanged) = &item {
                    is_whole =
                        matches!(exchanged.ending, Ending::Passed | Ending::Refused(_) | Ending::Served);
                    over = follower.is_some().then(|| exchanged.clone());
                }
                observe(item, &relay, &mut seen);
            });
            if let Some(follower) = &mut follower {
                let (progress, now) = (driver.machine().progress(), driver.runtime().now());
                match over {
                    Some(exchanged) => follower.over(&progress, &exchanged, now),
                    None => follower.step(&progress, now),
                }
            }
            output
        });
        tokio::select! {
            biased;
            output = output => match output {
                Output::Item(()) => {}
                Output::Done(closing) => break closing,
            },
            Ok(()) = force.changed() => {
                let Force { routes, is_draining } = force.borrow_and_update().clone();
                driver.tell_fact(Fact::Routes(routes));
                if is_draining {
                    driver.tell_fact(Fact::Draining);
                }
            }
        }
    };
    let Some(connection) = driver.connection(Link::App) else { return };
    if closing == Closing::Reset {
        if let Side::App(app) = connection.socket_mut() {
            app.reset();
        }
        return;
    }
    // The system sends on what it has taken when it is closed; what TLS holds back would be lost. An answer
    // that broke off ends without a close_notify, by which TLS tells so too.
    let last = poll_fn(|cx| {
        if std::mem::take(&mut is_whole) {
            connection.close(cx);
        }
        connection.poll_flush(cx)
    });
    // An app that is gone, or reads nothing, has lost them.
    _ = timeout(LAST_BYTES_WITHIN, last).await;
}

/// The connection of an app, behind its handshake where apps speak TLS; `None` where that came to nothing
async fn accept(stream: TcpStream, relay: &Relay) -> Option<Connection<Side>> {
    let socket = Side::App(AppSocket::new(stream));
    let Some(tls) = relay.app_tls() else { return Some(Connection::plain(socket)) };
    timeout(HANDSHAKE_WITHIN, Handshake::accept(socket, &tls).ok()?).await.ok()?.ok()
}

/// Hands what goes by to the observer
fn observe(item: Item<'_>, relay: &Relay, seen: &mut Option<Box<dyn Seen>>) {
    let Some(observer) = &relay.0.observer else { return };
    let see = seen.get_or_insert_with(|| observer.begin(relay));
    match item {
        Item::Tap(tap) => see.tap(tap),
        Item::Over(exchanged) => {
            see.over(*exchanged);
            *seen = None;
        }
        Item::Pass { .. } => {}
    }
}

/// Opens connections to providers for the exchanges of one app
struct Exchanges {
    relay: Relay,
    time: Timekeeper<Tokio>,
    is_past_cap: bool,
}

/// A socket on either side
enum Side {
    App(AppSocket),
    Up { leased: Leased<Tokio>, _admitted: Admitted },
}

impl Runtime<Exchange> for Exchanges {
    type Socket = Side;

    fn now(&self) -> Instant {
        self.time.now()
    }

    fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.time.poll_until(at, cx)
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.time.poll_turn(cx)
    }

    fn unbudgeted(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        Tokio::unbudgeted(cx, poll);
    }

    fn act(&mut self, command: Command) -> Action<Exchange, Side> {
        match command {
            Command::Connect { id, .. } if self.is_past_cap => {
                Action::Tell(Fact::Refused(id, Code::GatewayOverloaded))
            }
            Command::Connect { id, origin, reuse } => match self.relay.admit() {
                Ok(admitted) => Action::Open(Link::Up(id), self.open(&origin, reuse, admitted)),
                Err(code) => Action::Tell(Fact::Refused(id, code)),
            },
            Command::Close(id, CloseMode::Abort) => Action::Close(Link::Up(id)),
            Command::Close(id, CloseMode::Keep | CloseMode::KeepFor(_) | CloseMode::Finish(_)) => {
                let release = self.relay.0.client.release();
                Action::Release(Link::Up(id), Box::new(|side| release(side.map_socket(Side::into_leased))))
            }
            Command::Finish => Action::Finish(Link::App),
            Command::Serve(request) => match &self.relay.0.pages {
                Some(pages) => {
                    let answer = pages.serve(&self.relay, *request);
                    Action::Later(Box::pin(async { Fact::Served(Box::new(answer.await)) }))
                }
                None => Action::Tell(Fact::Served(Box::new(nothing_here()))),
            },
        }
    }
}

impl Exchanges {
    fn open(&self, origin: &Origin, reuse: bool, admitted: Admitted) -> Opening<Side> {
        let opening = self.relay.0.client.opening(origin, reuse);
        Box::pin(
            async move { Ok(opening.await?.map_socket(|leased| Side::Up { leased, _admitted: admitted })) },
        )
    }
}

impl Side {
    /// The provider's
    fn into_leased(self) -> Leased<Tokio> {
        match self {
            Self::Up { leased, .. } => leased,
            Self::App(_) => unreachable!("only a provider's connection is left to a later exchange"),
        }
    }
}

impl Socket for Side {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::App(app) => app.poll_read(cx, buffer),
            Self::Up { leased, .. } => leased.poll_read(cx, buffer),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::App(app) => app.read_now(buffer),
            Self::Up { leased, .. } => leased.read_now(buffer),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Self::App(app) => app.poll_write(cx, parts),
            Self::Up { leased, .. } => leased.poll_write(cx, parts),
        }
    }

    fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::App(app) => app.poll_hang_up(cx),
            Self::Up { leased, .. } => leased.poll_hang_up(cx),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::App(app) => app.finish(),
            Self::Up { leased, .. } => leased.finish(),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::App(app) => app.poll_flush(cx),
            Self::Up { leased, .. } => leased.poll_flush(cx),
        }
    }
}

/// The answer of a relay without pages of its own
fn nothing_here() -> Served {
    Served { status: StatusCode::NOT_FOUND, fields: Vec::new(), body: Vec::new() }
}
