//! Apps that leave, and relays that are told to stop.

use steadfast_relay::Limits;
use tokio::io::AsyncWriteExt;

use crate::support::{Rig, post, soon};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[derive(Clone, Copy, Debug)]
enum When {
    BeforeTheFirstByte,
    InSilence,
    MidFlow,
    WithTheNextRequestUnread,
}

#[tokio::test]
async fn each_app_that_leaves_is_seen_by_the_provider() {
    for when in [When::BeforeTheFirstByte, When::InSilence, When::MidFlow, When::WithTheNextRequestUnread] {
        let rig = Rig::new().await;
        for _ in 0..200 {
            let (mut app, mut provider) = rig.call().await;
            match when {
                When::BeforeTheFirstByte => {}
                When::InSilence => {
                    provider.send(HEAD).await;
                    app.until("\r\n\r\n").await;
                }
                When::MidFlow => {
                    provider.send(HEAD).await;
                    let (ends, mut writes) = provider.0.into_split();
                    let flows = tokio::spawn(async move {
                        while writes.write_all(b"9\r\ndata: x\n\n\r\n").await.is_ok() {
                            tokio::task::yield_now().await;
                        }
                    });
                    app.until("data: x\n\n").await;
                    drop(app);
                    soon("its writes fail", flows).await.unwrap();
                    drop(ends);
                    continue;
                }
                When::WithTheNextRequestUnread => app.send(post("{}")).await,
            }
            drop(app);
            let (rest, _) = provider.rest().await;
            assert_eq!(rest, "", "{when:?}: nothing more is sent");
        }
        soon("no connection is left", rig.relay.drained()).await;
    }
}

#[tokio::test]
async fn a_relay_that_drains_finishes_what_runs_and_refuses_what_is_new() {
    let rig = Rig::with(|_: &mut Limits| {}, None).await;
    let (mut app, mut provider) = rig.call().await;
    let mut idle = rig.app().await;
    provider.send(HEAD).await;
    app.until("\r\n\r\n").await;
    rig.relay.drain();
    assert_eq!(idle.rest().await.0, "", "a connection that asks for nothing is closed");
    let mut late = rig.app().await;
    late.send(post("{}")).await;
    assert!(late.rest().await.0.contains("gateway_draining"));
    provider.send("1\r\na\r\n0\r\n\r\n").await;
    assert!(app.rest().await.0.ends_with("1\r\na\r\n0\r\n\r\n"));
    drop((app, late, idle));
    soon("the relay has drained", rig.relay.drained()).await;
}

#[tokio::test]
async fn past_the_cap_a_call_is_told_so_and_nothing_is_sent() {
    let rig = Rig::with(|_| {}, Some(1)).await;
    let (_app, _provider) = rig.call().await;
    let mut second = rig.app().await;
    second.send(post("{}")).await;
    let head = second.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 1\r\n"), "{head}");
}

#[tokio::test]
async fn each_app_that_leaves_while_a_connection_is_opened_is_seen_as_well() {
    let provider = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("https://{}", provider.local_addr().unwrap());
    let rig = Rig::towards(provider, &upstream, |_| {}, None).await;
    for _ in 0..200 {
        let mut app = rig.app().await;
        app.send(post("{}")).await;
        let mut provider = rig.accept().await;
        // The beginning of TLS, which nobody answers
        provider.exactly(3).await;
        drop(app);
        let (hello, _) = provider.rest().await;
        assert!(!hello.contains("POST"), "{hello}");
    }
    soon("no connection is left", rig.relay.drained()).await;
}
