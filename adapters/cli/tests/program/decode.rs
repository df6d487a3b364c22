//! `steadfast decode`: each way to use it, and how it ends.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Ran, decode, run, steadfast};

const TEXT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// Decodes a body of OpenAI Chat
fn chat(body: &str, more: &[&str]) -> (Option<i32>, Value) {
    object(&decode(&[&["--dialect", "openai-chat"], more].concat(), body.as_bytes()))
}

fn object(ran: &Ran) -> (Option<i32>, Value) {
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""), "{ran:?}");
    (ran.code, serde_json::from_str(&ran.stdout).expect("JSON"))
}

#[test]
fn an_answer_is_one_object_with_its_members_in_order() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm\",\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}},{\"index\":1,\"id\":\"u\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}]}},{\"index\":2,\"delta\":{\"content\":\"Ho\",\"refusal\":\"No\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n";
    let body = format!("{TEXT}{call}data: null\n\n{STOP}");
    let ran = decode(&["--dialect", "openai-chat"], body.as_bytes());
    let expected = concat!(
        r#"{"result":"incomplete","error":null,"text":"Hi","reasoning":"Hm","#,
        r#""tool_calls":[{"id":"t","name":"f","arguments":"{\"x\":1}","complete":true},{"id":"u","name":"g","arguments":"{","complete":false}],"#,
        r#""finish_reason":"stop","#,
        r#""usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7,"raw":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}},"#,
        r#""choices":[{"index":2,"text":"Ho","reasoning":"","refusal":"No","tool_calls":[],"finish_reason":"length"}],"#,
        r#""notes":["payload_skipped","missing_sentinel"],"events":4,"unknown":0,"malformed":0}"#,
        "\n"
    );
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(3), expected, ""));
}

#[test]
fn text_and_finish_reason_are_those_of_choice_0() {
    let (_, got) = chat(&TEXT.replace("\"index\":0", "\"index\":1"), &[]);
    assert_eq!((&got["text"], &got["finish_reason"]), (&json!(""), &json!(null)));
    assert_eq!((&got["choices"][0]["index"], &got["choices"][0]["text"]), (&json!(1), &json!("Hi")));
}

#[test]
fn events_are_counted_unknown_and_malformed_ones_too() {
    let body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"stop_reason\":null}}\n\n\
        data: {\"type\":\"brand_new\"}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
        data: {\n\ndata: }\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let (code, got) = object(&decode(&["--dialect", "anthropic", "--split", "3"], body.as_bytes()));
    assert_eq!((code, &got["text"], &got["finish_reason"]), (Some(0), &json!("Hi"), &json!("end_turn")));
    assert_eq!((&got["events"], &got["unknown"], &got["malformed"]), (&json!(6), &json!(1), &json!(2)));
    assert_eq!(got["notes"], json!(["noise_after_end"]));
}

#[test]
fn a_turn_that_is_whole_stays_whole_however_the_connection_ends() {
    let whole = [TEXT, STOP, DONE].concat();
    let marked = [TEXT, STOP].concat();
    let cases = [
        (&whole, "clean", json!([])),
        (&whole, "cut", json!([])),
        (&whole, "reset", json!([])),
        (&whole, "open", json!([])),
        (&marked, "clean", json!(["missing_sentinel"])),
        (&marked, "cut", json!(["unclean_end", "missing_sentinel"])),
        (&marked, "reset", json!(["unclean_end", "missing_sentinel"])),
        (&marked, "open", json!(["missing_sentinel"])),
    ];
    for (body, end, notes) in cases {
        for split in ["whole", "bytes", "5"] {
            let (code, got) = chat(body, &["--end", end, "--split", split]);
            assert_eq!((code, &got["result"], &got["text"]), (Some(0), &json!("completed"), &json!("Hi")));
            assert_eq!(got["notes"], notes, "{end} {split}");
        }
    }
}

/// A body, arguments, and then the exit code, the result and the kind of error
type End<'a> = (&'a str, &'a [&'a str], i32, &'a str, Option<&'a str>);

