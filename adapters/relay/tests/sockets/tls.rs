//! Apps that speak TLS.

use rcgen::{CertificateParams, KeyPair};
use steadfast_relay::TlsServerConfig;
use steadfast_tls::{PlainRead, TlsConfig, TlsConnection};
use steadfast_tokio::steadfast::machine::Ended;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Rig, post, soon};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A certificate for `localhost`, and who trusts it
fn identity() -> (TlsServerConfig, TlsConfig) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    let server = TlsServerConfig::new(certificate.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    (server, TlsConfig::roots_only(certificate.as_bytes()).unwrap())
}

async fn rig() -> (Rig, TlsConfig) {
    let rig = Rig::new().await;
    let (server, trusts) = identity();
    rig.relay.secure_apps(server);
    (rig, trusts)
}

struct App {
    stream: TcpStream,
    tls: TlsConnection,
    /// What came and was not handed on yet, since plain bytes wait to be read
    cipher: Vec<u8>,
}

impl App {
    /// A connection behind its handshake
    async fn new(rig: &Rig, trusts: &TlsConfig) -> Self {
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let tls = TlsConnection::client(trusts, "localhost").unwrap();
        let mut app = Self { stream, tls, cipher: Vec::new() };
        while app.tls.is_handshaking() {
            app.flush().await;
            assert!(app.fill().await, "it ended in the handshake");
        }
        app.flush().await;
        app
    }

    async fn flush(&mut self) {
        soon("it reads", self.stream.write_all(self.tls.outgoing())).await.unwrap();
        self.tls.sent(self.tls.outgoing().len());
    }

    /// Hands on what comes; whether something came
    async fn fill(&mut self) -> bool {
        if self.cipher.is_empty() {
            let mut buffer = vec![0; 64 * 1024];
            let read = soon("it sends", self.stream.read(&mut buffer)).await.unwrap();
            self.cipher.extend_from_slice(&buffer[..read]);
        }
        if self.cipher.is_empty() {
            self.tls.eof().unwrap();
            return false;
        }
        let taken = self.tls.received(&self.cipher).unwrap();
        self.cipher.drain(..taken);
        true
    }

    async fn send(&mut self, text: &str) {
        assert_eq!(self.tls.write(text.as_bytes()), text.len());
        self.flush().await;
    }

