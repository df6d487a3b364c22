//! The embedded provider: a scripted server on loopback, for when nothing is configured.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | [`Embedded`]: the server |
//! | `answers.rs` | what it answers, in each provider's form |

mod answers;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::http1::{IncomingRequest, RequestDecoder, RequestLimits, RequestPart};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use crate::provider::Provider;

/// How long a word takes
const PAUSE: Duration = Duration::from_millis(30);
/// How many connections it serves at once; others wait
const MAX_CONNECTIONS: usize = 1024;
/// The longest body of a request: 16 MiB
const MAX_BODY_BYTES: usize = 16 << 20;
/// Room for one read, in bytes
const READ_BYTES: usize = 16 << 10;
/// How long a client may neither send nor read anything: 90 s
const IDLE: Duration = Duration::from_secs(90);

/// The server; it stops when it is dropped
pub(crate) struct Embedded {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Embedded {
    /// Starts it, on a thread of its own; `answer` is what it says, whatever it is asked
    ///
    /// Errors: the system refuses a socket or a thread.
    pub(crate) fn start(answer: &'static str) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, answer) => {}
                    _ = stopped => {}
                }
            });
        };
        thread::Builder::new().name("embedded-provider".to_owned()).spawn(serving)?;
        Ok(Self { address, _stop: stop })
    }

    /// Where it is
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept(listener: TcpListener, answer: &'static str) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    // A client that leaves is told nothing, and nobody else asks.
                    _ = serve(stream, answer).await;
                    drop(place);
                });
            }
            // Out of descriptors, or the like: the next one waits.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of a connection, to its end
async fn serve(mut stream: TcpStream, answer: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    let mut unread = Vec::new();
    while let Some(request) = read(&mut stream, &mut decoder, &mut unread).await? {
        let keeps_alive = request.as_ref().is_ok_and(|(head, _)| head.keeps_alive);
        match request.and_then(|(head, body)| asked(&head, &body)) {
            Ok((provider, Form::Whole)) => {
                sleep(PAUSE).await;
                write(&mut stream, &message("200 OK", &answers::whole(provider, answer))).await?;
            }
            Ok((provider, form)) => play(&mut stream, provider, form, answer).await?,
            Err(refused) => write(&mut stream, &message(refused.status, &refused.body())).await?,
        }
        if !keeps_alive {
            break;
        }
        decoder.again();
    }
    stream.shutdown().await
}

/// A request, or why it gets no answer; `None` at the end of the connection
type Read = Option<Result<(IncomingRequest, Vec<u8>), Refused>>;

async fn read(
    stream: &mut TcpStream,
    decoder: &mut RequestDecoder,
    unread: &mut Vec<u8>,
) -> io::Result<Read> {
    let (mut head, mut body) = (None, Vec::new());
    loop {
        let (taken, part) = match decoder.next(unread) {
            Ok(next) => next,
            Err(_) => {
                return Ok(Some(Err(Refused {
                    status: "400 Bad Request",
                    why: "the request cannot be read",
                })));
            }
        };
        let is_end = matches!(part, Some(RequestPart::End));
        let is_dry = part.is_none();
        match part {
            Some(RequestPart::Head(request)) => {
                if request.expects_continue {
                    write(stream, "HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                head = Some(request);
            }
            Some(RequestPart::Body(range)) => body.extend_from_slice(&unread[range]),
            Some(RequestPart::End) | None => {}
        }
        unread.drain(..taken);
        if body.len() > MAX_BODY_BYTES {
            return Ok(Some(Err(Refused { status: "413 Content Too Large", why: "the body is too large" })));
        }
        if is_end && let Some(head) = head.take() {
            return Ok(Some(Ok((head, body))));
        }
        if is_dry {
            unread.reserve(READ_BYTES);
            if timeout(IDLE, stream.read_buf(unread)).await?? == 0 {
                return Ok(None);
            }
        }
    }
}

/// The form that an answer is wanted in
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In one piece
    Whole,
    /// As server-sent events
    Events,
    /// As the elements of a JSON array
    Array,
}

/// Why a request gets no answer
struct Refused {
    status: &'static str,
    why: &'static str,
}

impl Refused {
    fn body(&self) -> String {
        json!({ "error": { "message": self.why, "type": "invalid_request_error" } }).to_string()
    }
}

/// Whose API a request is for, whatever comes before its endpoint, and the form that the answer is wanted in
fn asked(head: &IncomingRequest, body: &[u8]) -> Result<(Provider, Form), Refused> {
    const ENDPOINTS: [(&str, Provider); 5] = [
        ("/chat/completions", Provider::OpenAi),
        ("/responses", Provider::Responses),
        ("/messages", Provider::Anthropic),
        (":generateContent", Provider::Gemini),
        (":streamGenerateContent", Provider::Gemini),
    ];
    let endpoint = ENDPOINTS.into_iter().find(|(end, _)| head.path().ends_with(end));
    let (end, provider) = endpoint.filter(|_| head.method == http::Method::POST).ok_or(Refused {
        status: "404 Not Found",
        why: "the embedded provider answers POST /chat/completions, /responses, /messages, \
              :generateContent and :streamGenerateContent",
    })?;
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| Refused { status: "400 Bad Request", why: "the body is no JSON" })?;
    let is_stream = body["stream"] == true || end == ":streamGenerateContent";
    let form = match (provider, is_stream) {
        (_, false) => Form::Whole,
        (Provider::Gemini, true) if !head.target.contains("alt=sse") => Form::Array,
        (_, true) => Form::Events,
    };
    Ok((provider, form))
}

/// Sends a streamed answer, word by word
async fn play(stream: &mut TcpStream, provider: Provider, form: Form, answer: &str) -> io::Result<()> {
    let media_type = if form == Form::Array { "application/json" } else { "text/event-stream" };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n");
    write(stream, &head).await?;
    for (at, event) in answers::events(provider, answer).iter().enumerate() {
        let text = match form {
            Form::Array => format!("{}{}", if at == 0 { "[" } else { ",\r\n" }, event.data),
            Form::Whole | Form::Events => event.to_string(),
        };
        write(stream, &chunk(&text)).await?;
        if event.has_text {
            sleep(PAUSE).await;
        }
    }
    let end = if form == Form::Array { chunk("]") } else { String::new() };
    write(stream, &format!("{end}0\r\n\r\n")).await
}

fn message(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

async fn write(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    timeout(IDLE, stream.write_all(text.as_bytes())).await?
}
