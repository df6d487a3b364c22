//! The files all parse and are all embedded; what cannot be run is refused, with the place named.

use std::time::Duration;

use crate::scenario::{Billing, Cancel, Consumer, Dialect, End, Phase, Scenario, Shape};
use crate::script::{Listen, Read, Script, Step};
use crate::{Observed, ParseError, Problem, Tally, all, find, sources};

const SCRIPT: &str = r#"
name = "x"
about = "a test"
[[connection]]
steps = [STEPS]
"#;

fn steps(steps: &str) -> Result<Vec<Step>, ParseError> {
    Script::parse(&SCRIPT.replace("STEPS", steps)).map(|mut script| script.connections.remove(0).steps)
}

fn sent(bytes: &str) -> Vec<u8> {
    let steps = steps(&format!("{{ send = {bytes} }}, \"close\"")).expect("a valid step");
    let Step::Send(bytes) = &steps[0] else { panic!("{steps:?} do not begin with a send") };
    bytes.clone()
}

fn message(result: Result<impl std::fmt::Debug, ParseError>) -> String {
    result.expect_err("this must be refused").to_string()
}

#[test]
fn the_list_is_the_folder() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
        .map(|file| file.strip_suffix(".toml").expect("only scenarios lie there").to_owned())
        .collect();
    files.sort();
    let listed: Vec<&str> = sources().iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, files);
}

#[test]
fn a_name_that_is_not_known_has_a_nearest_one() {
    assert_eq!(crate::nearest("stream-mute-after-dleta"), "stream-mute-after-delta");
}

#[test]
fn every_file_parses_under_its_own_name() {
    for (name, text) in sources() {
        let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name(), *name);
        assert_eq!(Script::parse(text).as_ref(), Ok(&scenario.script));
    }
    assert_eq!(all().len(), sources().len());
    assert!(find("no-such-scenario").is_none());
}

#[test]
fn every_bound_leaves_room_for_the_timers_of_a_busy_machine() {
    for scenario in all() {
        assert!(scenario.tolerance >= Duration::from_millis(150), "{}", scenario.name());
        for expect in &scenario.expect {
            assert!(
                expect.limit.is_none_or(|limit| limit >= Duration::from_millis(150)),
                "{}",
                scenario.name()
            );
        }
    }
}

#[test]
fn a_file_reads_as_it_says() {
    let scenario = find("slow-consumer").expect("it is there");
    assert_eq!(scenario.call.shape, Shape::Stream);
    assert_eq!(scenario.call.dialect, Dialect::OpenaiChat);
    assert_eq!(scenario.call.consumer, Some(Consumer { pause: Duration::from_millis(600), every: 1 }));
    assert_eq!(scenario.call.config.get("stream_idle_timeout"), Some(&0.2));
    assert_eq!(scenario.script.server.send_buffer, Some(65536));
    assert_eq!(scenario.script.server.listen, Listen::Accept);
    assert_eq!(scenario.script.connections[0].steps[0], Step::Read(Read::Request));
    assert_eq!(scenario.seen.requests, Some(1));
    assert_eq!(
        find("cancel-mid-body").map(|scenario| scenario.call.cancel),
        Some(Some(Cancel::AfterDeltas(1)))
    );
    let idle = find("stream-unbounded-idle").expect("it is there");
    assert_eq!(idle.call.config["stream_idle_timeout"], f64::INFINITY);
}

#[test]
fn entries_serve_in_order_and_the_last_one_goes_on() {
    let scenario = find("twenty-timeouts-then-answer").expect("it is there");
    let [mute, answer] = &scenario.script.connections[..] else { panic!("two entries") };
    assert_eq!(scenario.script.connection(19), Some(mute));
    assert_eq!(scenario.script.connection(20), Some(answer));
    assert_eq!(scenario.script.connection(99), Some(answer));
    assert_eq!(scenario.expected(19).result, End::Timeout);
    assert_eq!(scenario.expected(20).result, End::Completed);
    assert_eq!(find("connect-refused").and_then(|refused| refused.script.connection(0)), None);
}

