//! `steadfast call` against scripted servers: what it asks, what it prints, how it exits.

use std::io::Read;

use serde_json::{Value, json};
use steadfast_mock::Mock;

use crate::support::{
    CAP, await_text, call_scenario, end_of, finish, run, scenario, server, signal, spawn, steadfast,
};

const KEY: &str = "DO-NOT-PRINT";
const KEYS: [&str; 3] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];

/// A server that answers every request with this body
fn answering(status: &str, content_type: &str, body: &str) -> Mock {
    server(&format!(
        "[bytes]\nbody = {}\n[[connection]]\nsteps = [{{ read = \"request\" }}, \
         {{ answer = {{ head = [\"{status}\", \"content-type: {content_type}\"], body = \"$body\" }} }}, \
         \"await-close\"]",
        Value::from(body)
    ))
}

/// How a provider is asked, and how it answers "Hello"
struct Provider {
    name: &'static str,
    stream_target: &'static str,
    unary_target: &'static str,
    key_header: &'static str,
    stream: String,
    whole: Value,
}

fn providers() -> [Provider; 4] {
    let events = |events: &[Value]| -> String {
        let event = |data: &Value| match data["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {data}\n\n"),
            None => format!("data: {data}\n\n"),
        };
        events.iter().map(event).collect()
    };
    let chat = |text: &str, reason: Option<&str>| json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]});
    let gemini = |text: &str| json!({"candidates": [{"index": 0, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]});
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "Hello"}]});
    let response = json!({"id": "r", "status": "completed", "output": [message]});
    [
        Provider {
            name: "openai",
            stream_target: "/chat/completions",
            unary_target: "/chat/completions",
            key_header: "authorization",
            stream: events(&[chat("Hel", None), chat("lo", Some("stop"))]) + "data: [DONE]\n\n",
            whole: json!({"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}),
        },
        Provider {
            name: "responses",
            stream_target: "/responses",
            unary_target: "/responses",
            key_header: "authorization",
            stream: events(&[
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hello"}),
                json!({"type": "response.completed", "response": response}),
            ]),
            whole: response,
        },
        Provider {
            name: "anthropic",
            stream_target: "/v1/messages",
            unary_target: "/v1/messages",
            key_header: "x-api-key",
            stream: events(&[
                json!({"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": null}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
                json!({"type": "message_stop"}),
            ]),
            whole: json!({"type": "message", "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"}),
        },
        Provider {
            name: "gemini",
            stream_target: "/v1beta/models/m:streamGenerateContent?alt=sse",
            unary_target: "/v1beta/models/m:generateContent",
            key_header: "x-goog-api-key",
            stream: events(&[gemini("Hello")]),
            whole: gemini("Hello"),
        },
    ]
}

#[test]
fn every_provider_is_asked_in_its_own_way_and_its_text_is_printed() {
    for provider in providers() {
        let name = provider.name;
        for streamed in [true, false] {
            let mock = if streamed {
                answering("200 OK", "text/event-stream", &provider.stream)
            } else {
                answering("200 OK", "application/json", &provider.whole.to_string())
            };
            let base_url = mock.base_url();
            let mut command = steadfast(&[
                "call",
                "--provider",
                name,
                "--base-url",
                &base_url,
                "--model",
                "m",
                "Say \"hi\".",
            ]);
            if !streamed {
                command.arg("--no-stream");
            }
            let ran = run(command.envs(KEYS.map(|name| (name, KEY))));
            let expected = (Some(0), "Hello\n", "");
            assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), expected, "{name} {streamed}");

            let seen = mock.recorded();
            let [request] = &seen.requests[..] else { panic!("{name}: {:?}", seen.requests) };
            assert_eq!(request.method, "POST");
            assert_eq!(request.target, if streamed { provider.stream_target } else { provider.unary_target });
            assert_eq!(request.header(provider.key_header), Some("[redacted]"), "{name}");
            assert_eq!(request.header("content-type"), Some("application/json"));
            let accept = if streamed { "text/event-stream" } else { "application/json" };
            assert_eq!(request.header("accept"), Some(accept));
            assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("steadfast/")));
            assert_eq!(request.header("anthropic-version").is_some(), name == "anthropic");
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            assert!(body.to_string().contains(r#"Say \"hi\"."#), "{body}");
            assert_eq!(body["stream"].as_bool(), (name != "gemini").then_some(streamed), "{name}");
        }
    }
}

/// How `call` ends in a scenario
struct End {
    scenario: &'static str,
    more: &'static [&'static str],
    code: i32,
    text: &'static str,
    said: &'static [&'static str],
}

