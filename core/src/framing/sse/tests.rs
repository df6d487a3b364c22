use super::*;

const LIMIT: usize = 1 << 20;

/// Name, data and last event id at dispatch; the name of an `error` line is "(error)"
type Seen = (String, String, String);

fn seen(framer: &Framer, input: &[u8], event: Event) -> Seen {
    let text = |located| String::from_utf8(framer.bytes(input, located).to_vec()).unwrap();
    let name = match (event.field, event.name) {
        (Field::Error, _) => "(error)".to_owned(),
        (Field::Bare, _) => "(bare)".to_owned(),
        (Field::Data, None) => "message".to_owned(),
        (Field::Data, Some(name)) => text(name),
    };
    (name, text(event.data), String::from_utf8(framer.last_event_id().to_vec()).unwrap())
}

fn feed(framer: &mut Framer, mut input: &[u8], events: &mut Vec<Seen>) -> Result<(), TooLarge> {
    loop {
        let (consumed, event) = framer.next(input)?;
        match event {
            Some(event) => events.push(seen(framer, input, event)),
            None => {
                assert_eq!(consumed, input.len());
                return Ok(());
            }
        }
        input = &input[consumed..];
    }
}

fn read(reads: &[&[u8]]) -> (Vec<Seen>, Framer) {
    let mut framer = Framer::new(LIMIT);
    let mut events = Vec::new();
    for input in reads {
        feed(&mut framer, input, &mut events).unwrap();
    }
    (events, framer)
}

/// The events of `body`, which must be the same whole, byte by byte and at every cut in two
fn events(body: &[u8]) -> Vec<Seen> {
    let whole = read(&[body]).0;
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read(&bytes).0, whole, "byte by byte");
    for cut in 0..=body.len() {
        assert_eq!(read(&[&body[..cut], &body[cut..]]).0, whole, "cut at {cut}");
    }
    whole
}

fn messages(body: &[u8]) -> Vec<String> {
    let named = |(name, data, _): Seen| {
        assert_eq!(name, "message");
        data
    };
    events(body).into_iter().map(named).collect()
}

#[test]
fn what_lies_whole_in_the_input_is_not_copied() {
    let input = b"event: delta\ndata: {\"a\":1}\n\n: ping\n\ndata:b\r\n\r\n";
    let mut framer = Framer::new(LIMIT);
    let (consumed, event) = framer.next(input).unwrap();
    let data = Located::Input { start: 19, end: 26 };
    let name = Some(Located::Input { start: 7, end: 12 });
    assert_eq!((consumed, event), (28, Some(Event { data, name, field: Field::Data })));
    let (consumed, event) = framer.next(&input[28..]).unwrap();
    assert_eq!((consumed, event.unwrap().data), (18, Located::Input { start: 13, end: 14 }));
    assert_eq!(framer.kept.capacity(), 0);
}

#[test]
fn an_event_without_a_name_of_any_length_is_a_message() {
    assert_eq!(
        messages(b"data: 1\n\nevent: \ndata: 2\n\nevent:\ndata: 3\n\nevent\ndata\n\n"),
        ["1", "2", "3", ""]
    );
    assert_eq!(messages(b"data: 1\n\nevent: x\nevent:\ndata: 2\n\nevent: x\n\ndata: 3\n\n"), ["1", "2", "3"]);
}

#[test]
fn between_events_no_buffer_is_held() {
    let (events, framer) = read(&[b"event: lo", b"ng\ndata: a", b"b\ndata: c\n", b"\n"]);
    assert_eq!(events, [("long".into(), "ab\nc".into(), String::new())]);
    assert_eq!((framer.kept.capacity(), framer.kept_name.capacity()), (0, 0));
}

#[test]
fn a04_crlf_line_ends() {
    assert_eq!(messages(b"data: {}\r\n\r\ndata: [DONE]\r\n\r\n"), ["{}", "[DONE]"]);
    // Each event comes as soon as its blank line is in.
    let (before, mut framer) = read(&[b"data: {}\r\n\r"]);
    assert_eq!(before.len(), 1);
    assert_eq!(framer.next(b"\n").unwrap(), (1, None));
}

#[test]
fn a06_crlf_pair_cut_between_reads() {
    let (events, _) = read(&[b"data: A\r\n", b"data: B\r", b"\n", b"data: C\r\n", b"\r\n"]);
    assert_eq!(events, [("message".into(), "A\nB\nC".into(), String::new())]);
}

