//! Paths that climb, and keys that are not to go on.

use std::sync::Arc;

use steadfast_relay::record::RecordSettings;
use steadfast_relay::{KeyHash, Keys, Relay, Route, Routes, Shape};
use steadfast_tokio::Client;
use steadfast_tokio::steadfast::connect::Proxies;

use crate::hostile::Attacked;
use crate::recording::{Folder, open, read};

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n")
}

#[tokio::test]
async fn paths_that_climb_in_any_spelling_are_refused() {
    let attacked = Attacked::new().await;
    for target in [
        "/openai/../admin",
        "/openai/v1/../../admin",
        "/openai/./v1",
        "/openai/%2e%2e/admin",
        "/openai/%2E./admin",
        "/openai/%252e%252e/admin",
        "/openai/v1%2f..%2fadmin",
        "/openai/v1%5c..%5cadmin",
        "/openai/..;/admin/..",
        "/openai/v1/%00",
        "/openai/v1%00/x",
        "/../openai/v1",
        "//../openai/v1",
    ] {
        let (got, reached) = attacked.refused(get(target, "")).await;
        assert!(
            got.starts_with("HTTP/1.1 400 ") && got.contains(r#""code":"bad_request""#),
            "{target}: {got}"
        );
        assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{target}: {reached:?}");
    }
}

#[tokio::test]
async fn only_the_first_segment_names_a_route() {
    let attacked = Attacked::new().await;
    for target in
        ["//openai/v1", "/openai%2fv1", "/%2fopenai/v1", "/OPENAI/v1", "/openai%20/v1", "/", "/admin"]
    {
        let (got, reached) = attacked.refused(get(target, "")).await;
        assert!(got.starts_with("HTTP/1.1 404 ") && got.contains(r#""code":"not_found""#), "{target}: {got}");
        assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{target}: {reached:?}");
    }
    for (target, passed) in [
        ("/openai/v1/models/a%2Fb?x=../..&y=%2e", "/v1/models/a%2Fb?x=../..&y=%2e"),
        ("/%6fpenai/v1", "/v1"),
        ("/openai//v1", "//v1"),
        ("/openai?x", "/?x"),
        ("/openai/v1/...", "/v1/..."),
    ] {
        let (_, reached) = attacked.refused(get(target, "")).await;
        let [(head, _)] = &reached.whole[..] else { panic!("{target}: {reached:?}") };
        assert!(head.starts_with(&format!("GET {passed} HTTP/1.1\r\n")), "{target}: {head}");
    }
}

/// A relay that asks for the key `key-1`, and sends one of its own to the provider
fn keyed(upstream: &str) -> Relay {
    let mut route = Route::new("openai", upstream, Shape::OpenAi).unwrap();
    route.key = Some(("authorization".parse().unwrap(), "Bearer injected-key-9".parse().unwrap()));
    let own = Route::new("own", upstream, Shape::OpenAi).unwrap();
    let mut keys = Keys::default();
    keys.add("laptop", KeyHash::of(b"key-1")).unwrap();
    let routes = Routes::new(vec![route, own], &[]).unwrap().gated(Arc::new(keys));
    Relay::new(routes, Client::new().with_proxies(Proxies::none()), None)
}

#[tokio::test]
async fn a_key_in_the_query_goes_neither_to_the_provider_nor_into_records() {
    let folder = Folder::new("keys");
    let recorder = open(&folder.file(), RecordSettings::default());
    let observer = Arc::new(recorder.clone());
    let attacked = Attacked::relay(|upstream| keyed(upstream).with_observer(observer)).await;
    for (target, fields, passed) in [
        ("/openai/v1?key=key-1&alt=sse", "", "/v1?alt=sse"),
        ("/openai/v1?%6bey=%6bey-1", "", "/v1"),
        ("/openai/v1?key=app-secret-7&alt=sse", "X-Steadfast-Key: key-1\r\n", "/v1?alt=sse"),
        ("/openai/v1", "Authorization: Bearer key-1\r\nX-Api-Key: app-secret-7\r\n", "/v1"),
        ("/own/v1?key=key-1&alt=sse", "", "/v1?alt=sse"),
        ("/own/v1?alt=sse", "X-Goog-Api-Key: key-1\r\n", "/v1?alt=sse"),
    ] {
        let (got, reached) = attacked.refused(get(target, fields)).await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{target}: {got}");
        let [(head, _)] = &reached.whole[..] else { panic!("{target}: {reached:?}") };
        assert!(head.starts_with(&format!("GET {passed} HTTP/1.1\r\n")), "{target}: {head}");
        assert!(!head.contains("key-1") && !head.contains("app-secret-7"), "{target}: {head}");
        assert_eq!(head.contains("injected-key-9"), target.starts_with("/openai"), "{target}: {head}");
    }
    for (target, fields) in [
        ("/openai/v1?key=wrong-key-5", ""),
        ("/openai/v1?%6bey=wrong-key-5", "X-Api-Key: wrong-key-5\r\n"),
        ("/nowhere?key=wrong-key-5", "Authorization: Bearer wrong-key-5\r\n"),
    ] {
        let (got, reached) = attacked.refused(get(target, fields)).await;
        assert!(!got.starts_with("HTTP/1.1 200 ") && !got.contains("wrong-key-5"), "{target}: {got}");
        assert!(reached.whole.is_empty(), "{target}: {reached:?}");
    }
    assert!(recorder.flush(std::time::Duration::from_secs(60)));
    assert!(read(&folder.file()).recent(99).unwrap().len() >= 9, "they are recorded");
    for end in ["", "-wal"] {
        let file = format!("{}{end}", folder.file().display());
        let bytes = std::fs::read(&file).unwrap_or_default();
        for secret in ["key-1", "%6bey-1", "app-secret-7", "injected-key-9", "wrong-key-5"] {
            let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_there, "{secret} is in {file}");
        }
    }
}