#[test]
fn each_kind_of_end_has_its_exit_code_and_one_clear_line() {
    let ends = [
        End {
            scenario: "length",
            more: &[],
            code: 3,
            text: "Hi\n",
            said: &["incomplete: the provider ended the answer early: length · 1 attempt in 0."],
        },
        End {
            scenario: "stream-mute",
            more: &["--config", "max_attempts=1"],
            code: 10,
            text: "",
            said: &[
                "timeout: no answer to the request for 3",
                "past the limit of 300ms; raise `request_timeout` to wait longer",
                "(--config request_timeout=SECONDS) · 1 attempt in 0.3",
                "· the request may have been billed",
            ],
        },
        End {
            scenario: "stream-mute-after-delta",
            more: &[],
            code: 10,
            text: "Hi\n",
            said: &[
                "timeout: no byte of the stream for 3",
                "(--config stream_idle_timeout=SECONDS)",
                "part of the answer was delivered, and may have been billed",
            ],
        },
        End {
            scenario: "connect-full-backlog",
            more: &[],
            code: 10,
            text: "",
            said: &["timeout: no connection", "nothing was sent, so nothing is billed"],
        },
        End {
            scenario: "status-400",
            more: &[],
            code: 11,
            text: "",
            said: &["status: the server answered 400 Bad Request"],
        },
        End {
            scenario: "retry-after-too-long",
            more: &[],
            code: 11,
            text: "",
            said: &["status: the server answered 429", "the server asks to wait 60 s"],
        },
        End {
            scenario: "truncated-fin",
            more: &[],
            code: 12,
            text: "Hi\n",
            said: &["truncated: the connection ended inside the response"],
        },
        End {
            scenario: "empty-stream",
            more: &["--config", "max_attempts=1"],
            code: 12,
            text: "",
            said: &["empty: the response held no answer at all"],
        },
        End {
            scenario: "connect-refused",
            more: &[],
            code: 13,
            text: "",
            said: &["transport: the connection failed at stage connect"],
        },
        End {
            scenario: "rst-after-delta",
            more: &[],
            code: 13,
            text: "Hi\n",
            said: &["transport: the connection failed at stage read"],
        },
        End { scenario: "stream-bad-json", more: &[], code: 14, text: "Hi\n", said: &["protocol: "] },
        End {
            scenario: "overload-after-delta",
            more: &[],
            code: 15,
            text: "Hi\n",
            said: &["in-band: the provider reported an error inside its answer"],
        },
        End {
            scenario: "gemini-blocked",
            more: &[],
            code: 15,
            text: "",
            said: &["blocked: the provider refused the prompt: SAFETY"],
        },
    ];
    for End { scenario, more, code, text, said } in ends {
        let ran = call_scenario(scenario, more);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), text), "{scenario}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("steadfast: ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
        for said in said {
            assert!(ran.stderr.contains(said), "{scenario}: {said:?} is not in {:?}", ran.stderr);
        }
    }
}

#[test]
fn the_outcome_is_all_that_json_prints() {
    let ran = call_scenario("stream-mute-after-delta", &["--json"]);
    assert_eq!(ran.code, Some(10));
    assert_eq!(ran.stdout.lines().count(), 1);
    let outcome: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(outcome["result"], "error");
    assert_eq!(outcome["text"], "Hi");
    let error = &outcome["error"];
    assert_eq!((&error["kind"], &error["phase"]), (&json!("timeout"), &json!("stream_idle")));
    assert_eq!((&error["setting"], &error["limit"]), (&json!("stream_idle_timeout"), &json!(0.3)));
    assert_eq!(error["billing"], "delivered");
    assert!(error["elapsed"].as_f64().is_some_and(|elapsed| (0.3..0.55).contains(&elapsed)), "{error}");
    assert_eq!(outcome["timeline"]["attempts"].as_array().map(Vec::len), Some(1));

    let ran = call_scenario("unary-happy", &["--json", "--timeline"]);
    assert_eq!(ran.code, Some(0));
    let outcome: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&outcome["result"], &outcome["status"]), (&json!("completed"), &json!(200)));
    assert_eq!((&outcome["text"], &outcome["finish_reason"]), (&json!("Hi"), &json!("stop")));
    assert_eq!(outcome["usage"]["output_tokens"], 2);
    assert_eq!(outcome["error"], Value::Null);
    let waterfall: Vec<&str> = ran.stderr.lines().collect();
    assert!(waterfall[0].starts_with("  1 connect ") && waterfall[0].ends_with("| done"), "{waterfall:?}");
    assert!(waterfall[3].starts_with("    total 0.") && waterfall.len() == 4, "{waterfall:?}");
}

