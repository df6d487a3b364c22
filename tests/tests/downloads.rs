//! Bodies that are written away as they come, by every client, over real sockets.

use std::io::{self, Write};
use std::time::Duration;

use steadfast::call::{Request, RequestBuilder};
use steadfast::config::Overrides;
use steadfast::outcome::{Billing, Download, ErrorKind, Outcome, ProtocolError, Truncation};
use steadfast_mock::Mock;
use steadfast_scenario::Script;

/// How a client downloads to a writer that fails once it holds so many bytes
type Client = fn(Request, usize) -> (Download, Vec<u8>);

const CLIENTS: [(&str, Client); 3] = [("tokio", on_tokio), ("smol", on_smol), ("blocking", blocking)];

/// How a client makes a call and waits for its end
type Sender = fn(Request) -> Outcome;

const SENDERS: [(&str, Sender); 3] = [
    ("tokio", |request| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(steadfast_tokio::Client::new().send(request))
    }),
    ("smol", |request| smol::block_on(steadfast_smol::Client::new().send(request))),
    ("blocking", |request| steadfast_blocking::Client::new().send(request)),
];

/// No call of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);

const NO_LIMIT: usize = usize::MAX;

/// 3 MiB that are no text, in chunks whose borders lie anywhere
const PIECE: usize = 37_449;
const PIECES: usize = 84;

fn on_tokio(request: Request, limit: usize) -> (Download, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut full = Full { held: Vec::new(), limit };
    let download = runtime.block_on(async {
        let stream = steadfast_tokio::Client::new().stream(request);
        tokio::time::timeout(CAP, steadfast_tokio::download(stream, &mut full)).await.expect("it ends")
    });
    (download, full.held)
}

fn on_smol(request: Request, limit: usize) -> (Download, Vec<u8>) {
    let mut full = Full { held: Vec::new(), limit };
    let download = smol::block_on(async {
        let stream = steadfast_smol::Client::new().stream(request);
        steadfast_smol::download(stream, &mut full).await
    });
    (download, full.held)
}

fn blocking(request: Request, limit: usize) -> (Download, Vec<u8>) {
    let mut full = Full { held: Vec::new(), limit };
    let download = steadfast_blocking::download(steadfast_blocking::Client::new().stream(request), &mut full);
    (download, full.held)
}

/// A disk that is full once it holds so many bytes
struct Full {
    held: Vec<u8>,
    limit: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (self.limit - self.held.len()).min(bytes.len());
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on the disk"));
        }
        self.held.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same for both kinds of asynchronous writers
macro_rules! asynchronous {
    ($($writer:path, $close:ident;)+) => {
        $(
            impl $writer for Full {
                fn poll_write(
                    mut self: std::pin::Pin<&mut Self>,
                    _: &mut std::task::Context<'_>,
                    bytes: &[u8],
                ) -> std::task::Poll<io::Result<usize>> {
                    std::task::Poll::Ready(self.write(bytes))
                }

                fn poll_flush(
                    self: std::pin::Pin<&mut Self>,
                    _: &mut std::task::Context<'_>,
                ) -> std::task::Poll<io::Result<()>> {
                    std::task::Poll::Ready(Ok(()))
                }

                fn $close(
                    self: std::pin::Pin<&mut Self>,
                    _: &mut std::task::Context<'_>,
                ) -> std::task::Poll<io::Result<()>> {
                    std::task::Poll::Ready(Ok(()))
                }
            }
        )+
    };
}

asynchronous! {
    tokio::io::AsyncWrite, poll_shutdown;
    smol::io::AsyncWrite, poll_close;
}

fn mock(steps: &str) -> Mock {
    let script = format!(
        "name = \"x\"\nabout = \"a test\"\n[[connection]]\nsteps = [{{ read = \"request\" }}, {steps}]"
    );
    Mock::start(&Script::parse(&script).expect("a script"), None).expect("a server")
}

fn piece() -> Vec<u8> {
    (0..PIECE).map(|at| (at * 31 % 256) as u8).collect()
}