#[test]
fn every_kind_of_end_has_the_exit_code_that_call_has() {
    let error = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
    let unavailable = "{\"error\":{\"message\":\"later\"}}";
    let length = [TEXT, &STOP.replace("stop", "length"), DONE].concat();
    let whole = [TEXT, STOP, DONE].concat();
    let bad = [TEXT, "data: {\n\n"].concat();
    let in_band = [TEXT, error].concat();
    let open: &[&str] = &["--end", "open"];
    let cases: [End<'_>; 12] = [
        (&whole, &[], 0, "completed", None),
        (&length, &[], 3, "incomplete", None),
        (TEXT, open, 10, "error", Some("timeout")),
        ("", open, 10, "error", Some("timeout")),
        (unavailable, &["--status", "503"], 11, "error", Some("status")),
        (TEXT, &[], 12, "error", Some("truncated")),
        (TEXT, &["--end", "cut"], 12, "error", Some("truncated")),
        ("", &[], 12, "error", Some("empty")),
        (TEXT, &["--end", "reset"], 13, "error", Some("transport")),
        (&bad, &[], 14, "error", Some("protocol")),
        ("<p>", &["--content-type", "text/html"], 14, "error", Some("protocol")),
        (&in_band, &[], 15, "error", Some("in_band")),
    ];
    for (body, more, code, result, kind) in cases {
        let (got_code, got) = chat(body, more);
        let (got_result, got_kind) = (got["result"].as_str(), got["error"]["kind"].as_str());
        assert_eq!((got_code, got_result, got_kind), (Some(code), Some(result), kind), "{more:?}: {got}");
        let text = if body.starts_with(TEXT) { "Hi" } else { "" };
        assert_eq!(got["text"], text, "what came is kept: {got}");
    }
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    let (code, got) = object(&decode(&["--dialect", "gemini"], blocked.as_bytes()));
    assert_eq!(
        (code, &got["result"], &got["error"]["reason"]),
        (Some(15), &json!("blocked"), &json!("SAFETY"))
    );
}

#[test]
fn an_open_connection_shows_which_clock_ends_the_call() {
    let cases: [(&str, &[&str], &str, f64, &str); 3] = [
        (TEXT, &[], "stream_idle", 120.0, "stream_idle_timeout"),
        (TEXT, &["--config", "stream_idle_timeout=2.5"], "stream_idle", 2.5, "stream_idle_timeout"),
        (TEXT, &["--config", "content_idle_timeout=9"], "content_idle", 9.0, "content_idle_timeout"),
    ];
    for (body, more, phase, limit, setting) in cases {
        let (code, got) = chat(body, &[&["--end", "open"], more].concat());
        let error = &got["error"];
        assert_eq!((code, &error["kind"], &error["phase"]), (Some(10), &json!("timeout"), &json!(phase)));
        assert_eq!((&error["elapsed"], &error["limit"]), (&json!(limit), &json!(limit)));
        assert_eq!(error["setting"], setting);
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let (code, got) = chat(head, &["--http", "--end", "open", "--config", "request_timeout=7"]);
    assert_eq!((code, &got["error"]["phase"]), (Some(10), &json!("request")));
    assert_eq!((&got["error"]["elapsed"], &got["error"]["limit"]), (&json!(7.0), &json!(7.0)));
}

#[test]
fn a_call_that_would_never_end_is_refused() {
    let arguments = ["--dialect", "openai-chat", "--end", "open", "--config", "stream_idle_timeout=inf"];
    let ran = decode(&arguments, TEXT.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("the call would never end"), "{}", ran.stderr);
}

#[test]
fn a_whole_response_is_decoded_from_its_status_line() {
    let chunked = |body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
             Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        )
    };
    let whole = [TEXT, STOP, DONE].concat();
    for split in ["whole", "bytes", "100"] {
        let (code, got) = chat(&chunked(&whole), &["--http", "--split", split]);
        assert_eq!((code, &got["text"], &got["events"]), (Some(0), &json!("Hi"), &json!(3)));
    }
    let (code, got) = chat("HTTP/1.1 429 No\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}", &["--http"]);
    let error = &got["error"];
    assert_eq!((code, &error["status"], &error["retry_after"]), (Some(11), &json!(429), &json!(3.0)));
    let (code, got) = chat("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &["--http", "--method", "HEAD"]);
    assert_eq!((code, &got["error"]["kind"]), (Some(12), &json!("empty")));
    let (code, got) = chat("ICY 200 OK\r\n\r\n", &["--http"]);
    assert_eq!((code, &got["error"]["kind"]), (Some(14), &json!("protocol")));
}

