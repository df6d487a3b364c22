//! A: server-sent events and UTF-8.

use steadfast::call::CloseMode;
use steadfast::dialect::Dialect;
use steadfast::framing::sse::Framer;
use steadfast::outcome::{Billing, ErrorKind, Note, ProtocolError, Truncation};
use steadfast_tests::corpus::events::{AB, AS, D, RC, RX, U, at, c, f, rt};
use steadfast_tests::corpus::{Answer, Case, End, Ran, deliveries};

fn chat(body: impl AsRef<[u8]>, end: End) -> Case {
    Case::stream(Dialect::OpenAiChat).body(body, end)
}

/// The same, where no read has more than one of these pieces
fn chat_in_reads(pieces: &[&[u8]]) -> Case {
    Case::stream(Dialect::OpenAiChat).answer(Answer::stream().reads(pieces).end(End::Clean))
}

/// One attempt that ended at the sentinel with that text, with nothing else to say of it
fn assert_stopped<'a>(ran: &'a Ran, text: &str) -> &'a Ran {
    ran.assert_completed(Some("stop"), text).assert_usage(None).assert_notes(&[]).assert_requests(1);
    assert!(ran.turn().choices.len() == 1 && ran.turn().choices[0].tool_calls.is_empty());
    ran
}

/// A delta of Chat with these bytes as its content
fn delta(content: &[u8]) -> Vec<u8> {
    let around = c("|");
    let (before, after) = around.split_once('|').unwrap();
    [before.as_bytes(), content, after.as_bytes()].concat()
}

#[test]
fn a01_a_character_cut_between_two_reads() {
    let (first, second) = (delta(b"\xE4\xB8\xADok"), f("stop") + D);
    let cut = first.windows(2).position(|pair| pair == b"\xB8\xAD").unwrap() + 1;
    let pieces = [&first[..cut], &first[cut..], second.as_bytes()];
    assert_stopped(&chat_in_reads(&pieces).play(), "中ok");
    let (texts, outcome) = deliveries(Dialect::OpenAiChat, &pieces);
    assert_eq!(texts, [vec![], vec!["中ok"], vec![]]);
    assert!(outcome.unwrap().result.is_ok());
}

#[test]
fn a03_a_byte_that_is_never_valid_utf8() {
    let body = [delta(b"a\xFFb"), (f("stop") + D).into_bytes()].concat();
    assert_stopped(&chat(body, End::Clean).play(), "a\u{FFFD}b");
}

#[test]
fn a04_crlf_line_ends() {
    let events = [c("Hi"), f("stop"), D.to_owned()].map(|event| event.replace('\n', "\r\n"));
    let ran = chat(events.concat(), End::Clean).play();
    assert_eq!(assert_stopped(&ran, "Hi").events(), 3);
    // Each as soon as its blank line is in: the delta, the marker and the sentinel.
    let mut answer = Answer::stream();
    for (event, seconds) in events.iter().zip([1.0, 2.0, 3.0]) {
        answer = answer.send(event).at(seconds);
    }
    let case = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Open));
    assert_stopped(&case.play(), "Hi").assert_times(Some(1.0), 2.0);
    let reads = events.each_ref().map(String::as_bytes);
    assert_eq!(deliveries(Dialect::OpenAiChat, &reads).0, [vec!["Hi"], vec![], vec![]]);
}

#[test]
fn a06_a_crlf_pair_cut_between_reads() {
    // As data of a call it is not JSON, and the error quotes the one event that there is.
    let pieces: [&[u8]; 5] = [b"data: A\r\n", b"data: B\r", b"\n", b"data: C\r\n", b"\r\n"];
    let ran = chat_in_reads(&pieces).play();
    let error = ProtocolError::Malformed {
        reason: "not JSON, at line 1 column 1".to_owned(),
        snippet: "A\nB\nC".to_owned(),
    };
    assert_eq!(ran.kind(), &ErrorKind::Protocol(error));
    assert_eq!(ran.events(), 0);

    let mut framer = Framer::new(100);
    let mut events = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while let (consumed, Some(event)) = framer.next(rest).unwrap() {
            events.push(framer.bytes(rest, event.data).to_vec());
            rest = &rest[consumed..];
        }
    }
    assert_eq!(events, [b"A\nB\nC"]);
    assert!(framer.tail().is_none());
}