fn chunks(times: usize) -> String {
    let hex: String = piece().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{{ head = [\"200 OK\", \"content-type: video/mp4\", \"transfer-encoding: chunked\"] }}, \
         {{ repeat = {{ times = {times}, steps = [{{ chunk = {{ hex = \"{hex}\" }} }}] }} }}"
    )
}

fn request(mock: &Mock) -> Request {
    builder(mock).raw().build().expect("a request")
}

fn builder(mock: &Mock) -> RequestBuilder {
    let request = Request::builder(http::Method::GET, &format!("{}/v1/videos/v/content", mock.base_url()));
    request.overrides(Overrides::new().max_attempts(2))
}

#[test]
fn every_byte_is_written() {
    for (name, download) in CLIENTS {
        let mock = mock(&format!("{}, \"last-chunk\", \"await-close\"", chunks(PIECES)));
        let (download, held) = download(request(&mock), NO_LIMIT);
        let completion = download.outcome.result.expect(name);
        assert_eq!(completion.headers["content-type"], "video/mp4", "{name}");
        assert_eq!(download.written, (PIECE * PIECES) as u64, "{name}");
        assert!(held == piece().repeat(PIECES), "{name}: other bytes");
    }
}

#[test]
fn a_body_that_came_in_one_piece_is_written_too() {
    let steps = format!("{}, \"last-chunk\", \"await-close\"", chunks(3));
    for (name, download) in CLIENTS {
        let whole = |limit| {
            let mock = mock(&steps);
            download(builder(&mock).build().expect("a request"), limit)
        };
        let (done, held) = whole(NO_LIMIT);
        assert_eq!(done.outcome.result.expect(name).body, piece().repeat(3), "{name}");
        assert_eq!(done.written, 3 * PIECE as u64, "{name}");
        assert!(held == piece().repeat(3), "{name}: other bytes");
        let (full, _) = whole(50_000);
        let error = full.outcome.result.expect_err(name);
        assert_eq!(error.kind, ErrorKind::Consumer("no space left on the disk".to_owned()), "{name}");
        assert_eq!(full.written, 0, "{name}");
    }
}

#[test]
fn who_waits_for_the_end_gets_the_body_as_far_as_it_may_be_held() {
    for (name, send) in SENDERS {
        let sent = |most: usize| {
            let mock = mock(&format!("{}, \"last-chunk\", \"await-close\"", chunks(PIECES)));
            let overrides = Overrides::new().max_body_bytes(most);
            send(builder(&mock).overrides(overrides).raw().build().expect("a request"))
        };
        let whole = PIECE * PIECES;
        let completion = sent(whole).result.expect(name);
        assert_eq!(completion.headers["content-type"], "video/mp4", "{name}");
        assert!(completion.body == piece().repeat(PIECES), "{name}: other bytes");
        let error = sent(whole - 1).result.expect_err(name);
        let too_large = ErrorKind::Protocol(ProtocolError::BodyTooLarge { limit: whole - 1 });
        assert_eq!(error.kind, too_large, "{name}");
    }
}

#[test]
fn one_that_is_cut_says_so_with_what_came() {
    for (name, download) in CLIENTS {
        let mock = mock(&format!("{}, \"close\"", chunks(3)));
        let (download, held) = download(request(&mock), NO_LIMIT);
        let error = download.outcome.result.expect_err(name);
        assert!(matches!(error.kind, ErrorKind::Truncated(Truncation::InResponse { .. })), "{name}: {error}");
        assert_eq!((error.billing, download.written), (Billing::Delivered, 3 * PIECE as u64), "{name}");
        assert!(held == piece().repeat(3), "{name}: other bytes");
        assert_eq!(mock.shutdown().tally().requests, 1, "{name}: nothing is sent again");
    }
}

#[test]
fn a_writer_that_fails_ends_the_call() {
    for (name, download) in CLIENTS {
        let mock = mock(&format!("{}, \"last-chunk\", \"await-close\"", chunks(PIECES)));
        let (download, held) = download(request(&mock), 50_000);
        let error = download.outcome.result.expect_err(name);
        assert_eq!(error.kind, ErrorKind::Consumer("no space left on the disk".to_owned()), "{name}");
        assert!(download.written <= 50_000, "{name}");
        assert_eq!(held.len(), 50_000, "{name}");
        let seen = mock.wait_for(CAP, |seen| seen.connections.iter().all(|one| one.closed_by_peer.is_some()));
        assert!(seen.is_some(), "{name}: the connection is closed");
    }
}

#[test]
fn an_error_is_none_of_the_file() {
    for (name, download) in CLIENTS {
        let mock = mock(
            "{ answer = { head = [\"404 Not Found\", \"content-type: application/json\"], \
             body = '{\"error\":{\"message\":\"no such video\"}}' } }, \"await-close\"",
        );
        let (download, held) = download(request(&mock), NO_LIMIT);
        let ErrorKind::Status(error) = download.outcome.result.expect_err(name).kind else {
            panic!("{name}")
        };
        assert_eq!(error.provider.expect(name).message, "no such video");
        assert_eq!((held.len(), download.written), (0, 0), "{name}");
    }
}