#[test]
fn a_body_that_only_the_end_of_the_connection_ends() {
    let until_eof =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{TEXT}{}", STOP.trim());
    let (code, got) = chat(&until_eof, &["--http"]);
    assert_eq!((code, &got["notes"]), (Some(0), &json!(["tail_taken", "missing_sentinel"])));
    // Without close_notify the last event may have been cut, and does not count.
    let (code, got) = chat(&until_eof, &["--http", "--end", "cut"]);
    assert_eq!((code, &got["error"]["kind"], &got["text"]), (Some(12), &json!("truncated"), &json!("Hi")));
}

#[test]
fn an_answer_in_one_piece() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
    let (code, got) = chat(body, &["--unary"]);
    assert_eq!((code, &got["text"], &got["notes"]), (Some(0), &json!("Hi"), &json!([])));
    let (code, got) = chat(body, &["--content-type", "application/json"]);
    let note = json!(["unary_answer_to_stream"]);
    assert_eq!((code, &got["text"], &got["notes"]), (Some(0), &json!("Hi"), &note));
    let array =
        "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}]";
    let arguments = ["--dialect", "gemini", "--content-type", "application/json"];
    let (code, got) = object(&decode(&arguments, array.as_bytes()));
    assert_eq!((code, &got["text"], &got["events"]), (Some(0), &json!("Hi"), &json!(1)));
}

#[test]
fn more_attempts_get_the_same_response() {
    let (code, got) = chat("", &["--status", "503", "--config", "max_attempts=3"]);
    assert_eq!((code, &got["error"]["kind"], &got["notes"]), (Some(11), &json!("status"), &json!([])));
    let (_, got) = chat("data: null\n\n", &["--config", "max_attempts=3"]);
    assert_eq!((&got["error"]["kind"], &got["events"]), (&json!("empty"), &json!(3)));
}

#[test]
fn the_events_of_a_body_are_printed_a_line_each() {
    let cases: [(&str, &str, &str); 3] = [
        (
            "sse",
            "\u{feff}id: 3\nretry: 5\ndata: a\ndata: b\n\nerror: {}\n\nevent: x\ndata: \u{e9}\n\ndata: lost",
            "{\"event\":\"message\",\"data\":\"a\\nb\",\"id\":\"3\",\"retry\":5}\n\
             {\"event\":\"x\",\"data\":\"é\",\"id\":\"3\",\"retry\":5}\n\
             {\"last_event_id\":\"3\",\"bytes\":75,\"tail\":{\"event\":\"message\",\"data\":\"lost\"}}\n",
        ),
        (
            "ndjson",
            "{\"a\":1}\r\n\n[2]\n3",
            "{\"event\":\"message\",\"data\":\"{\\\"a\\\":1}\",\"id\":\"\",\"retry\":null}\n\
             {\"event\":\"message\",\"data\":\"[2]\",\"id\":\"\",\"retry\":null}\n\
             {\"event\":\"message\",\"data\":\"3\",\"id\":\"\",\"retry\":null}\n\
             {\"last_event_id\":\"\",\"bytes\":15}\n",
        ),
        (
            "json-array",
            "[{\"a\":[\"]\"]} ,\n{}]",
            "{\"event\":\"message\",\"data\":\"{\\\"a\\\":[\\\"]\\\"]}\",\"id\":\"\",\"retry\":null}\n\
             {\"event\":\"message\",\"data\":\"{}\",\"id\":\"\",\"retry\":null}\n\
             {\"last_event_id\":\"\",\"bytes\":18}\n",
        ),
    ];
    for (framing, body, lines) in cases {
        for split in ["whole", "bytes", "4"] {
            let ran = decode(&["--framing", framing, "--split", split], body.as_bytes());
            assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), lines, ""), "{split}");
        }
    }
}

