use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::call::{Call, Command, Env, Request, RequestBuilder, RequestError};
use crate::config::RequestConfig;
use crate::machine::{Event, Machine, Step};
use crate::time::Instant;

/// What goes out first
fn wire(request: RequestBuilder) -> String {
    let request: Request = request.build().unwrap();
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let mut drain = call.handle(Instant::ORIGIN, Event::Start).unwrap();
    let Step::Do(Command::Connect(id)) = drain.next() else { panic!("a connection is asked for") };
    drop(drain);
    drop(call.handle(Instant::ORIGIN, Event::Connected(id)).unwrap());
    String::from_utf8(call.outgoing(id).concat()).unwrap()
}

#[test]
fn a_key_goes_where_its_api_wants_it() {
    for (service, field) in [
        (Service::openai(" sk-1\n"), "authorization: Bearer sk-1"),
        (Service::anthropic("sk-2\n"), "x-api-key: sk-2"),
        (Service::anthropic("sk-2").bearer("token"), "authorization: Bearer token"),
        (Service::gemini("sk-3"), "x-goog-api-key: sk-3"),
        (Service::openai_compatible("http://h/").header("api-key", "sk-4"), "api-key: sk-4"),
    ] {
        let head = wire(service.other(Method::GET, "/x"));
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{head}");
        assert_eq!(head.matches("sk-").count() + head.matches("token").count(), 1, "{head}");
        assert!(!format!("{service:?}").contains("sk-"), "{service:?}");
    }
    for service in [Service::openai("sk-1"), Service::anthropic("sk-2"), Service::gemini("sk-3")] {
        let head = wire(service.without_key().other(Method::GET, "/x"));
        assert!(!head.contains("key") && !head.contains("sk-") && !head.contains("authorization"), "{head}");
    }
    for service in [Service::openai(" "), Service::anthropic(""), Service::gemini("\n")] {
        let error = service.other(Method::GET, "/x").build().unwrap_err();
        assert!(matches!(error, RequestError::HeaderValue { .. }), "{error}");
    }
    let error = Service::anthropic("sk-2\r\nx: y").other(Method::GET, "/x").build().unwrap_err();
    assert!(!error.to_string().contains("sk-2"), "{error}");
}

#[test]
fn a_request_is_what_its_verb_and_its_service_say() {
    let service = Service::anthropic("sk").at("https://gateway.test/claude/");
    let request = service.request(&anthropic::FILE_CONTENT, ["../../files/x"]).query("a b", "c&d");
    assert_eq!(
        wire(request),
        format!(
            "GET /claude/v1/files/..%2F..%2Ffiles%2Fx/content?a%20b=c%26d HTTP/1.1\r\n\
             host: gateway.test\r\nx-api-key: sk\r\nuser-agent: steadfast/{}\r\nanthropic-version: 2023-06-01\r\n\
             accept: application/binary\r\nanthropic-beta: files-api-2025-04-14\r\n\
             accept-encoding: identity\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    let request = Service::gemini("sk").request(&gemini::GENERATE_STREAM, ["models/g"]).query("x", "y");
    assert!(
        wire(request).starts_with("POST /v1beta/models/g:streamGenerateContent?alt=sse&x=y HTTP/1.1\r\n")
    );
}

#[test]
fn what_a_row_says_is_in_the_request() {
    let service = |api| match api {
        Api::OpenAi => Service::openai("sk"),
        Api::Anthropic => Service::anthropic("sk"),
        Api::Gemini => Service::gemini("sk"),
    };
    let mut seen = BTreeSet::new();
    for row in [openai::ALL, anthropic::ALL, gemini::ALL].concat() {
        let api = row.api.unwrap();
        let ids = ["id", "id"];
        let request = service(api).row(row, &ids[..row.ids()]).build().unwrap();
        assert_eq!((request.dialect(), request.shape()), (row.dialect, row.shape), "{}", row.name);
        assert!(row.dialect.is_some() || row.shape != Shape::Stream);
        assert!(format!("{request:?}").contains(&format!("retries: {:?}", row.retries)), "{request:?}");
        assert!(seen.insert((api.name(), row.name)), "twice: {}", row.name);
        for other in [Api::OpenAi, Api::Anthropic, Api::Gemini].into_iter().filter(|other| *other != api) {
            let error = service(other).row(row, &ids[..row.ids()]).build().unwrap_err();
            assert!(matches!(error, RequestError::OtherApi { .. }), "{error}");
        }
        let error = service(api).row(row, &ids[row.ids().min(1)..]).build();
        assert_eq!(error.is_err(), row.ids() != ids.len() - row.ids().min(1), "{}", row.name);
    }
}

#[test]
fn mistakes_are_told_and_name_the_fix() {
    let service = Service::openai("sk");
    let error = service.request(&openai::FILE_DELETE, [""]).build().unwrap_err();
    assert_eq!(error, RequestError::Id);
    let error = service.row(openai::FILE_DELETE.row(), &[]).build().unwrap_err();
    assert_eq!(error, RequestError::Ids { places: 1, given: 0 });
    assert!(service.other(Method::GET, "x").build().is_err());
    let error = service.at("https://h/v1?key=secret").other(Method::GET, "/x").build().unwrap_err();
    assert!(error.to_string().contains("query(…)"), "{error}");
    let own: Verb<1> = Verb::put("/x/{y}").dialect(Dialect::OpenAiChat).stream().retried();
    let request = Service::gemini("sk").request(&own, ["z"]).json(&json!({})).build().unwrap();
    assert_eq!(request.shape(), Shape::Stream);
}

#[test]
fn no_debug_form_shows_what_is_secret() {
    for base_url in
        ["https://me:DO-NOT-PRINT@h/v1", "https://h/v1?key=DO-NOT-PRINT", "https://h/v1#DO-NOT-PRINT"]
    {
        let service =
            Service::openai_compatible(base_url).bearer("DO-NOT-PRINT").header("x-of-ours", "DO-NOT-PRINT");
        let print = format!("{service:?} {:?}", service.request(&openai::CHAT, []));
        assert!(print.contains("https://h") && print.contains("x-of-ours"), "{print}");
        assert!(!print.contains("DO-NOT-PRINT"), "{print}");
    }
}
