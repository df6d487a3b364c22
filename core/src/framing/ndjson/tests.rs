use proptest::prelude::*;

use super::*;
use crate::framing::testing::{self, Told, body_in_reads, reads};
use crate::framing::{Framing, FramingError};

const LIMIT: usize = 1 << 20;

fn told(body: &[u8]) -> Told {
    testing::told(Framing::Ndjson, LIMIT, body)
}

#[test]
fn h01_a_line_cut_between_reads() {
    let first =
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\u{4F60}\"},\"done\":false}";
    let last = "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1}";
    // Every cut is tried, the corpus' own inside "content" and inside the character too.
    assert_eq!(told(format!("{first}\n{last}\n").as_bytes()).events(), [first, last]);
}

#[test]
fn h02_several_lines_in_a_read_crlf_and_blank_lines() {
    let a = "{\"message\":{\"content\":\"a\"},\"done\":false}";
    let b = "{\"message\":{\"content\":\"b\"},\"done\":false}";
    let c = "{\"message\":{\"content\":\"c\"},\"done\":true,\"done_reason\":\"stop\"}";
    assert_eq!(told(format!("{a}\n{b}\r\n\n{c}\n").as_bytes()).events(), [a, b, c]);
    assert_eq!(told(b"\n\r\n \t\r\n1\r\n\r\r\n 2 \n").events(), ["1", " 2 "]);
    assert_eq!(told(b"").events(), [""; 0]);
}

#[test]
fn what_lies_whole_in_the_input_is_not_copied() {
    let input = b"\n{\"a\":1}\r\n{}\n{\"b";
    let mut framer = Framer::new(LIMIT);
    assert_eq!(framer.next(b"\xEF\xBB\xBF").unwrap(), (3, None));
    let line = |start, end| Some(Event::unnamed(Located::Input { start, end }));
    assert_eq!(framer.next(input).unwrap(), (10, line(1, 8)));
    assert_eq!(framer.next(&input[10..]).unwrap(), (3, line(0, 2)));
    assert_eq!(framer.kept.capacity(), 0);
}

#[test]
fn between_lines_no_buffer_is_held() {
    let mut framer = Framer::new(LIMIT);
    assert_eq!(framer.next(b"{\"a\"").unwrap(), (4, None));
    let (consumed, event) = framer.next(b":1}\n").unwrap();
    assert_eq!((consumed, event), (4, Some(Event::unnamed(Located::Kept { start: 0, end: 7 }))));
    assert_eq!(framer.next(b"").unwrap(), (0, None));
    assert_eq!(framer.kept.capacity(), 0);
}

#[test]
fn only_lf_ends_a_line() {
    let line = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\rg";
    assert_eq!(told(format!("{line}\r\n").as_bytes()).events(), [line]);
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_start_only() {
    assert_eq!(told("\u{FEFF}1\n\u{FEFF}2\n".as_bytes()).events(), ["1", "\u{FEFF}2"]);
    assert_eq!(told(b"\xEF\xBB1\n2\n").events, [&b"\xEF\xBB1"[..], b"2"]);
}

#[test]
fn bytes_that_are_no_utf8_come_out_as_they_are() {
    assert_eq!(told(b"\xFF\xC0\n").events, [b"\xFF\xC0"]);
}

#[test]
fn the_tail_is_the_line_without_its_lf() {
    for (body, tail) in [
        (&b"1\n"[..], None),
        (b"1\n \t", None),
        (b"1\n\r", None),
        (b"1\n{\"done\":true}", Some("{\"done\":true}")),
        (b"1\n{\"done\":true}\r", Some("{\"done\":true}")),
        (b"1\n{\"done", Some("{\"done")),
    ] {
        let told = told(body);
        assert_eq!((told.texts(), told.error), (vec!["1"], None));
        assert_eq!(told.tail.as_deref(), tail.map(str::as_bytes));
    }
}

#[test]
fn a_limit_is_reached_exactly() {
    let error = Some(FramingError::TooLarge(TooLarge { limit: 4 }));
    for (body, count, failed) in [
        (&b"1234\n5678"[..], 1, false),
        (b"123\r\n5\n", 2, false),
        (b"1\n12345\n", 1, true),
        (b"1\n1234\r\n", 1, true),
        (b"1\n     ", 1, true),
        (b"1\n     \n", 1, true),
    ] {
        let told = testing::told(Framing::Ndjson, 4, body);
        assert_eq!((told.events.len(), told.error), (count, error.filter(|_| failed)), "{body:?}");
    }
}

#[test]
fn a19_a_line_that_never_ends() {
    let limit = 1 << 20;
    let mut framer = Framer::new(limit);
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..16 {
        assert_eq!(framer.next(&piece).unwrap(), (piece.len(), None));
        assert!(framer.kept.capacity() <= limit);
    }
    assert_eq!(framer.next(b"x"), Err(TooLarge { limit }));
    assert_eq!(framer.kept.capacity(), 0);
}

#[test]
fn debug_tells_sizes_and_no_content() {
    let mut framer = Framer::new(8);
    framer.next(b"secret").unwrap();
    assert_eq!(format!("{framer:?}"), "Framer { max_event_bytes: 8, kept: 6, failed: false, .. }");
}

/// The lines of `body` by the standard library's means
fn oracle(body: &[u8]) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let tail = lines.pop();
    let clean = |line: &[u8]| {
        (!line.trim_ascii().is_empty()).then(|| line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    };
    (lines.into_iter().filter_map(clean).collect(), tail.and_then(clean))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_lines_of_the_whole((body, cuts) in body_in_reads(prop_oneof![
        4 => Just(&b"\n"[..]),
        2 => Just(&b"\r\n"[..]),
        1 => Just(&b"\r"[..]),
        1 => Just(&b" "[..]),
        1 => Just(&b"\xEF\xBB\xBF"[..]),
        1 => Just(&b"\xEF"[..]),
        1 => Just("\u{2028}\u{4F60}".as_bytes()),
        4 => Just(&b"{\"a\":\"b\"}"[..]),
        1 => Just(&b"{}\n"[..]),
    ])) {
        let (events, tail) = oracle(&body);
        // Half a mark at the very end may still become a whole one.
        prop_assume!(!b"\xEF\xBB\xBF".starts_with(&body) || body.is_empty() || body.len() == 3);
        let expected = Told { events, tail, error: None };
        prop_assert_eq!(&told(&body), &expected);
        prop_assert_eq!(testing::read(Framing::Ndjson, LIMIT, reads(&body, &cuts)), expected);
    }
}