#[test]
fn a_body_that_is_cut_says_so_in_its_last_line() {
    let tail = |event: &str, data: &str| json!({"event": event, "data": data});
    let null = json!(null);
    let cases = [
        ("sse", "data: a\n\nevent: x\ndata: b\ndata: c", 1, null.clone(), tail("x", "b\nc")),
        ("sse", "data: a\n\nerror: no\n: ping", 1, null.clone(), null.clone()),
        ("sse", "data: a\n\nid: 1", 1, null.clone(), null.clone()),
        ("ndjson", "{\"a\":1}\n{\"cut", 1, json!(true), tail("message", "{\"cut")),
        ("ndjson", "{\"a\":1}\n ", 1, null.clone(), null.clone()),
        ("json-array", "[1, 2", 1, json!(true), tail("message", "2")),
        ("json-array", "[{\"a\":1},{\"b", 1, json!(true), tail("message", "{\"b")),
        ("json-array", "[{\"a\":1}", 1, json!(true), null.clone()),
        ("json-array", "", 0, json!(true), null.clone()),
        ("json-array", "[]\n", 0, null.clone(), null.clone()),
        ("json-array", "{\"a\":1}\n", 1, null.clone(), null.clone()),
    ];
    for (framing, body, events, incomplete, tail) in cases {
        for split in ["whole", "bytes", "4"] {
            let ran = decode(&["--framing", framing, "--split", split], body.as_bytes());
            let lines: Vec<Value> =
                ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let last = &lines[events];
            assert_eq!(lines.len(), events + 1, "{framing} {body}: {}", ran.stdout);
            assert_eq!((&last["incomplete"], &last["tail"]), (&incomplete, &tail), "{framing} {body}");
            let (code, said) = match incomplete.is_null() {
                true => (0, ""),
                false => (12, "steadfast: truncated: the body ends in the midst of an array or of a line\n"),
            };
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), said), "{framing} {body}");
        }
    }
}

#[test]
fn a_body_in_another_framing_fails_after_the_events_before() {
    for split in ["whole", "bytes"] {
        let ran = decode(&["--framing", "json-array", "--split", split], b"[1, 2 3]");
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(14), 2), "{}", ran.stdout);
        assert!(ran.stderr.starts_with("steadfast: protocol: not a JSON array: "), "{}", ran.stderr);
    }
}

#[test]
fn the_http_response_itself_is_one_object() {
    let message = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a\r\nX-B: \u{e9}\r\n\
        set-cookie: c\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\n\0\r\n0\r\nX-T: t\r\nY: u\r\nx-t: v\r\n\r\n";
    let expected = concat!(
        r#"{"status":200,"headers":[["Set-Cookie","a"],["X-B","Ã©"],["set-cookie","c"],["Transfer-Encoding","chunked"]],"#,
        r#""interim":[103],"body":"YWJjAA==","outcome":"complete","error_kind":null,"keep_alive":true,"trailers":[["X-T","t"],["Y","u"],["x-t","v"]]}"#,
        "\n"
    );
    for split in ["whole", "bytes", "9"] {
        let ran = decode(&["--http", "--raw", "--split", split], message.as_bytes());
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
    }
    let raw = |message: &str, more: &[&str]| {
        let (code, got) = object(&decode(&[&["--http", "--raw"], more].concat(), message.as_bytes()));
        let word = |field: &str| got[field].as_str().map(str::to_owned);
        (
            code,
            word("outcome").expect("a word"),
            word("error_kind"),
            got["body"].as_str().expect("text").to_owned(),
        )
    };
    let ended = |code, outcome: &str, kind: Option<&str>, body: &str| {
        (Some(code), outcome.to_owned(), kind.map(str::to_owned), body.to_owned())
    };
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
    assert_eq!(raw(short, &[]), ended(12, "incomplete", Some("eof_in_body"), "YWJj"));
    assert_eq!(raw(short, &["--method", "HEAD"]), ended(0, "complete", None, ""));
    assert_eq!(raw("", &[]), ended(12, "incomplete", Some("eof_in_head"), ""));
    assert_eq!(raw("SSH-2.0\r\n\r\n", &[]), ended(14, "error", Some("bad_status_line"), ""));
    assert_eq!(raw("HTTP/1.1 101 Up\r\n\r\n", &[]), ended(14, "upgrade", None, ""));
    assert_eq!(raw("HTTP/1.1 200 OK\r\n\r\nTLS", &["--method", "CONNECT"]), ended(0, "upgrade", None, ""));
}