#[test]
fn a08_a_byte_order_mark_cut_across_reads() {
    let first = delta("1st \u{FEFF}".as_bytes());
    let last = f("stop") + D;
    let pieces: [&[u8]; 4] = [b"\xEF", b"\xBB\xBF", &first, last.as_bytes()];
    assert_stopped(&chat_in_reads(&pieces).play(), "1st \u{FEFF}");
    // An empty read in front is no first read.
    let (texts, outcome) =
        deliveries(Dialect::OpenAiChat, &[b"", pieces[0], pieces[1], pieces[2], pieces[3]]);
    assert_eq!(texts, [vec![], vec![], vec![], vec!["1st \u{FEFF}"], vec![]]);
    assert!(outcome.unwrap().result.is_ok());
    // Exactly one is stripped: the second makes an unknown field of the first line.
    let twice = ["\u{FEFF}\u{FEFF}", &c("lost"), &c("kept"), &last].concat();
    assert_stopped(&chat(twice, End::Clean).play(), "kept");
}

#[test]
fn a10_comment_keep_alives() {
    let answer = Answer::stream().send(": OPENROUTER PROCESSING\n\n").at(8.0).send(":\n\n").at(16.0);
    let answer = answer.send(": OPENROUTER PROCESSING\n\n").at(17.0).send(c("Hi") + &f("stop") + D);
    // Without the comments, 17 seconds of silence would be too many.
    let case = Case::stream(Dialect::OpenAiChat).config(|config| config.stream_idle_timeout(8.5));
    let ran = case.answer(answer.end(End::Clean)).play();
    assert_stopped(&ran, "Hi").assert_times(Some(17.0), 17.0);
    assert_eq!(ran.events(), 3);
}

#[test]
fn a11_control_only_blocks() {
    let head = "retry: 3000\n\nid: 7\n";
    let body = [head, &c("Hi"), ": ping\n\n", "id: 8\n\n", &f("stop"), D].concat();
    let ran = chat(body, End::Clean).config(|config| config.max_attempts(3)).play();
    assert_eq!(assert_stopped(&ran, "Hi").events(), 3);
    // Nor does `retry` make a second connection where the stream is cut.
    let body = [head, &c("Hi"), ": ping\n\n"].concat();
    let ran = chat(body, End::Cut).config(|config| config.max_attempts(3)).play();
    ran.assert_failed("truncated", "Hi").assert_times(None, 0.0).assert_requests(1);
}

#[test]
fn a13_no_space_or_two_after_the_colon() {
    let body = [
        c("Hi").replacen("data: ", "data:", 1),
        f("stop").replacen("data: ", "event:message\ndata:  ", 1),
        D.replacen("data: ", "data:", 1),
    ];
    assert_stopped(&chat(body.concat(), End::Clean).play(), "Hi");
    let padded = c("Hi") + &f("stop") + "data:  [DONE]\n\n";
    assert_stopped(&chat(padded, End::Clean).play(), "Hi");
}

#[test]
fn a14_one_event_over_several_data_lines() {
    let error = "event: error\ndata: {\"type\":\"error\",\ndata: \"error\":{\"type\":\"api_error\",\ndata:  \"message\":\"boom\"}}\n\n";
    let ran = Case::stream(Dialect::Anthropic).body(error, End::Clean).play();
    ran.assert_failed("in_band", "").assert_billing(Billing::MaybeBilled).assert_notes(&[]);
    let told = ran.provider_error();
    assert_eq!((told.kind.as_deref(), told.message.as_str()), (Some("api_error"), "boom"));
    assert_eq!(ran.events(), 1);
    // Nothing of it is taken in before the blank line.
    let body = [AS, AB, &at("Hi"), &error[..error.len() - 1]].concat();
    let ran = Case::stream(Dialect::Anthropic).body(body, End::Cut).play();
    ran.assert_failed("truncated", "Hi").assert_billing(Billing::Delivered);
}

