//! No credential in any print of an outcome, whatever a server echoes (rule END-5).

use serde_json::json;

use super::play::Play;
use super::wire::{Answer, STREAM_HEAD, chunk, event, response};
use crate::call::{Request, Shape};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{FailureKind, Stage};

const KEY: &str = "sk-very-secret-0123456789";
const CHAT: Dialect = Dialect::OpenAiChat;

fn play(shape: Shape) -> Play {
    let request = Request::post("https://api.example/v1?token=query-secret-42")
        .bearer(KEY)
        .header("cookie", "session=cookie-secret-42; other=1")
        .body("{}")
        .dialect(CHAT);
    let request = match shape {
        Shape::Stream => request.stream(),
        Shape::Raw => request.raw(),
        Shape::Unary => request,
    };
    let mut play = Play::new(request.build().unwrap(), Overrides::new().max_attempts(1)).start();
    play.at(100).request();
    play
}

#[track_caller]
fn holds_no_secret(play: &Play) {
    let outcome = play.outcome();
    let mut prints = vec![
        format!("{outcome:?}"),
        serde_json::to_string(outcome).unwrap(),
        outcome.timeline.to_string(),
        format!("{:?}", play.call),
        play.trace(),
    ];
    if let Err(error) = &outcome.result {
        prints.extend([error.to_string(), format!("{:?}", error.kind)]);
    }
    for print in prints {
        for secret in ["very-secret", "query-secret", "cookie-secret"] {
            assert!(!print.contains(secret), "{print}");
        }
    }
}

#[test]
fn of_a_call_that_has_not_begun() {
    let play = play(Shape::Stream);
    for print in [format!("{:?}", play.call), format!("{:?}", play.call.request()), play.trace()] {
        assert!(!print.contains("secret"), "{print}");
    }
}

#[test]
fn in_a_status_body_and_its_header() {
    let body = json!({"error": {"message": format!("key {KEY}, query-secret-42"), "code": KEY}}).to_string();
    let mut play = play(Shape::Unary);
    play.receive(response("401 Unauthorized", &[&format!("x-echo: {KEY}")], &body));
    let error = play.outcome().result.as_ref().unwrap_err().to_string();
    assert!(error.contains("[credential], [credential]"), "{error}");
    holds_no_secret(&play);
}

#[test]
fn in_a_header_of_a_gateway() {
    for name in ["cf-aig-authorization", "Ocp-Apim-Subscription-Key", "Helicone-Auth", "x-amz-security-token"]
    {
        let request = Request::post("https://api.example/v1").header(name, &format!("Bearer {KEY}"));
        let request = request.header("idempotency-key", "order-4711").body("{}").dialect(CHAT);
        let mut play = Play::new(request.build().unwrap(), Overrides::new().max_attempts(1)).start();
        let body = json!({"error": {"message": format!("bad {KEY} for order-4711")}}).to_string();
        play.at(100).request().receive(response("401 Unauthorized", &[], &body));
        let error = play.outcome().result.as_ref().unwrap_err().to_string();
        assert!(error.ends_with("bad [credential] for order-4711"), "{name}: {error}");
        holds_no_secret(&play);
    }
}

#[test]
fn in_where_a_redirect_points_to() {
    let mut play = play(Shape::Unary);
    let location = "location: https://me:very-secret@login.example/v1?state=very-secret#very-secret";
    play.receive(response("302 Found", &[location], ""));
    let error = play.outcome().result.as_ref().unwrap_err().to_string();
    assert!(error.ends_with("it points to https://login.example/v1"), "{error}");
    // A trace has what the server sent, where it was asked for whole bodies.
    let outcome = play.outcome();
    for print in [format!("{outcome:?}"), serde_json::to_string(outcome).unwrap(), format!("{:?}", play.call)]
    {
        assert!(!print.contains("secret"), "{print}");
    }
}

#[test]
fn in_a_status_body_that_is_cut_inside_it() {
    let mut play = play(Shape::Unary);
    play.receive(format!("HTTP/1.1 401 No\r\ncontent-length: 99\r\n\r\nkey {}", &KEY[..18])).reset();
    holds_no_secret(&play);
}

#[test]
fn in_an_error_inside_the_stream() {
    let mut play = play(Shape::Stream);
    let error = json!({"error": {"message": format!("bad key {KEY}"), "type": KEY}});
    play.receive(STREAM_HEAD).receive(chunk(event(&error)));
    holds_no_secret(&play);
}

#[test]
fn in_the_beginning_of_what_cannot_be_read() {
    // The snippet ends inside the key.
    let padded = format!("{}{KEY}", " ".repeat(185));
    let mut html = play(Shape::Unary);
    html.receive(response("200 OK", &[&format!("content-type: text/html; {KEY}")], &padded));
    holds_no_secret(&html);
    let mut data = play(Shape::Stream);
    data.receive(STREAM_HEAD).receive(chunk(format!("data: {{{padded}\n\n")));
    holds_no_secret(&data);
    let mut encoded = play(Shape::Stream);
    encoded.receive(format!("HTTP/1.1 200 OK\r\ncontent-encoding: {KEY}\r\n\r\n"));
    holds_no_secret(&encoded);
}

#[test]
fn in_the_words_of_a_transport() {
    let mut play = play(Shape::Stream);
    play.fail(Stage::Read, FailureKind::Tls, &format!("bad record: {KEY} cookie-secret-42"));
    holds_no_secret(&play);
}

#[test]
fn in_the_header_of_an_answer() {
    let mut play = play(Shape::Stream);
    play.receive(STREAM_HEAD.replacen("\r\n", &format!("\r\nset-cookie: {KEY}\r\n"), 1));
    play.receive(chunk(CHAT.text("Hi") + "data: [DONE]\n\n"));
    assert_eq!(play.completion().headers["set-cookie"], "[credential]");
    holds_no_secret(&play);
}

#[test]
fn in_what_the_provider_says_about_an_answer() {
    let last = |reason: &str| {
        event(&json!({
            "id": KEY,
            "model": KEY,
            "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "for": KEY},
        }))
    };
    for end in ["data: [DONE]\n\n", "data: {\"error\":{\"message\":\"no\"}}\n\n"] {
        let mut play = play(Shape::Stream);
        play.receive(STREAM_HEAD);
        play.receive(chunk(CHAT.text("Hi") + &last(KEY) + end));
        assert_eq!(play.outcome().turn().finish_reason(), Some("[credential]"));
        holds_no_secret(&play);
    }
}
