//! More apps than the relay has room for.

use steadfast_relay::MAX_REFUSALS;
use tokio::io::AsyncWriteExt;

use crate::support::{Peer, Rig, post, soon};

const EVENTS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const MOST: usize = 8;

async fn full() -> (Rig, Vec<Peer>) {
    let rig = Rig::new().await;
    rig.relay.limit_apps(Some(MOST));
    let mut apps = Vec::new();
    for _ in 0..MOST {
        apps.push(rig.app().await);
    }
    (rig, apps)
}

/// Asks on a connection of its own, and tells what comes until that ends
async fn asked(rig: &Rig) -> String {
    let mut app = rig.app().await;
    app.send(post("{}").replace("Host", "Connection: close\r\nHost")).await;
    app.rest().await.0
}

#[tokio::test]
async fn past_the_cap_an_app_is_told_so_and_nothing_that_is_open_is_closed() {
    let (rig, mut apps) = full().await;
    for _ in 0..100 {
        let refused = asked(&rig).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(refused.contains(r#""code":"gateway_overloaded""#), "{refused}");
        assert!(
            refused.contains("retry-after: 1\r\n") && refused.contains("connection: close\r\n"),
            "{refused}"
        );
    }
    assert_eq!(rig.relay.open().1, 0, "nothing was sent for them");
    for app in &mut apps {
        app.send(post("{}")).await;
        let mut provider = rig.accept().await;
        provider.until("\r\n\r\n{}").await;
        provider.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        assert!(app.until("ok").await.starts_with("HTTP/1.1 200 "));
    }
    // With one of them gone there is room for another.
    drop(apps.pop());
    let serves = async {
        loop {
            let mut provider = rig.accept().await;
            provider.until("\r\n\r\n{}").await;
            provider.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        }
    };
    let asks = async { while !asked(&rig).await.starts_with("HTTP/1.1 200 ") {} };
    tokio::select! {
        () = soon("there is room", asks) => {}
        () = serves => {}
    }
}

/// The clock stands still while anything can be done, and jumps to the next deadline when nothing can
#[tokio::test(start_paused = true)]
async fn idle_connections_take_no_more_than_the_cap_and_what_is_refused_at_once() {
    let (rig, apps) = full().await;
    let mut flood = Vec::new();
    for _ in 0..500 {
        flood.push(rig.app().await);
    }
    // Those past both are closed as soon as they come.
    for app in flood.iter_mut().skip(MAX_REFUSALS) {
        assert_eq!(app.rest().await.0, "");
    }
    assert!(rig.relay.open().0 <= MOST + MAX_REFUSALS, "{:?}", rig.relay.open());
    // And those that could ask do not stay to think it over.
    for app in flood.iter_mut().take(MAX_REFUSALS) {
        assert_eq!(app.rest().await.0, "");
    }
    assert!(asked(&rig).await.contains("gateway_overloaded"), "the next one is told again");
    drop((apps, flood));
    soon("all are gone", rig.relay.drained()).await;
}

#[tokio::test]
async fn slow_readers_count_like_any_other() {
    let rig = Rig::new().await;
    rig.relay.limit_apps(Some(MOST));
    let (mut slow, mut writing) = (Vec::new(), Vec::new());
    for _ in 0..MOST {
        let (app, mut provider) = rig.call().await;
        provider.send(EVENTS).await;
        let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let writes =
            tokio::spawn(async move { while provider.0.write_all(piece.as_bytes()).await.is_ok() {} });
        slow.push(app);
        writing.push(writes);
    }
    assert!(asked(&rig).await.contains("gateway_overloaded"));
    drop(slow);
    soon("all are gone", rig.relay.drained()).await;
    for writes in writing {
        soon("the provider is told", writes).await.unwrap();
    }
}
