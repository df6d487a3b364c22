//! The lines, byte by byte.

use super::{Drive, HI, STOP, STREAM_HEAD, answered, replays, stream, text};
use crate::call::Fact;
use crate::config::Overrides;
use crate::http1::ResponseHead;
use crate::machine::{Ended, Event, FailureKind, IoFailure, Stage};
use crate::trace::{Bodies, Memory, Recorder};

#[test]
fn a_trace_is_these_lines() {
    let memory = Memory::default();
    answered(Recorder::new(memory.clone()));
    let text = text(&memory);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "{\"trace\":1,\"bodies\":\"whole\",\"request\":{\"method\":\"POST\",\"url\":\"http://h:80/v1\",\
         \"shape\":\"stream\",\"dialect\":\"openai-chat\",\"retries\":\"allowed\",\"forwarded\":false,\
         \"head_bytes\":76,\"body_bytes\":2,\"credentials\":[]},\"config\":{\"connect_timeout\":10.0,\
         \"request_timeout\":600.0,\"stream_idle_timeout\":120.0,\"total_deadline\":900.0,\"max_attempts\":3,\
         \"mcp_connect_timeout\":120.0,\"mcp_request_timeout\":120.0,\"stream_deadline\":\"inf\",\
         \"content_idle_timeout\":\"inf\",\"first_content_timeout\":\"inf\",\"after_sentinel\":0.5,\
         \"after_marker\":2.0,\"max_retry_after\":\"inf\",\"tool_timeout\":120.0,\"max_event_bytes\":16777216,\
         \"max_head_bytes\":65536,\"max_body_bytes\":67108864},\"seed\":7,\
         \"unix_at_origin\":{\"secs\":1700000000,\"nanos\":0},\"began\":0}"
    );
    let wait = |deadline: u64, timer: &str, link: &str, read: bool, write: bool, taken: bool| {
        format!(
            "{{\"step\":\"wait\",\"deadline\":{deadline},\"timer\":\"{timer}\",\"link\":{link},\"read\":{read},\
             \"write\":{write},\"taken\":{taken}}}"
        )
    };
    let received = |at: u64, text: &str| {
        let json = serde_json::to_string(text).unwrap();
        let bytes = text.len();
        format!("{{\"at\":{at},\"event\":\"received\",\"link\":1,\"bytes\":{bytes},\"text\":{json}}}")
    };
    let expected = [
        "{\"at\":5000000,\"event\":\"start\"}".to_owned(),
        "{\"step\":\"connect\",\"link\":1}".to_owned(),
        wait(10_005_000_000, "connect", "null", false, false, false),
        "{\"at\":5000000,\"event\":\"connected\",\"link\":1}".to_owned(),
        wait(600_005_000_000, "request", "1", true, true, false),
        "{\"at\":5000000,\"event\":\"sent\",\"link\":1,\"bytes\":78}".to_owned(),
        wait(600_005_000_000, "request", "1", true, false, false),
        received(30_000_000, STREAM_HEAD),
        wait(120_030_000_000, "stream_idle", "1", true, false, false),
        received(40_000_000, HI),
        "{\"step\":\"text\",\"choice\":0,\"bytes\":2,\"text\":\"Hi\"}".to_owned(),
        "{\"step\":\"wait\",\"deadline\":null,\"timer\":null,\"link\":1,\"read\":false,\"write\":false,\
         \"taken\":true}"
            .to_owned(),
        "{\"at\":40000000,\"event\":\"taken\"}".to_owned(),
        wait(120_040_000_000, "stream_idle", "1", true, false, false),
        received(50_000_000, STOP),
    ];
    for (line, expected) in lines[1..].iter().zip(&expected) {
        assert_eq!(line, expected);
    }
    let last: Vec<&str> = lines[1 + expected.len()..].to_vec();
    assert_eq!(last[0], "{\"step\":\"finished\",\"finish_reason\":\"stop\"}");
    let done = last[last.len() - 2];
    assert!(
        done.starts_with("{\"step\":\"done\",\"outcome\":{\"result\":\"completed\",\"error\":null"),
        "{done}"
    );
    assert!(done.contains("\"timeline\":{\"seed\":7,"), "{done}");
    let (events, steps) = (
        lines.iter().filter(|line| line.contains("\"event\":\"")).count(),
        lines.iter().filter(|line| line.starts_with("{\"step\"")).count(),
    );
    assert_eq!(last[last.len() - 1], format!("{{\"end\":{{\"events\":{events},\"steps\":{steps}}}}}"));
}