#[test]
fn a08_byte_order_mark_cut_across_reads() {
    let (events, _) = read(&[b"", b"\xEF", b"\xBB\xBF", "data: 1st \u{FEFF}\n\n".as_bytes()]);
    assert_eq!(events, [("message".into(), "1st \u{FEFF}".into(), String::new())]);
    assert_eq!(
        messages(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"),
        ["a"],
        "only one, only at the start"
    );
    assert_eq!(messages(b"\xEF\xBBdata: a\n\ndata: b\n\n"), ["b"], "half a mark is a part of its line");
}

#[test]
fn a10_comment_keep_alives() {
    let body = b": OPENROUTER PROCESSING\n\n:\n\n: OPENROUTER PROCESSING\n\ndata: Hi\n\n";
    assert_eq!(messages(body), ["Hi"]);
}

#[test]
fn a11_control_only_blocks() {
    let body = b"retry: 3000\n\nid: 7\ndata: Hi\n\n: ping\n\nid: 8\n\ndata: stop\n\ndata: [DONE]\n\n";
    let message = |data: &str, id: &str| ("message".to_owned(), data.to_owned(), id.to_owned());
    assert_eq!(events(body), [message("Hi", "7"), message("stop", "8"), message("[DONE]", "8")]);
    assert_eq!(read(&[body]).1.retry(), Some(Duration::from_secs(3)));
}

#[test]
fn a13_space_after_the_colon() {
    let body = b"data:{}\n\nevent:message\ndata:  {}\n\ndata:[DONE]\n\n";
    assert_eq!(messages(body), ["{}", " {}", "[DONE]"]);
}

#[test]
fn a14_one_event_over_several_lines() {
    let body = b"event: error\ndata: {\"type\":\"error\",\ndata: \"error\":{\"type\":\"api_error\",\ndata:  \"message\":\"boom\"}}\n\n";
    let data = "{\"type\":\"error\",\n\"error\":{\"type\":\"api_error\",\n \"message\":\"boom\"}}";
    assert_eq!(events(body), [("error".into(), data.into(), String::new())]);
}

#[test]
fn a17_only_cr_and_lf_end_a_line() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f";
    assert_eq!(messages(format!("data: {text}\n\n").as_bytes()), [text]);
}

#[test]
fn a19_a_line_that_never_ends() {
    let limit = 1 << 20;
    let mut framer = Framer::new(limit);
    let piece = vec![b'x'; 64 << 10];
    assert_eq!(framer.next(b"data: ").unwrap(), (6, None));
    for _ in 0..15 {
        assert_eq!(framer.next(&piece).unwrap(), (piece.len(), None));
        assert!(framer.kept.capacity() <= limit);
    }
    assert_eq!(framer.next(&piece), Err(TooLarge { limit }));
    assert_eq!(framer.kept.capacity(), 0);
    assert_eq!(framer.next(b"\n\n"), Err(TooLarge { limit }), "it stays failed");
    assert_eq!(framer.tail(), None);
}

#[test]
fn a19_many_short_lines_in_one_event() {
    let mut body = b"data: 1\n\n".to_vec();
    body.extend(b"data: 12\n".repeat(10));
    // Held after n lines: 3n - 1 bytes. The ninth line of 8 bytes ends at 23 + 8 = 31.
    let outcome = |reads: &[&[u8]]| {
        let mut framer = Framer::new(30);
        let mut events = Vec::new();
        let error = reads.iter().find_map(|input| feed(&mut framer, input, &mut events).err());
        (events.len(), error)
    };
    let expected = (1, Some(TooLarge { limit: 30 }));
    assert_eq!(outcome(&[&body[..9 + 8 * 9], b"\n"]), (2, None), "eight lines fit");
    assert_eq!(outcome(&[&body]), expected);
    assert_eq!(outcome(&body.chunks(1).collect::<Vec<_>>()), expected);
    for cut in 0..body.len() {
        assert_eq!(outcome(&[&body[..cut], &body[cut..]]), expected, "cut at {cut}");
    }
}

#[test]
fn a_limit_is_reached_exactly() {
    for (body, fits) in [
        (&b"data: 12\n\n"[..], 8),
        (b"event: 34\ndata: 12\n\n", 10),
        (b"data: 12\nevent: 34\n\n", 11),
        (b"id: 12345\ndata: 12\n\n", 13),
        (b": a comment\n\n", 11),
        (b"event: 3456789\ndata: 1\n\n", 14),
    ] {
        let after_an_event = [b"data:\n\n", body].concat();
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        for reads in [&[body][..], &[&after_an_event], &bytes] {
            let run = |limit| {
                let mut framer = Framer::new(limit);
                reads.iter().try_for_each(|input| feed(&mut framer, input, &mut Vec::new()))
            };
            assert_eq!(run(fits), Ok(()), "{reads:?}");
            assert_eq!(run(fits - 1), Err(TooLarge { limit: fits - 1 }), "{reads:?}");
        }
    }
}