#[test]
fn no_key_is_printed_whatever_a_server_does_with_it() {
    let bad = |text: &str| format!("{{\"error\":{{\"type\":\"auth\",\"message\":\"{text}\"}}}}");
    let in_band = format!("data: {}\n\n", bad(&format!("bad key {KEY}")));
    let html = format!("text/html; key={KEY}");
    let cases = [
        ("401 Unauthorized", "application/json", bad(&format!("Incorrect API key: {KEY}")), 11),
        ("401 Unauthorized", "text/plain", KEY.to_owned(), 11),
        ("200 OK", "text/event-stream", in_band, 15),
        ("200 OK", "text/event-stream", format!("data: {{\"{KEY}\": \n\n"), 14),
        ("200 OK", "text/html", format!("<p>{KEY}</p>"), 14),
        ("200 OK", &html, String::new(), 14),
    ];
    for (status, content_type, body, code) in cases {
        let mock = answering(status, content_type, &body);
        let mut all_said = String::new();
        for more in [&["--timeline"][..], &["--json"], &["--no-stream", "--json"]] {
            let base_url = mock.base_url();
            let arguments = ["call", "--base-url", &base_url, "--config", "max_attempts=1", "Hi."];
            let ran = run(steadfast(&arguments).args(more).env("OPENAI_API_KEY", KEY));
            if !more.contains(&"--no-stream") {
                assert_eq!(ran.code, Some(code), "{body}: {}", ran.stderr);
            }
            assert_ne!(ran.code, Some(0), "{body}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains(KEY), "{more:?}: {said}");
            all_said.push_str(&said);
        }
        assert!(all_said.contains("[credential]"), "{body} was not quoted at all: {all_said}");
    }
}

#[test]
fn with_nothing_configured_the_embedded_provider_answers_and_says_so() {
    let mut answers = Vec::new();
    for provider in ["openai", "responses", "anthropic", "gemini"] {
        for more in [&[][..], &["--no-stream"]] {
            let ran = run(steadfast(&["call", "--provider", provider, "Hi."]).args(more));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let said = format!(
                "steadfast: no key and no --base-url: the embedded provider answers, in the form of {provider}\n"
            );
            assert_eq!(ran.stderr, said);
            answers.push(ran.stdout);
        }
    }
    assert!(answers[0].starts_with("Hello! ") && answers[0].ends_with(".\n"));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");

    let ran = run(&mut steadfast(&["call", "--json", "Hi."]));
    let outcome: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(outcome["result"], "completed");
    assert_eq!(outcome["timeline"]["notes"], json!([]));
    assert_eq!(outcome["usage"]["output_tokens"], json!(answers[0].split_whitespace().count()));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_call_at_once_and_keeps_what_came() {
    let (mock, arguments) = scenario("cancel-mid-body");
    let mut child = spawn(steadfast(&[]).args(arguments));
    let mut stdout = child.stdout.take().expect("a pipe");
    await_text(&mut stdout, "Hi");
    signal(&child, "INT");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the rest");
    let ran = finish(child);
    assert_eq!((ran.code, rest.as_str()), (Some(130), "\n"));
    assert!(ran.stderr.starts_with("steadfast: cancelled · 1 attempt in "), "{}", ran.stderr);
    let seen = mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 1).expect("it sees the close");
    assert_eq!((seen.connections.len(), seen.requests.len()), (1, 1));

    let (mock, arguments) = scenario("cancel-in-header-wait");
    let child = spawn(steadfast(&[]).args(arguments).arg("--json"));
    mock.wait_for(CAP, |seen| seen.requests.len() == 1).expect("it is asked");
    signal(&child, "INT");
    let ran = finish(child);
    assert_eq!(ran.code, Some(130));
    let outcome: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&outcome["error"]["kind"], &outcome["error"]["billing"]),
        (&json!("cancelled"), &json!("maybe_billed"))
    );
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_a_program_whose_output_nobody_reads() {
    let delta = json!({"choices": [{"index": 0, "delta": {"content": "0123456789"}, "finish_reason": null}]});
    let mock = server(&format!(
        "[bytes]\nevent = {}\n[[connection]]\nsteps = [{{ read = \"request\" }}, \
         {{ head = [\"200 OK\", \"content-type: text/event-stream\"] }}, \
         {{ repeat = {{ times = \"forever\", steps = [{{ send = {{ repeat = \"$event\", times = 1000 }} }}] }} }}]",
        Value::from(format!("data: {delta}\n\n"))
    ));
    let mut child = spawn(&mut steadfast(&["call", "--base-url", &mock.base_url(), "Hi."]));
    mock.wait_for(CAP, |seen| seen.connections.iter().any(|connection| !connection.blocked.is_empty()))
        .expect("the server is held up, as the program is by its reader");
    // Signals that come together are one, so how many it takes is not known.
    assert_eq!(end_of(&mut child, |child| signal(child, "INT")), Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_call_quietly() {
    let (mock, arguments) = scenario("stream-slow-but-alive");
    let mut child = spawn(steadfast(&[]).args(arguments));
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0]).expect("the first byte");
    drop(stdout);
    let ran = finish(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), ""));
    mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 1).expect("it sees the close");
}
