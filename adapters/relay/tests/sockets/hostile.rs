//! An app that attacks, and a provider that trusts nobody.

use std::sync::{Arc, Mutex};

use steadfast_relay::Relay;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Rig, post, soon};

/// A relay before a provider that reads strictly, and keeps all that it gets
pub(crate) struct Attacked {
    pub(crate) rig: Rig,
    got: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// What reached the provider
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Requests that were whole: head and body
    pub(crate) whole: Vec<(String, String)>,
    /// The beginnings of others
    pub(crate) cut: Vec<String>,
}

const MARK: &str = "the mark";

impl Attacked {
    pub(crate) async fn new() -> Self {
        Self::before(Rig::new().await)
    }

    /// This relay, whose provider is at this address
    pub(crate) async fn relay(make: impl FnOnce(&str) -> Relay) -> Self {
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}", provider.local_addr().unwrap());
        Self::before(Rig::before(provider, make(&upstream)))
    }

    fn before(mut rig: Rig) -> Self {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        unused.set_nonblocking(true).unwrap();
        let provider = std::mem::replace(&mut rig.provider, TcpListener::from_std(unused).unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let all = got.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = provider.accept().await {
                let at = all.lock().unwrap().len();
                all.lock().unwrap().push(Vec::new());
                tokio::spawn(answer(stream, all.clone(), at));
            }
        });
        Self { rig, got }
    }

    /// Sends these bytes on a connection of their own; all that the app gets until the relay closes it, and
    /// what reached the provider
    pub(crate) async fn refused(&self, bytes: impl AsRef<[u8]>) -> (String, Reached) {
        let mut app = self.rig.app().await;
        // Who refuses may have closed before all is sent.
        _ = soon("it takes what is sent", app.0.write_all(bytes.as_ref())).await;
        let (got, _) = app.rest().await;
        (got, self.reached().await)
    }

    /// The same, where one answer is all that comes and the connection stays
    pub(crate) async fn answered(&self, bytes: impl AsRef<[u8]>) -> (String, Reached) {
        let mut app = self.rig.app().await;
        app.send(bytes).await;
        let (got, _) = app.rest_or_answer().await;
        (got, self.reached().await)
    }

    /// What reached the provider since the last time
    pub(crate) async fn reached(&self) -> Reached {
        // Once this one is answered, what came before it has come.
        let mut app = self.rig.app().await;
        app.send(post(MARK).replace("Host", "X-Steadfast-Key: key-1\r\nHost")).await;
        assert!(app.rest_or_answer().await.0.ends_with("ok"));
        let got = std::mem::take(&mut *self.got.lock().unwrap());
        let mut reached = Reached::default();
        for bytes in got {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                match whole_request(rest) {
                    Some((head, body, length)) => {
                        if body != MARK {
                            reached.whole.push((head, body));
                        }
                        rest = &rest[length..];
                    }
                    None => {
                        reached.cut.push(String::from_utf8(rest.to_vec()).unwrap());
                        break;
                    }
                }
            }
        }
        reached
    }
}

/// Answers each request that is whole, and closes the connection, so that no two share one
async fn answer(mut stream: TcpStream, all: Arc<Mutex<Vec<Vec<u8>>>>, at: usize) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let is_whole = {
            let mut all = all.lock().unwrap();
            let Some(got) = all.get_mut(at) else { return };
            got.extend_from_slice(&buffer[..read]);
            whole_request(got).is_some()
        };
        if is_whole {
            _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                .await;
        }
    }
}

/// The first request: its head, its body, and how long it is; `None` where more is to come
///
/// Reads it in the one way in which no two servers differ, and panics where they could.
fn whole_request(bytes: &[u8]) -> Option<(String, String, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).expect("a head is text");
    let lines: Vec<&str> = head[..end - 4].split("\r\n").collect();
    let words: Vec<&str> = lines[0].split(' ').collect();
    assert!(words.len() == 3 && words[1].starts_with('/') && words[2] == "HTTP/1.1", "{head:?}");
    assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']), "{head:?}");
    let mut framing = Vec::new();
    let mut hosts = 0;
    for line in &lines[1..] {
        let (name, value) = line.split_once(": ").expect("a field line");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'),
            "{line:?}"
        );
        assert_eq!(value.trim(), value, "{line:?}");
        match name.to_ascii_lowercase().as_str() {
            "host" => hosts += 1,
            "content-length" => framing.push(value.parse().map_err(|_| value)),
            "transfer-encoding" => framing.push(Err(value)),
            "connection" | "te" | "trailer" | "upgrade" | "keep-alive" | "expect" => panic!("{line:?}"),
            _ => {}
        }
    }
    assert_eq!(hosts, 1, "{head:?}");
    let rest = &bytes[end..];
    let (body, length) = match framing[..] {
        [] => (Vec::new(), 0),
        [Ok(length)] => (rest.get(..length)?.to_vec(), length),
        [Err("chunked")] => whole_chunks(rest)?,
        _ => panic!("{head:?}"),
    };
    Some((head.to_owned(), String::from_utf8(body).expect("a body is text"), end + length))
}

fn whole_chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = bytes[at..].windows(2).position(|two| two == b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[at..at + line]).unwrap();
        assert!(digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits:?}");
        let size = usize::from_str_radix(digits, 16).unwrap();
        at += line + 2;
        body.extend_from_slice(bytes.get(at..at + size)?);
        assert_eq!(bytes.get(at + size..at + size + 2)?, b"\r\n");
        at += size + 2;
        if size == 0 {
            return Some((body, at));
        }
    }
}