#[test]
fn the_other_events() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.feed(0, Event::Start).feed(1, Event::Reused(drive_link()));
    let failure = IoFailure { stage: Stage::Read, kind: FailureKind::Reset, message: "reset".to_owned() };
    drive.feed(2, Event::Failed(drive_link(), failure));
    let link = drive.link();
    let mut headers = http::HeaderMap::new();
    headers.insert("x-odd", http::HeaderValue::from_bytes(b"\xff").unwrap());
    let head = ResponseHead {
        version: http::Version::HTTP_2,
        status: http::StatusCode::OK,
        reason: bytes::Bytes::new(),
        headers,
    };
    drive.feed(3, Event::Connected(link)).feed(4, Event::Fact(Fact::Head(link, head)));
    drive.feed(5, Event::Fact(Fact::Body(link, HI.as_bytes()))).feed(6, Event::Taken);
    drive.feed(7, Event::Fact(Fact::Body(link, b"data: \xff\n\n")));
    drive.feed(7, Event::Fact(Fact::End(link)));
    let text = text(&memory);
    for line in [
        "{\"at\":1000000,\"event\":\"reused\",\"link\":1}",
        "{\"at\":2000000,\"event\":\"failed\",\"link\":1,\"failure\":{\"stage\":\"read\",\"kind\":\"reset\",\
         \"message\":\"reset\"}}",
        "{\"at\":4000000,\"event\":\"head\",\"link\":2,\"status\":200,\"headers\":[[\"x-odd\",\"\u{ff}\"]]}",
        "{\"at\":7000000,\"event\":\"body\",\"link\":2,\"bytes\":9,\"hex\":\"646174613a20ff0a0a\"}",
    ] {
        assert!(text.lines().any(|written| written == line), "{line}\nis not in\n{text}");
    }
    replays(&memory);

    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(1, STREAM_HEAD).feed(2, Event::Eof(drive_link(), Ended::WithoutCloseNotify));
    replays(&memory);
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).feed(1, Event::Fact(Fact::ConsumerFailed("no \"room\"")));
    replays(&memory);
}

/// The first connection of a call
fn drive_link() -> crate::call::AttemptId {
    serde_json::from_str("1").unwrap()
}

#[test]
fn bodies_that_are_not_whole_are_not_in_it() {
    let head =
        "HTTP/1.1 503 Busy\r\nretry-after: 1\r\nset-cookie: a=b\r\ncontent-length: 11\r\n\r\nout of work";
    for bodies in [Bodies::Hashed, Bodies::Lengths] {
        let memory = Memory::default();
        let recorder = Recorder::new(memory.clone()).bodies(bodies);
        let mut drive = Drive::new(stream(), Overrides::new(), recorder);
        drive.request(0).receive(1, head).expire(0);
        drive.connect(5000).receive(6000, STREAM_HEAD).receive(7000, HI).receive(8000, STOP);
        let text = text(&memory);
        for word in ["out of work", "Hi", "DONE", "a=b"] {
            assert!(!text.contains(word), "{bodies}: {word} in {text}");
        }
        for there in [
            "{\"head\":{\"link\":1,\"status\":503,\"headers\":[[\"retry-after\",\"1\"],[\"set-cookie\",\"xxx\"],\
             [\"content-length\",\"11\"]]}}",
            "\"finish_reason\":\"stop\"",
            "\"timeline\":",
        ] {
            assert!(text.contains(there), "{bodies}: {there} is not in {text}");
        }
        assert_eq!(text.contains("\"hash\":"), bodies == Bodies::Hashed, "{text}");
    }
}
