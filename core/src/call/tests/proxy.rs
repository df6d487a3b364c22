//! The way through a proxy: what fails there is the proxy's, and tried again where that may help.

use super::play::{Play, ms};
use super::wire::{STREAM_HEAD, response};
use crate::call::{Request, Timer};
use crate::config::Overrides;
use crate::connect::Proxy;
use crate::dialect::Dialect;
use crate::machine::{FailureKind, IoFailure, ProxyRefusal, Stage};
use crate::outcome::{Billing, ErrorKind};

const CHAT: Dialect = Dialect::OpenAiChat;

fn play(kinds: &[FailureKind]) -> Play {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    for kind in kinds {
        if play.deadline().unwrap().1 == Timer::Backoff {
            play.expire();
        }
        play.fail(Stage::Proxy, *kind, "as it said");
    }
    play
}

#[test]
fn l08_what_may_mend_is_tried_again_and_what_cannot_is_not() {
    use ProxyRefusal::{AuthenticationRequired, Protocol, Socks, Status};
    let refused = FailureKind::Proxy;
    for kind in [refused(Status(502)), refused(Status(503)), refused(Socks(5)), FailureKind::Refused] {
        let play = play(&[kind; 3]);
        let failure = IoFailure { stage: Stage::Proxy, kind, message: "as it said".to_owned() };
        assert_eq!(*play.error(), ErrorKind::Proxy(failure));
        assert_eq!(play.attempts_at().len(), 3, "{kind:?}");
    }
    for kind in [AuthenticationRequired, Protocol, Socks(2), Status(403)].map(refused) {
        let play = play(&[kind]);
        assert!(matches!(play.error(), ErrorKind::Proxy(_)), "{kind:?}");
        assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(0)));
    }
}

#[test]
fn l08_a_proxy_costs_nothing_and_is_told_in_words_and_in_json() {
    let play = play(&[FailureKind::Proxy(ProxyRefusal::Status(502)); 3]);
    let outcome = play.outcome();
    let error = outcome.result.as_ref().unwrap_err();
    assert_eq!(error.billing, Billing::NotSent);
    assert_eq!(error.to_string(), "the way through the proxy failed: as it said");
    let json = serde_json::to_value(outcome).unwrap();
    assert_eq!(json["error"]["kind"], "proxy");
    let failure =
        serde_json::json!({"stage": "proxy", "kind": {"proxy": {"status": 502}}, "message": "as it said"});
    assert_eq!(json["error"]["failure"], failure);
    let again: IoFailure = serde_json::from_value(failure).unwrap();
    assert_eq!(again.kind, FailureKind::Proxy(ProxyRefusal::Status(502)));
}

/// A forwarding proxy's 407 looks like the server's: only the request tells them apart
#[test]
fn l08_a_407_is_the_proxy_s_where_it_forwards() {
    let request = |forwarded: bool| {
        let request = Request::post("http://h/v1").body("{}").dialect(CHAT).stream().build().unwrap();
        if forwarded { request.forwarded_by(&Proxy::new("p:3128").unwrap()) } else { request }
    };
    let answer = response(
        "407 Proxy Authentication Required",
        &["Proxy-Authenticate: Basic", "X-Should-Retry: true"],
        "<html>",
    );
    let mut play = Play::new(request(true), Overrides::new()).start();
    play.request().receive(&answer);
    let kind = FailureKind::Proxy(ProxyRefusal::AuthenticationRequired);
    let message = "the proxy answered 407 Proxy Authentication Required".to_owned();
    assert_eq!(*play.error(), ErrorKind::Proxy(IoFailure { stage: Stage::Proxy, kind, message }));
    let mut play = Play::new(request(false), Overrides::new().max_attempts(1)).start();
    play.request().receive(&answer);
    assert!(matches!(play.error(), ErrorKind::Status(_)));
    // Every other answer stands as it came.
    let mut play = Play::new(request(true), Overrides::new().max_attempts(1)).start();
    play.request().receive(response("502 Bad Gateway", &[], "x"));
    assert!(matches!(play.error(), ErrorKind::Status(error) if error.status == 502));
    let mut play = Play::new(request(true), Overrides::new()).start();
    play.request().receive(STREAM_HEAD);
    assert_eq!(play.deadline().unwrap().1, Timer::StreamIdle);
}

#[test]
fn a_forwarding_proxy_s_credentials_are_blanked_where_they_are_echoed() {
    let request = Request::post("http://h/v1").body("{}").dialect(CHAT).stream().build().unwrap();
    let proxy = Proxy::new("http://Aladdin:open%20sesame@p:3128").unwrap();
    let mut play = Play::new(request.forwarded_by(&proxy), Overrides::new().max_attempts(1)).start();
    play.request().receive(response("400 Bad Request", &[], "you sent QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    let ErrorKind::Status(error) = play.error() else { panic!("{:?}", play.error()) };
    let body = String::from_utf8_lossy(&error.body);
    assert!(body.starts_with("you sent ") && !body.contains("QWxh"), "{body}");
}
