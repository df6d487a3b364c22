//! No credential is in a trace, however it came back, and the trace replays all the same.

use super::{Drive, STREAM_HEAD, replays, stream, text};
use crate::call::{Request, RequestBuilder};
use crate::config::Overrides;
use crate::machine::{Ended, Event};
use crate::trace::{Bodies, Memory, Recorder};

const KEY: &str = "sk-a/b+c=very-secret-0123456789";
const QUERY: &str = "query-secret-4711";
const COOKIE: &str = "jar-of-4-secrets-0815";

fn request() -> RequestBuilder {
    let url = format!("https://h/v1?alt=sse&key={QUERY}");
    let request = crate::call::Request::post(&url).bearer(KEY).header("cookie", &format!("s={COOKIE}"));
    request.body(format!("{{\"user\":\"{KEY}\"}}")).dialect(crate::dialect::Dialect::OpenAiChat).stream()
}

/// All that could be found of a secret: more than its first three bytes
#[track_caller]
fn holds_no_secret(memory: &Memory) {
    let text = text(memory);
    for secret in [KEY, QUERY, COOKIE, "sk-a\\/b", "sk-a%2F", "set-secret"] {
        for part in secret.as_bytes().windows(6.min(secret.len())) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(!text.contains(part), "{part} in {text}");
        }
    }
}

/// A server that says all it knows
fn echo() -> String {
    let escaped = KEY.replace('/', "\\/");
    let encoded = "sk-a%2Fb%2Bc%3Dvery-secret-0123456789";
    let (by_net, by_gson) = (KEY.replace('+', "\\u002B"), KEY.replace('=', "\\u003d"));
    let text = format!("got {KEY}, {escaped}, {by_net}, {by_gson}, {encoded}, {QUERY}{COOKIE} sk-a sk-");
    let head = STREAM_HEAD.replacen("\r\n", &format!("\r\nSet-Cookie: t=set-secret\r\nx-echo: {KEY}\r\n"), 1);
    format!(
        "{head}data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n\
         data: {{\"error\":{{\"message\":\"no {KEY}\",\"code\":\"{QUERY}\"}}}}\n\n"
    )
}

#[test]
fn at_every_split_of_what_a_server_echoes() {
    let echo = echo();
    for cut in 0..=echo.len() {
        let memory = Memory::default();
        let mut drive = Drive::new(request(), Overrides::new(), Recorder::new(memory.clone()));
        drive.request(0).receive(1, &echo[..cut]);
        if drive.outcome.is_none() {
            drive.receive(2, &echo[cut..]);
        }
        drop(drive);
        holds_no_secret(&memory);
        replays(&memory);
    }
}

#[test]
fn read_byte_by_byte() {
    for bodies in Bodies::ALL {
        let memory = Memory::default();
        let recorder = Recorder::new(memory.clone()).bodies(bodies);
        let mut drive = Drive::new(request(), Overrides::new(), recorder);
        drive.request(0);
        for byte in echo().as_bytes() {
            if drive.outcome.is_none() {
                drive.receive(1, [*byte]);
            }
        }
        drop(drive);
        holds_no_secret(&memory);
        if bodies == Bodies::Whole {
            replays(&memory);
        }
    }
}

#[test]
fn in_an_answer_that_ends_inside_it() {
    for end in 1..KEY.len() {
        let memory = Memory::default();
        let mut drive =
            Drive::new(request(), Overrides::new().max_attempts(1), Recorder::new(memory.clone()));
        drive
            .request(0)
            .receive(1, format!("HTTP/1.1 401 No\r\ncontent-length: 99\r\n\r\nkey {}", &KEY[..end]));
        let link = drive.link();
        drive.feed(2, Event::Eof(link, Ended::Clean));
        holds_no_secret(&memory);
        replays(&memory);
    }
}

#[test]
fn in_the_first_line_are_placeholders_of_the_same_length() {
    let memory = Memory::default();
    drop(Drive::new(request(), Overrides::new(), Recorder::new(memory.clone())));
    let line: serde_json::Value = serde_json::from_str(text(&memory).lines().next().unwrap()).unwrap();
    assert_eq!(line["request"]["url"], "https://h:443/v1?alt=&key=");
    let lengths: Vec<usize> = line["request"]["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|placeholder| placeholder.as_str().unwrap().len())
        .collect();
    // The key percent-encoded, with its plus as .NET escapes it and its equal sign as Gson does, with its
    // slash escaped, and as it is
    let of_the_key = [6, 5, 5, 1, 0].map(|more| KEY.len() + more);
    assert_eq!(lengths, [&of_the_key[..], &[COOKIE.len(), QUERY.len()]].concat());
}

#[test]
fn what_waits_for_the_next_read_is_bounded() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream().bearer(KEY), Overrides::new(), Recorder::new(memory.clone()));
    let (head, tail) = KEY.split_at(8);
    let padding = format!(": {}", "y".repeat(Recorder::MAX_HELD_BYTES));
    drive.request(0).receive(1, STREAM_HEAD).receive(2, padding + head);
    assert!(text(&memory).len() > Recorder::MAX_HELD_BYTES);
    drive.receive(3, format!("{tail} and {tail}\n\n"));
    drop(drive);
    let text = text(&memory);
    assert!(!text.contains(KEY) && !text.contains(head), "the beginning is replaced on suspicion");
    assert_eq!(text.matches(tail).count(), 1, "and the rest too, where it follows");
    replays(&memory);
}

/// A server on the same machine has no use for a key, so anything will do for one
#[test]
fn a_key_that_is_a_word_of_the_trace_leaves_it_readable() {
    for key in ["openai", "stream", "connect", "allowed", "api.example"] {
        let memory = Memory::default();
        let request = stream().bearer(key);
        let mut drive = Drive::new(request, Overrides::new(), Recorder::new(memory.clone()));
        drive.request(0).receive(1, STREAM_HEAD);
        drive.receive(2, format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{key}\"}}}}]}}\n\n"));
        drive.receive(3, "data: [DONE]\n\n");
        drop(drive);
        replays(&memory);
        let text = text(&memory);
        let said = text.lines().find(|line| line.starts_with("{\"step\":\"text\"")).unwrap();
        assert!(!said.contains(key), "{said}");
    }
}

#[test]
fn a_key_in_a_path_is_not_in_it() {
    let memory = Memory::default();
    let request = Request::post(&format!("https://h/{KEY}/v1/chat")).bearer(KEY).body("{}");
    drop(Drive::new(request, Overrides::new(), Recorder::new(memory.clone())));
    holds_no_secret(&memory);
    replays(&memory);
}