#[test]
fn a23_several_events_and_a_partial_one_in_a_read() {
    let (before, mut framer) = read(&[b"data: a\n\ndata: b\n\ndata: c\n\ndata: {\"con"]);
    assert_eq!(before.iter().map(|(_, data, _)| data.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let mut after = Vec::new();
    feed(&mut framer, b"tent\"}\n\ndata: stop\n\n", &mut after).unwrap();
    assert_eq!(after.iter().map(|(_, data, _)| data.as_str()).collect::<Vec<_>>(), ["{\"content\"}", "stop"]);
}

#[test]
fn a03_bytes_that_are_no_utf8_come_out_as_they_are() {
    let input = b"data: a\xFFb\n\n";
    let mut framer = Framer::new(LIMIT);
    let (_, event) = framer.next(input).unwrap();
    assert_eq!(framer.bytes(input, event.unwrap().data), b"a\xFFb");
}

#[test]
fn h06_an_error_line_is_seen_and_changes_nothing_else() {
    let body = b"data: 1\nevent: x\nerror: {\"code\":400}\ndata: 2\n\nerror:boom\n\ndata: [DONE]\n\n";
    let expected = [("(error)", "{\"code\":400}"), ("x", "1\n2"), ("(error)", "boom"), ("message", "[DONE]")];
    let seen = events(body);
    assert_eq!(seen.iter().map(|(name, data, _)| (&**name, &**data)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_bare_line_of_json_is_seen_and_changes_nothing_else() {
    let body = b"data: 1\nevent: x\n{\"error\": 1}\ndata: 2\n\n [\nx{\n";
    let expected = [("(bare)", "{\"error\": 1}"), ("x", "1\n2")];
    let seen = events(body);
    assert_eq!(seen.iter().map(|(name, data, _)| (&**name, &**data)).collect::<Vec<_>>(), expected);
}

/// Gemini writes an error so into a stream that has begun
#[test]
fn a_bare_object_of_several_lines_is_seen_once_it_ends() {
    let object = "{\n  \"error\": {\n    \"}\": [1]\n  }\n}";
    let body = format!("data: 1\n{object}\r\ndata: 2\n\n");
    let expected = format!("{object}\n");
    let names = |body: &str| {
        let seen = events(body.as_bytes()).into_iter();
        seen.map(|(name, data, _)| (name, data)).collect::<Vec<_>>()
    };
    assert_eq!(names(&body), [("(bare)".into(), expected.clone()), ("message".into(), "1\n2".into())]);
    // Whatever else stands in it, it was no object.
    for other in ["\n", ": ping\n", "id: 1\n", "event: x\n", "retry: 1\n", "data: 1\n\n", "error: x\n"] {
        let body = object.replacen('\n', &format!("\n{other}"), 1) + "\n\n";
        assert!(names(&body).iter().all(|(name, _)| name != "(bare)"), "{body:?}");
    }
    // Larger than an event may be, it is passed over, and the stream goes on.
    let held = expected.len();
    for (limit, is_seen) in [(held, true), (held - 1, false)] {
        let body = format!("{object}\ndata: 1\n\n");
        let reads: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        for reads in [&[body.as_bytes()][..], &reads] {
            let (mut framer, mut seen) = (Framer::new(limit), Vec::new());
            for input in reads {
                feed(&mut framer, input, &mut seen).unwrap();
            }
            let names: Vec<_> = seen.iter().map(|(name, ..)| &**name).collect();
            assert_eq!(names, if is_seen { &["(bare)", "message"][..] } else { &["message"] });
        }
    }
}

#[test]
fn the_tail_is_what_the_blank_line_would_have_ended() {
    for (body, tail) in [
        (&b"data: a\n\n"[..], None),
        (b"data: a\n\nevent: x\n", None),
        (b": ping", None),
        (b"id: 9", None),
        (b"\xEF\xBB", None),
        (b"data: a", Some(("message", "a"))),
        (b"data: a\n", Some(("message", "a"))),
        (b"data: a\r", Some(("message", "a"))),
        (b"event: x\ndata: a\ndata: b", Some(("x", "a\nb"))),
        (b"data: a\nevent: x", Some(("x", "a"))),
        (b"data: a\nid: 9\nretry: 10", Some(("message", "a"))),
        (b"data: a\n: pi", Some(("message", "a"))),
        (b"error: {}", Some(("(error)", "{}"))),
        (b"{\"a\": 1}", Some(("(bare)", "{\"a\": 1}"))),
        (b"{\n\"a\": 1\n}", Some(("(bare)", "{\n\"a\": 1\n}\n"))),
        (b"{\n\"a\": 1\n", Some(("(bare)", "{\n\"a\": 1\n"))),
    ] {
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        for reads in [&[body][..], &bytes] {
            let (_, mut framer) = read(reads);
            let event = framer.tail();
            let event = event.map(|event| seen(&framer, &[], event));
            let expected = tail.map(|(name, data)| (name.into(), data.into(), String::new()));
            assert_eq!(event, expected, "{:?}", String::from_utf8_lossy(body));
            assert_eq!(framer.retry(), None);
            assert_eq!(framer.tail(), None, "a tail comes once");
        }
    }
}

#[test]
fn an_error_line_comes_before_the_tail_it_stands_in() {
    let (_, mut framer) = read(&[b"data: a\nerror: b"]);
    let first = framer.tail().unwrap();
    assert_eq!(seen(&framer, &[], first).1, "b");
    let second = framer.tail().unwrap();
    assert_eq!(seen(&framer, &[], second).1, "a");
    assert_eq!(framer.tail(), None);
}

#[test]
fn debug_tells_sizes_and_no_content() {
    let (_, framer) = read(&[b"data: secret"]);
    assert_eq!(format!("{framer:?}"), "Framer { max_event_bytes: 1048576, kept: 12, failed: false, .. }");
}