#[test]
fn strings_and_tables_make_the_exact_bytes() {
    assert_eq!(sent(r#""a\r\n$$b""#), b"a\r\n$b");
    assert_eq!(sent(r#"{ hex = "00 ff7F" }"#), [0, 0xff, 0x7f]);
    assert_eq!(sent(r#"{ base64 = "/wA=" }"#), [0xff, 0]);
    assert_eq!(sent(r#"{ base64 = "TWFu TQ" }"#), b"ManM");
    assert_eq!(sent(r#"["a", { hex = "ff" }, "b"]"#), b"a\xffb");
    assert_eq!(sent(r#"{ repeat = "ab", times = 3 }"#), b"ababab");
    assert_eq!(
        sent(r#"[{ chunk = "0123456789abcdef" }, "0\r\n\r\n"]"#),
        b"10\r\n0123456789abcdef\r\n0\r\n\r\n"
    );
}

#[test]
fn fragments_may_use_each_other_but_not_themselves() {
    let file = |bytes: &str| format!("{bytes}\n[[connection]]\nsteps = [{{ send = \"<$b>\" }}, \"close\"]");
    let head = "name = \"x\"\nabout = \"a test\"\n[bytes]\n";
    let script = Script::parse(&format!("{head}{}", file("a = \"1\"\nb = \"$a$a\""))).expect("valid");
    assert_eq!(script.connections[0].steps[0], Step::Send(b"<11>".to_vec()));
    assert_eq!(
        message(Script::parse(&format!("{head}{}", file("a = \"$b\"\nb = \"$a\"")))),
        "scenario x: bytes.b: `$a` contains itself"
    );
    assert_eq!(
        message(Script::parse(&format!("{head}{}", file("best = \"1\"\nother = \"1\"")))),
        "scenario x: connection[0].steps[0].send: no bytes are named `$b`; did you mean `$best`?"
    );
}

#[test]
fn heads_answers_and_trickles_are_sends() {
    assert_eq!(
        steps(
            r#"{ head = ["200 OK", "a: b"] }, { answer = { head = ["413 Too Large"], body = "no" } }, "close""#
        ),
        Ok(vec![
            Step::Send(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n".to_vec()),
            Step::Send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno".to_vec()),
            Step::Close,
        ])
    );
    let pause = Step::Pause(Duration::from_millis(100));
    assert_eq!(
        steps(r#"{ trickle = { data = "abc", size = 2, every = 0.1 } }, "last-chunk", "rst""#),
        Ok(vec![
            Step::Send(b"ab".to_vec()),
            pause.clone(),
            Step::Send(b"c".to_vec()),
            Step::Send(b"0\r\n\r\n".to_vec()),
            Step::Reset,
        ])
    );
    assert_eq!(
        steps(
            r#"{ read = 7 }, { read = "head" }, { repeat = { times = "forever", steps = [{ pause = 0.1 }] } }"#
        ),
        Ok(vec![
            Step::Read(Read::Bytes(7)),
            Step::Read(Read::Head),
            Step::Repeat { times: None, steps: vec![pause] }
        ])
    );
}

#[test]
fn what_cannot_be_run_is_refused_with_its_place() {
    let refused: &[(&str, &str)] = &[
        (r#"{ paus = 1 }, "close""#, "[0].paus: is not known; did you mean `pause`?"),
        (r#""await-clos""#, "[0]: `await-clos` is no step; did you mean `await-close`?"),
        (r#"{ pause = -1 }, "close""#, "[0].pause: -1 is not between 0 and 3600 seconds"),
        (r#"{ pause = "1" }, "close""#, "[0].pause: must be a number or \"inf\""),
        (r#"{ read = "hed" }, "close""#, "[0].read: `hed` is not known; did you mean `head`?"),
        (r#"{ read = 0 }, "close""#, "[0].read: 0 is not at least 1"),
        (r#""close", { pause = 1 }"#, "[1]: nothing can follow the step before"),
        (r#""close-notify", "close""#, "[0]: there is no close-notify without server.tls"),
        (
            r#"{ chunk = "" }, "close""#,
            "[0].chunk: a chunk without content would be the last one: use \"last-chunk\"",
        ),
        (r#"{ send = { hex = "f" } }, "close""#, "[0].send.hex: not pairs of hexadecimal digits"),
        (r#"{ send = { base64 = "A" } }, "close""#, "[0].send.base64: not base64"),
        (
            r#"{ send = { repeat = "ab", times = 99999999 } }, "close""#,
            "[0].send: 199999998 bytes are more than 67108864",
        ),
        (
            r#"{ head = ["200 OK", "a: b\r\nc: d"] }, "close""#,
            "[0].head: a status is three digits, a header is `name: value`, and neither has a line break",
        ),
        (
            r#"{ repeat = { times = 2, steps = ["close"] } }, "close""#,
            "[0].repeat.steps: a step that ends the connection cannot be repeated",
        ),
        (
            r#"{ pause = 1 }"#,
            ": must end in await-close, hold, close, rst or a repeat without end, so that the file says how the \
             connection ends",
        ),
    ];
    for (text, problem) in refused {
        assert_eq!(message(steps(text)), format!("scenario x: connection[0].steps{problem}"));
    }
}

#[test]
fn a_scenario_is_checked_as_a_whole() {
    let text = |name| sources().iter().find(|(file, _)| *file == name).expect("it is there").1;
    let mute = text("unary-mute");
    let refused: &[(&str, &str, &str)] = &[
        ("shape = ", "shap = ", "call.shape: is missing"),
        (
            "dialect = \"openai-chat\"",
            "dialect = \"openai\"",
            "call.dialect: `openai` is not known; did you mean `openai-chat`?",
        ),
        (
            "request_timeout = 0.3",
            "request_timout = 0.3",
            "call.config.request_timout: is not known; did you mean `request_timeout`?",
        ),
        ("billing = ", "biling = ", "expect[0].biling: is not known; did you mean `billing`?"),
        ("limit = 0.3\n", "", "expect[0]: phase and limit belong to a timeout, and both are needed there"),
        (
            "\nattempts = 1",
            "\nstatus = 500",
            "expect[0]: status and body belong to a status, and the status is needed there",
        ),
        ("\nattempts = 1", "\nmin_elapsed = 9", "expect[0]: min_elapsed is more than max_elapsed"),
        (
            "[call]",
            "[server]\nlisten = \"refuse\"\n[call]",
            "connection: a server that does not accept has no connections",
        ),
        (
            "name = \"unary-mute\"",
            "name = \"unary-mute\"\nparalel = true",
            "paralel: is not known; did you mean",
        ),
    ];
    for (old, new, problem) in refused {
        assert!(mute.contains(old), "{old}");
        let got = message(Scenario::parse(&mute.replacen(old, new, 1)));
        assert!(got.starts_with(&format!("scenario unary-mute: {problem}")), "{got}");
    }
    let error = Scenario::parse("name = ").expect_err("no TOML");
    assert_eq!((error.scenario.as_str(), error.field.as_str()), ("?", "file"));
    assert!(matches!(error.problem, Problem::Syntax(_)));
}

#[test]
fn a_check_names_each_difference() {
    let scenario = find("stream-mute-after-delta").expect("it is there");
    let agreed = Observed {
        result: End::Timeout,
        phase: Some(Phase::StreamIdle),
        limit: Some(Duration::from_millis(300)),
        waited: Some(Duration::from_millis(310)),
        status: None,
        body: None,
        finish_reason: None,
        text: "Hi".to_owned(),
        output_tokens: None,
        attempts: 1,
        billing: Some(Billing::Delivered),
        elapsed: Duration::from_millis(320),
        turn_at: None,
    };
    assert_eq!(scenario.check(0, &agreed, scenario.tolerance), []);
    let late = Observed { text: "H".to_owned(), attempts: 2, billing: None, ..agreed.clone() };
    let found: Vec<String> =
        scenario.check(0, &late, Duration::ZERO).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "limit: expected >= 300ms and <= 300ms, got 310ms",
            "text: expected \"Hi\", got \"H\"",
            "attempts: expected 1, got 2",
            "billing: expected Delivered, got nothing",
        ]
    );
    let tally = Tally { connections: 1, requests: 2, closed_by_peer: 1, ..Tally::default() };
    let found = scenario.seen.check(&tally);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "requests: expected 1, got 2");
}