/// Rule STR-9 decides: taken after a proper end of the body, and only if it is whole
#[test]
fn a15_the_last_event_is_not_followed_by_a_blank_line() {
    let completed = "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":9,\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[]}}\n";
    let begun = RC.to_owned() + &rt("Hi");
    let responses = |tail: &str, end| {
        let case = Case::stream(Dialect::OpenAiResponses).body(begun.clone() + tail, end);
        case.config(|config| config.max_attempts(3)).play()
    };
    for (tail, end) in
        [(completed, End::Clean), (completed.trim_end(), End::Clean), (&RX[..RX.len() - 1], End::Clean)]
    {
        let ran = responses(tail, end);
        ran.assert_completed(Some("completed"), "Hi").assert_notes(&[Note::TailTaken]).assert_requests(1);
        ran.assert_times(Some(0.0), 0.0);
    }
    // Cut in the middle of the JSON, or whole but without a proper end of the body: never.
    let half = &completed[..completed.len() - 20];
    for tail in [half, completed, completed.trim_end()] {
        let ran = responses(tail, End::Cut);
        ran.assert_failed("truncated", "Hi").assert_billing(Billing::Delivered).assert_requests(1);
        assert!(matches!(ran.kind(), ErrorKind::Truncated(Truncation::InResponse { .. })));
        ran.assert_usage(None).assert_notes(&[]);
        assert_eq!(ran.turn().finish_reason(), None);
    }
    let ran = responses(half, End::Clean);
    assert_eq!(ran.kind(), &ErrorKind::Truncated(Truncation::NoTerminalState));
    ran.assert_failed("truncated", "Hi").assert_requests(1);
    // A body that ends with the connection, and over TLS without `close_notify`: no proper end.
    let until_eof = |end| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let answer = Answer::raw(head).send(begun.clone() + completed).end(end);
        Case::stream(Dialect::OpenAiResponses).tls().answer(answer).play()
    };
    until_eof(End::Clean).assert_completed(Some("completed"), "Hi").assert_notes(&[Note::TailTaken]);
    until_eof(End::Cut).assert_failed("truncated", "Hi").assert_notes(&[Note::NoCloseNotify]);
}

#[test]
fn a15_the_sentinel_is_not_followed_by_a_blank_line() {
    for sentinel in
        ["data: [DONE]\n", "data: [DONE]", "data:[DONE]", "data:  [DONE] ", "data: [DONE]\nerror: cut"]
    {
        for end in [End::Clean, End::Cut] {
            let ran = chat(c("Hi") + &f("stop") + U + sentinel, end).play();
            ran.assert_completed(Some("stop"), "Hi").assert_usage(Some([5, 2, 7])).assert_requests(1);
            // After an improper end it is not taken, and the marker alone has to do.
            let taken = end == End::Clean;
            let notes: &[Note] =
                if taken { &[Note::TailTaken] } else { &[Note::UncleanEnd, Note::MissingSentinel] };
            ran.assert_notes(notes);
        }
    }
    // A byte that is not UTF-8 makes no tail less whole.
    let tail = [delta(b"a\xFFb"), (f("stop") + "data: {\"choices\":[],\"x\":\"").into_bytes()].concat();
    let tail = [&tail[..], b"\xFF\"}\n"].concat();
    let ran = chat(tail, End::Clean).play();
    ran.assert_completed(Some("stop"), "a\u{FFFD}b").assert_notes(&[Note::TailTaken, Note::MissingSentinel]);
}