    /// What comes, up to where it ends with `end`, or to the end of the connection and how that was
    async fn until(&mut self, end: &str) -> (String, Option<PlainRead>) {
        let (mut got, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
        while end.is_empty() || !got.ends_with(end.as_bytes()) {
            match self.tls.read(&mut buffer).unwrap() {
                PlainRead::Bytes(n) => got.extend_from_slice(&buffer[..n]),
                PlainRead::Pending => _ = self.fill().await,
                ended @ PlainRead::Ended(_) => return (String::from_utf8(got).unwrap(), Some(ended)),
            }
        }
        (String::from_utf8(got).unwrap(), None)
    }
}

#[tokio::test]
async fn an_answer_comes_byte_for_byte_and_the_connection_goes_on() {
    let (rig, trusts) = rig().await;
    let mut app = App::new(&rig, &trusts).await;
    let answer = "HTTP/1.1 200 Fine\r\nX-Odd: a\r\nContent-Length: 2\r\n\r\nhi";
    app.send(&post("{}")).await;
    let mut provider = rig.accept().await;
    for round in 0..3 {
        if round > 0 {
            app.send(&post("{}")).await;
        }
        let request = provider.until("\r\n\r\n{}").await;
        assert!(request.starts_with("POST /v1/chat HTTP/1.1\r\n"), "{request}");
        provider.send(answer).await;
        assert_eq!(app.until("\r\n\r\nhi").await, (answer.to_owned(), None));
    }
    drop(app);
    soon("no connection is left", rig.relay.drained()).await;
}

/// A close_notify waits for ours in many clients, which end the connection behind it alone
#[tokio::test]
async fn each_app_that_leaves_is_seen_by_the_provider() {
    let (rig, trusts) = rig().await;
    for round in 0..60 {
        let mut app = App::new(&rig, &trusts).await;
        app.send(&post("{}")).await;
        let mut provider = rig.accept().await;
        provider.until("\r\n\r\n{}").await;
        if round % 2 == 1 {
            provider.send(HEAD).await;
            app.until("\r\n\r\n").await;
        }
        match round % 3 {
            // Without a word of TLS
            0 => drop(app),
            1 => {
                app.tls.close();
                app.flush().await;
                assert_eq!(provider.rest().await.0, "", "a close_notify alone is an end");
                continue;
            }
            _ => {
                app.send(&post("{}")).await;
                app.tls.close();
                app.flush().await;
                drop(app);
            }
        }
        assert_eq!(provider.rest().await.0, "", "round {round}: nothing more is sent");
    }
    soon("no connection is left", rig.relay.drained()).await;
}

#[tokio::test]
async fn those_that_leave_in_the_handshake_or_speak_no_tls_leave_nothing_behind() {
    let (rig, trusts) = rig().await;
    for sent in [0, 1, 5, 100] {
        let hello = TlsConnection::client(&trusts, "localhost").unwrap().outgoing()[..sent].to_vec();
        let mut app = rig.app().await;
        app.send(hello).await;
    }
    let mut plain = rig.app().await;
    plain.send(post("{}")).await;
    let (answer, _) = plain.rest().await;
    assert!(!answer.contains("HTTP"), "{answer}");
    drop(plain);
    soon("no connection is left", rig.relay.drained()).await;
    let stranger = identity().1;
    let mut refused = TlsConnection::client(&stranger, "localhost").unwrap();
    let mut app = rig.app().await;
    app.send(refused.outgoing()).await;
    refused.sent(refused.outgoing().len());
    let error = loop {
        let byte = app.exactly(1).await;
        if let Err(error) = refused.received(&byte) {
            break error;
        }
    };
    assert!(error.to_string().contains("certificate"), "{error}");
    app.send(refused.outgoing()).await;
    soon("no connection is left", rig.relay.drained()).await;
}

#[tokio::test]
async fn an_answer_that_is_read_slowly_is_whole_though_the_connection_ends_behind_it() {
    let (rig, trusts) = rig().await;
    let mut app = App::new(&rig, &trusts).await;
    app.send(&post("{}").replacen("Host", "Connection: close\r\nHost", 1)).await;
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n{}").await;
    // More than the buffers of the sockets take
    let body = "x".repeat(12 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let all = format!("{head}{body}");
    let sends = tokio::spawn(async move {
        provider.send(all).await;
        provider
    });
    let (got, ended) = app.until("").await;
    assert!(got.ends_with(&body) && got.len() >= head.len() + body.len(), "{} bytes", got.len());
    assert_eq!(ended, Some(PlainRead::Ended(Ended::Clean)));
    drop((app, sends.await));
    soon("no connection is left", rig.relay.drained()).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_has_all_that_came_and_no_close_notify() {
    let (rig, trusts) = rig().await;
    let mut app = App::new(&rig, &trusts).await;
    app.send(&post("{}")).await;
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n{}").await;
    provider.send(format!("{HEAD}5\r\nhello\r\n")).await;
    app.until("hello\r\n").await;
    drop(provider);
    let (rest, ended) = app.until("").await;
    assert_eq!((rest.as_str(), ended), ("", Some(PlainRead::Ended(Ended::WithoutCloseNotify))));
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_from_then_on() {
    let (rig, trusts) = rig().await;
    let mut before = App::new(&rig, &trusts).await;
    let (server, trusts) = identity();
    rig.relay.secure_apps(server);
    let mut after = App::new(&rig, &trusts).await;
    for app in [&mut before, &mut after] {
        app.send("GET /nowhere HTTP/1.1\r\nHost: relay\r\n\r\n").await;
        let (answer, _) = app.until("}").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}
