//! What the relay shows of itself, on its own paths.

use std::sync::Arc;
use std::time::Duration;

use steadfast_relay::{KeyHash, Keys, OWN_PATHS, Relay, Route, Routes, Shape};
use steadfast_tokio::Client;
use steadfast_tokio::steadfast::connect::Proxies;
use steadfast_tokio::steadfast::time::Bound;
use tokio::net::TcpListener;

use crate::support::{Peer, Rig, post, soon};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

async fn rig(keys: Option<Keys>, silence: Duration) -> Rig {
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", provider.local_addr().unwrap());
    let mut route = Route::new("openai", &upstream, Shape::OpenAi).unwrap();
    route.limits.silence = Bound::Limited(silence);
    let routes = Routes::new(vec![route], &OWN_PATHS).unwrap().opened(&steadfast_relay::pages::OPEN_PATHS);
    let routes = match keys {
        Some(keys) => routes.gated(Arc::new(keys)),
        None => routes,
    };
    let client = Client::new().with_proxies(Proxies::none());
    Rig::before(provider, Relay::new(routes, client, Some(9)).with_own_pages(None))
}

async fn get(rig: &Rig, target: &str, fields: &str) -> String {
    let mut app = rig.app().await;
    app.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n")).await;
    app.rest().await.0
}

async fn served(rig: &Rig, target: &str) -> String {
    let answer = get(rig, target, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{target}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The page, once it holds this
async fn shown(rig: &Rig, target: &str, text: &str) -> String {
    soon(text, async {
        loop {
            let page = served(rig, target).await;
            if page.contains(text) {
                return page;
            }
        }
    })
    .await
}

/// An answer that goes on
async fn streaming(rig: &Rig) -> (Peer, Peer) {
    let (mut app, mut provider) = rig.call().await;
    provider.send(format!("{HEAD}5\r\nhello\r\n")).await;
    app.until("hello\r\n").await;
    (app, provider)
}

#[tokio::test]
async fn a_stream_is_shown_live_and_then_over_and_is_counted() {
    let rig = rig(None, Duration::from_secs(900)).await;
    let (mut app, mut provider) = streaming(&rig).await;
    let page = served(&rig, "/_steadfast/").await;
    assert!(page.contains("1 live, 0 recent") && page.contains("live: answering"), "{page}");
    assert!(page.contains("/openai/v1/chat") && page.contains("http-equiv=\"refresh\""), "{page}");
    provider.send("0\r\n\r\n").await;
    app.until("0\r\n\r\n").await;
    let page = shown(&rig, "/_steadfast", "0 live, 1 recent").await;
    assert!(page.contains("passed"), "{page}");
    let one = served(&rig, "/_steadfast/calls/1").await;
    assert!(one.contains("end of body") && one.contains("first_byte") && one.contains("<meter"), "{one}");
    assert!(!one.contains("hello") && !one.contains("http-equiv"), "{one}");
    for (query, shown) in [
        ("status=200", 1),
        ("status=500", 0),
        ("route=openai&ending=passed", 1),
        ("route=other", 0),
        ("ending=limit", 0),
        ("app=laptop", 0),
    ] {
        let page = served(&rig, &format!("/_steadfast/?{query}")).await;
        assert!(page.contains(&format!("0 live, {shown} recent")), "{query}: {page}");
    }
    let text = served(&rig, "/metrics").await;
    for line in [
        "# TYPE steadfast_relay_calls_total counter",
        "steadfast_relay_calls_total{code=\"\",ending=\"passed\",route=\"openai\"} 1",
        "steadfast_relay_answer_bytes_total{route=\"openai\"} 5",
        "steadfast_relay_request_bytes_total{route=\"openai\"} 2",
        "steadfast_relay_first_byte_seconds_count{route=\"openai\"} 1",
        "steadfast_relay_upstream_connections_limit 9",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_call_that_reached_a_limit_is_shown_with_its_name() {
    let rig = rig(None, Duration::from_millis(50)).await;
    let (mut app, _provider) = streaming(&rig).await;
    app.rest().await;
    let page = shown(&rig, "/_steadfast/?ending=limit", "limit silence").await;
    assert!(page.contains("class=\"limit\" x="), "{page}");
    let text = served(&rig, "/metrics").await;
    assert!(text.contains("limit_breaches_total{limit=\"silence\",route=\"openai\"} 1"), "{text}");
}

#[tokio::test]
async fn where_keys_are_set_only_health_is_open() {
    let mut keys = Keys::default();
    keys.add("laptop", KeyHash::of(b"key-1")).unwrap();
    let rig = rig(Some(keys), Duration::from_secs(900)).await;
    for target in ["/healthz", "/readyz"] {
        served(&rig, target).await;
    }
    for target in ["/metrics", "/_steadfast/", "/_steadfast/style.css", "/_steadfast/calls/1", "/healthz/x"] {
        let answer = get(&rig, target, "").await;
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("Basic realm"), "{answer}");
        let answer = get(&rig, target, "Authorization: Basic YW55OmtleS0y\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    // any:key-1
    let answer = get(&rig, "/_steadfast/", "Authorization: Basic YW55OmtleS0x\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("default-src 'none'"), "{answer}");
}

#[tokio::test]
async fn what_an_app_says_is_inert_and_a_key_in_the_query_is_not_shown() {
    let rig = rig(None, Duration::from_secs(900)).await;
    let mut app = rig.app().await;
    let script = "<script>alert(1)</script>";
    app.send(format!(
        "GET /openai/\"{script}?key=secret-7 HTTP/1.1\r\nHost: a\r\nUser-Agent: {script}\r\n\r\n"
    ))
    .await;
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n").await;
    for target in ["/_steadfast/", "/_steadfast/calls/1"] {
        let page = served(&rig, target).await;
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
        assert!(!page.contains("secret-7"), "{page}");
    }
}

#[tokio::test]
async fn a_relay_that_drains_is_not_ready_and_is_healthy() {
    let rig = rig(None, Duration::from_secs(900)).await;
    assert!(served(&rig, "/readyz").await.contains("ready"));
    rig.relay.drain();
    assert!(get(&rig, "/readyz", "").await.starts_with("HTTP/1.1 503 "));
    served(&rig, "/healthz").await;
    let post = post("{}");
    let mut app = rig.app().await;
    app.send(post).await;
    assert!(app.rest().await.0.contains("gateway_draining"));
}