#[test]
fn a_file_is_read_as_stdin_is() {
    let path = std::env::temp_dir().join(format!("steadfast-decode-{}", std::process::id()));
    fs::write(&path, [TEXT, STOP, DONE].concat()).expect("a file");
    let name = path.to_str().expect("a name in UTF-8");
    let of_file = run(&mut steadfast(&["decode", "--dialect", "openai-chat", name]));
    fs::remove_file(&path).expect("it is there");
    assert_eq!(of_file, decode(&["--dialect", "openai-chat"], [TEXT, STOP, DONE].concat().as_bytes()));
    let gone = run(&mut steadfast(&["decode", "--dialect", "openai-chat", name]));
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(2), ""));
    assert!(gone.stderr.contains(&format!("{name}: No such file")), "{}", gone.stderr);
}

#[test]
fn what_cannot_go_together_is_a_usage_error() {
    let cases: [(&[&str], &str); 15] = [
        (&[], "<--dialect <DIALECT>|--framing <FRAMING>|--raw>"),
        (&["--http"], "<--dialect <DIALECT>|--framing <FRAMING>|--raw>"),
        (&["--raw"], "--http"),
        (&["--dialect", "openai"], "[possible values: openai-chat, openai-completions,"),
        (&["--framing", "xml"], "[possible values: sse, ndjson, json-array]"),
        (&["--dialect", "ollama", "--framing", "ndjson"], "cannot be used with"),
        (&["--dialect", "ollama", "--http", "--raw"], "cannot be used with"),
        (&["--dialect", "ollama", "--http", "--status", "400"], "cannot be used with"),
        (&["--dialect", "ollama", "--method", "HEAD"], "--http"),
        (&["--framing", "sse", "--end", "cut"], "cannot be used with"),
        (&["--http", "--raw", "--config", "max_attempts=2"], "cannot be used with"),
        (&["--framing", "sse", "--split", "0"], "takes whole, bytes, or a number from 1"),
        (&["--dialect", "ollama", "--status", "101"], "101 is not in 200..=999"),
        (&["--dialect", "ollama", "--content-type", "a\r\nb: c"], "invalid value"),
        (&["--dialect", "ollama", "--config", "stream_idle_timout=3"], "the nearest is stream_idle_timeout"),
    ];
    for (arguments, said) in cases {
        let ran = decode(arguments, b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_response_that_is_read_as_a_body_is_pointed_out() {
    let response = format!("HTTP/1.1 200 OK\r\n\r\n{TEXT}{STOP}{DONE}");
    for what in [["--dialect", "openai-chat"], ["--framing", "sse"]] {
        let ran = decode(&what, response.as_bytes());
        assert!(ran.stderr.contains("--http would read a whole response"), "{}", ran.stderr);
    }
    assert_eq!(chat(&response, &["--http"]).0, Some(0));
}

#[test]
fn help_has_examples_and_says_what_is_printed() {
    let ran = run(&mut steadfast(&["decode", "--help"]));
    assert_eq!(ran.code, Some(0));
    for line in [
        "\n  steadfast decode --dialect openai-chat answer.sse\n",
        "\n  With --http --raw, the response as one JSON object: status, headers (",
        "\n   14  protocol: ",
    ] {
        assert!(ran.stdout.contains(line), "{line:?} is not in {}", ran.stdout);
    }
}

#[test]
fn a_call_that_may_have_been_cut_before_its_arguments_is_not_complete() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n";
    let finish = |word: &str| STOP.replace("\"stop\"", &format!("\"{word}\""));
    for (rest, code, complete) in
        [(finish("tool_calls"), 0, true), (finish("length"), 3, false), (String::new(), 12, false)]
    {
        let (got_code, got) = chat(&format!("{call}{rest}"), &[]);
        assert_eq!((got_code, &got["tool_calls"][0]["complete"]), (Some(code), &json!(complete)), "{rest}");
    }
}
