//! Keys of the relay's own: who is let in, and that the key goes no further.

use std::sync::Arc;

use super::rig::{Rig, routes};
use crate::http1::Fields;
use crate::relay::{APP_KEY_FIELD, AppKey, Code, Gate, Routes};

/// Lets in whoever shows `k1` in the relay's own field, and takes it for one in `x-api-key` too
struct Known;

impl Gate for Known {
    fn admit(&self, fields: &Fields, parameters: &[Vec<u8>]) -> Option<AppKey> {
        let is_in_query = parameters.iter().any(|key| key == b"k1");
        let is_known = is_in_query || fields.get(APP_KEY_FIELD) == Some(b"k1");
        let fields = vec![APP_KEY_FIELD, "x-api-key"];
        is_known.then(|| AppKey { label: "laptop".into(), fields, is_in_query })
    }
}

fn request(key: &str) -> String {
    format!(
        "POST /openai/v1/chat HTTP/1.1\r\nHost: relay\r\nX-Steadfast-Key: {key}\r\nX-API-Key: {key}\r\n\
         Authorization: Bearer sk-1\r\nContent-Length: 0\r\n\r\n"
    )
}

#[test]
fn a_key_goes_no_further_in_any_field_that_it_came_in() {
    let gated = Routes::clone(&routes(|_| {})).gated(Arc::new(Known));
    let mut rig = Rig::with(Arc::new(gated), false);
    rig.app_sends(request("k1"));
    rig.connected();
    let sent = "POST /v1/chat HTTP/1.1\r\nHost: up.example:8080\r\nAuthorization: Bearer sk-1\r\n\
        Content-Length: 0\r\n\r\n";
    assert_eq!(rig.up_text(1), sent);
    rig.up_sends("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(rig.over[0].app.as_deref(), Some("laptop"));
    rig.app_sends(request("k2"));
    rig.refused(Code::Unauthorized);
}

#[test]
fn a_key_in_the_query_goes_no_further_and_another_one_there_does() {
    let gated = Routes::clone(&routes(|_| {})).gated(Arc::new(Known));
    for (query, headers, sent) in [
        ("?alt=sse&key=%6b1&x=y", "", "/v1/chat?alt=sse&x=y"),
        ("?key=k1", "", "/v1/chat"),
        ("?key=of-the-provider", "X-Steadfast-Key: k1\r\n", "/v1/chat?key=of-the-provider"),
    ] {
        let mut rig = Rig::with(Arc::new(gated.clone()), false);
        rig.app_sends(format!("GET /openai/v1/chat{query} HTTP/1.1\r\nHost: relay\r\n{headers}\r\n"));
        rig.connected();
        assert!(rig.up_text(1).starts_with(&format!("GET {sent} HTTP/1.1\r\n")), "{}", rig.up_text(1));
    }
    let mut rig = Rig::with(Arc::new(gated), false);
    rig.app_sends("GET /openai/v1/chat?key=k2 HTTP/1.1\r\nHost: relay\r\n\r\n");
    assert!(rig.up.is_empty() && rig.text().starts_with("HTTP/1.1 401 "), "{}", rig.text());
}

#[test]
fn a_key_of_the_route_takes_the_place_of_the_apps_in_the_query_too() {
    let key = (http::HeaderName::from_static("x-goog-api-key"), http::HeaderValue::from_static("secret"));
    let mut rig = Rig::with(routes(|route| route.key = Some(key)), false);
    let target = "/openai/v1/chat?key=a&alt=sse&api%5Fkey=b&access_token=c&API-Key=d";
    rig.app_sends(format!("GET {target} HTTP/1.1\r\nHost: relay\r\n\r\n"));
    rig.connected();
    let sent = "GET /v1/chat?alt=sse HTTP/1.1\r\nHost: up.example:8080\r\nx-goog-api-key: secret\r\n\r\n";
    assert_eq!(rig.up_text(1), sent);
}

#[test]
fn the_field_for_it_is_not_passed_on_where_no_key_is_asked_for() {
    let mut rig = Rig::new();
    rig.app_sends(request("k1"));
    rig.connected();
    let sent = rig.up_text(1);
    assert!(!sent.contains("teadfast") && sent.contains("X-API-Key: k1\r\n"), "{sent}");
}

#[test]
fn who_opens_a_page_of_the_relays_own_is_asked_for_a_key_unless_it_is_open_to_all() {
    let gated = Routes::clone(&routes(|_| {})).gated(Arc::new(Known));
    let asked = |routes: &Routes, target: &str| {
        let mut rig = Rig::with(Arc::new(routes.clone()), false);
        rig.app_sends(format!("GET {target} HTTP/1.1\r\nHost: relay\r\n\r\n"));
        (rig.commands.contains(&"serve".to_owned()), rig.text())
    };
    let (is_served, answer) = asked(&gated, "/healthz");
    assert!(!is_served && answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("\r\nwww-authenticate: Basic realm="), "{answer}");
    let opened = gated.opened(&["/healthz"]);
    assert!(asked(&opened, "/healthz").0);
    for target in ["/healthz/below", "/openai/v1/models"] {
        let (is_served, answer) = asked(&opened, target);
        assert!(!is_served && answer.starts_with("HTTP/1.1 401 "), "{target}: {answer}");
        assert_eq!(answer.contains("Basic realm"), target.starts_with("/healthz"), "{target}: {answer}");
    }
    assert!(asked(&opened, "/healthz?key=k1").0);
}