#[test]
fn a17_other_separators_are_no_line_ends() {
    let text = "a\u{2028}b\u{2029}c\u{85}d";
    assert_eq!(text.chars().count(), 7);
    let ran = chat(c(text) + &f("stop") + D, End::Clean).play();
    assert_eq!(assert_stopped(&ran, text).events(), 3);
    assert_eq!(ran.played.outcome.timeline.attempts[0].deltas, 1);
    // VT and FF are no JSON inside a string, but they are no line end between members either.
    let body = c("Hi").replacen("{\"index\"", "\u{B}{\"index\"", 1);
    let ran = chat(body, End::Clean).play();
    ran.assert_failed("protocol", "");
    assert!(ran.error().to_string().contains(r#"{\"choices\":[\u{b}{\"index\":0"#), "{}", ran.error());
}

#[test]
fn a19_a_line_that_never_ends() {
    let too_large = |limit| ErrorKind::Protocol(ProtocolError::EventTooLarge { limit });
    let limit = 1 << 20;
    let mut answer = Answer::stream().send("data: ");
    for second in 1..=32 {
        answer = answer.at(f64::from(second)).send(vec![b'x'; 64 * 1024]);
    }
    let ran = Case::stream(Dialect::OpenAiChat)
        .config(|config| config.max_event_bytes(limit).max_attempts(3))
        .answer(answer.end(End::Open))
        .play_whole();
    assert_eq!(ran.kind(), &too_large(limit));
    // `data: ` and sixteen pieces pass the limit, half of what the server would send.
    ran.assert_times(None, 16.0).assert_billing(Billing::MaybeBilled).assert_requests(1);
    assert_eq!(ran.closed(), Some(CloseMode::Abort));

    // The same limit holds for many short lines of one event, and for the name of the event.
    let limit = 4096;
    for body in [
        "data: x\n".repeat(limit),
        "event: ".to_owned() + &"x".repeat(limit),
        "data: ".to_owned() + &"x".repeat(limit),
        ": ".to_owned() + &"x".repeat(limit),
        "id: ".to_owned() + &"x".repeat(limit),
    ] {
        let case = chat(c("Hi") + &body, End::Open).config(|config| config.max_event_bytes(limit));
        let ran = case.config(|config| config.max_attempts(3)).play();
        assert_eq!(ran.kind(), &too_large(limit));
        ran.assert_failed("protocol", "Hi").assert_times(None, 0.0).assert_billing(Billing::Delivered);
        ran.assert_requests(1);
    }
}

#[test]
fn a20_a_heartbeat_wrapped_as_data() {
    let body = ["data: : keepalive\n\n", &c("Hi"), "data: : OPENROUTER PROCESSING\n\n", &f("stop"), D];
    let ran = chat(body.concat(), End::Clean).play();
    ran.assert_completed(Some("stop"), "Hi").assert_notes(&[Note::PayloadSkipped]).assert_requests(1);
    // Anything else that cannot be read is an error: to pass over it would lose text in silence.
    for (payload, reason) in [
        ("keepalive", "not JSON, at line 1 column 1"),
        ("{\"choices\":[", "not JSON, at line 1 column 12"),
        ("\"text\"", "JSON, but not an object"),
        ("42", "JSON, but not an object"),
    ] {
        let body = [&c("Hi"), "data: ", payload, "\n\n", &f("stop"), D].concat();
        let ran = chat(body, End::Clean).config(|config| config.max_attempts(3)).play();
        let error = ProtocolError::Malformed { reason: reason.to_owned(), snippet: payload.to_owned() };
        assert_eq!(ran.kind(), &ErrorKind::Protocol(error));
        ran.assert_failed("protocol", "Hi").assert_billing(Billing::Delivered).assert_requests(1);
    }
}

#[test]
fn a21_null_between_chunks() {
    const NULL: &str = "data: null\n\n";
    let body = [NULL, &c("Hi"), NULL, &f("stop"), NULL, D].concat();
    let ran = chat(body, End::Clean).play();
    ran.assert_completed(Some("stop"), "Hi").assert_notes(&[Note::PayloadSkipped]).assert_requests(1);
    // One at the end clears neither usage nor finish reason.
    let ran = chat([&c("Hi"), &f("stop"), U, NULL].concat(), End::Clean).play();
    ran.assert_completed(Some("stop"), "Hi").assert_usage(Some([5, 2, 7]));
    ran.assert_notes(&[Note::PayloadSkipped, Note::MissingSentinel]);
}

#[test]
fn a23_several_events_and_a_partial_one_in_one_read() {
    let body = [c("a"), c("b"), c("c"), c("d"), f("stop"), D.to_owned()].concat();
    let cut = body.match_indices("content").nth(3).unwrap().0 + 3;
    let (first, second) = body.split_at(cut);
    assert!(first.ends_with("{\"con"));
    assert_stopped(&chat_in_reads(&[first.as_bytes(), second.as_bytes()]).play(), "abcd");
    let (texts, outcome) = deliveries(Dialect::OpenAiChat, &[first.as_bytes(), second.as_bytes()]);
    assert_eq!(texts, [vec!["a", "b", "c"], vec!["d"]]);
    assert_eq!(outcome.unwrap().turn().text(), "abcd");
}
