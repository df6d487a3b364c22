//! H: Ollama, newline-delimited JSON, and local servers.

use steadfast::dialect::Dialect;
use steadfast_tests::corpus::events::{D, c, f};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A stream of Ollama's with three attempts, the second of which would be answered in full
fn ollama(answer: Answer, end: End) -> Ran {
    let whole = Answer::raw(HEAD)
        .chunked()
        .send("{\"message\":{\"content\":\"Whole\"},\"done\":true,\"done_reason\":\"stop\"}\n");
    Case::stream(Dialect::Ollama)
        .config(|overrides| overrides.max_attempts(3))
        .answer(answer.end(end))
        .answer(whole.end(End::Clean))
        .play()
}

fn body(body: &str, end: End) -> Ran {
    ollama(Answer::raw(HEAD).chunked().send(body), end)
}

#[test]
fn h01_a_line_cut_between_reads() {
    let reads: [&[u8]; 3] = [
        b"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"con",
        b"tent\":\"\xE4\xBD",
        b"\xA0\"},\"done\":false}\n{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1}\n",
    ];
    let answer = Answer::raw(HEAD).chunked();
    let answer = answer.send(reads[0]).at(1.0).send(reads[1]).at(2.0).send(reads[2]);
    assert_eq!(
        ollama(answer, End::Clean).told(),
        "completed \"\u{4F60}\" finish=stop usage=-/1 turn@2 end@2 requests=1"
    );
}

#[test]
fn h02_several_objects_in_one_read() {
    let lines = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"message\":{\"content\":\"b\"},\"done\":false}\r\n\n{\"message\":{\"content\":\"c\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    let expected = r#"completed "abc" finish=stop usage=- turn@0 end@0 requests=1"#;
    assert_eq!(body(lines, End::Clean).told(), expected);
    // Whatever a proxy makes of the type, the lines are read as lines.
    for content_type in ["application/json", "text/event-stream", "text/plain"] {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let ran = ollama(Answer::raw(head).chunked().send(lines), End::Clean);
        assert_eq!(ran.told(), expected, "{content_type}");
    }
    // The last line is the sentinel: a socket held open behind it is not waited for.
    assert_eq!(body(lines, End::Open).told(), expected);
}

#[test]
fn h03_an_error_line_after_a_200() {
    let lines = "{\"message\":{\"content\":\"Yes\"},\"done\":false}\n{\"error\":\"model runner stopped\"}\n";
    assert_eq!(
        body(lines, End::Clean).told(),
        r#"in_band(- - - "model runner stopped") "Yes" finish=- usage=- billing=delivered end@0 requests=1"#
    );
}

#[test]
fn h04_the_lines_end_without_a_last_one() {
    let line = "{\"message\":{\"content\":\"Half\"},\"done\":false}\n";
    assert_eq!(
        body(line, End::Clean).told(),
        r#"truncated(no terminal state) "Half" finish=- usage=- billing=delivered end@0 requests=1"#
    );
    // A last line that is whole is not missed for want of a line end, not even after a cut (rule STR-9).
    let last = "{\"message\":{\"content\":\"!\"},\"done\":true,\"done_reason\":\"stop\"}";
    for (end, notes) in [(End::Clean, "[TailTaken]"), (End::Cut, "[TailTaken, UncleanEnd]")] {
        let ran = body(&(line.to_owned() + last), end);
        assert_eq!(
            ran.told(),
            format!(r#"completed "Half!" finish=stop usage=- turn@0 end@0 requests=1 notes={notes}"#)
        );
    }
}

#[test]
fn h06_an_error_as_a_field_of_its_own() {
    let field = "error: {\"code\":400,\"message\":\"input larger than context\",\"type\":\"invalid_request_error\"}\n\n";
    let ran = Case::stream(Dialect::OpenAiChat)
        .config(|overrides| overrides.max_attempts(3))
        .body([field, D].concat(), End::Clean)
        .answer(Answer::stream().send([&c("Whole"), &f("stop"), D].concat()).end(End::Clean))
        .play();
    assert_eq!(
        ran.told(),
        r#"in_band(invalid_request_error 400 400 "input larger than context") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
}
