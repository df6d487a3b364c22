use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::framing::Framing;
use crate::framing::testing::{self, Told, body_in_reads, reads};

const LIMIT: usize = 1 << 20;

fn told(body: &[u8]) -> Told {
    testing::told(Framing::JsonArray, LIMIT, body)
}

fn is_whole(body: &[u8]) -> bool {
    let mut framer = Framer::new(LIMIT);
    let mut at = 0;
    while let (consumed, Some(_)) = framer.next(&body[at..]).unwrap() {
        at += consumed;
    }
    framer.is_whole()
}

const G07: &str = "[{\n  \"candidates\": [ {\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"H}],{\\\"i\"}]}}]\n}\n,\r\n{\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}]}\n]";

#[test]
fn g07_elements_come_as_they_close_wherever_the_array_is_cut() {
    let told = told(G07.as_bytes());
    let events = told.events();
    assert_eq!(events.len(), 2);
    let first: Value = serde_json::from_str(events[0]).unwrap();
    assert_eq!(first["candidates"][0]["content"]["parts"][0]["text"], "H}],{\"i");
    assert_eq!(events[1], "{\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}]}");
    assert!(is_whole(G07.as_bytes()));

    // Each with its closing brace, not with the comma or bracket behind it
    let mut framer = Framer::new(LIMIT);
    let mut closed_at = Vec::new();
    for (at, byte) in G07.bytes().enumerate() {
        if framer.next(&[byte]).unwrap().1.is_some() {
            closed_at.push(at);
        }
    }
    assert_eq!(closed_at, [G07.find("\n,").unwrap() - 1, G07.len() - 3]);
}

#[test]
fn g07_a_cut_array_gives_what_closed_and_no_tail() {
    let first_end = G07.find("\n,").unwrap();
    for cut in 0..G07.len() {
        let told = testing::read(Framing::JsonArray, LIMIT, [&G07.as_bytes()[..cut]]);
        let count = usize::from(cut >= first_end) + usize::from(cut >= G07.len() - 2);
        assert_eq!((told.events().len(), is_whole(&G07.as_bytes()[..cut])), (count, false), "cut at {cut}");
    }
}

#[test]
fn what_lies_whole_in_the_input_is_not_copied() {
    let input = b"[ {\"a\":1} , \"b\",3";
    let mut framer = Framer::new(LIMIT);
    let element = |start, end| Some(Event::unnamed(Located::Input { start, end }));
    assert_eq!(framer.next(input).unwrap(), (9, element(2, 9)));
    assert_eq!(framer.next(&input[9..]).unwrap(), (6, element(3, 6)));
    assert_eq!(framer.kept.capacity(), 0);
    assert_eq!(framer.next(&input[15..]).unwrap(), (2, None));
    assert_eq!(framer.next(b"]").unwrap(), (0, Some(Event::unnamed(Located::Kept { start: 0, end: 1 }))));
    assert_eq!(framer.next(b"]").unwrap(), (1, None));
    assert_eq!((framer.kept.capacity(), framer.is_whole()), (0, true));
}

#[test]
fn strings_and_escapes_hide_brackets() {
    let elements = [r#"{"a]":"}\"{"}"#, r#"["\\",[]]"#, r#""],\u005d\\""#, r#"{"\\":{"\\\"":[{}]}}"#];
    assert_eq!(told(format!("[{}]", elements.join(",")).as_bytes()).events(), elements);
}

#[test]
fn elements_that_are_no_objects_come_as_they_are() {
    assert_eq!(told(b"[]").events(), [""; 0]);
    assert_eq!(told(b" [ ] ").events(), [""; 0]);
    assert_eq!(
        told(b"[-1.5e+3 ,true,null\n,\"\",[[]], nul ,{]]").events(),
        ["-1.5e+3", "true", "null", "\"\"", "[[]]", "nul", "{]"]
    );
    assert_eq!(told(b"[\"\xFF\"]").events, [b"\"\xFF\""]);
}

#[test]
fn one_object_in_place_of_the_array_is_the_one_element() {
    let body = b"\xEF\xBB\xBF\r\n{\"error\": [{\"code\":429}]}\n\n";
    assert_eq!(told(body).events(), ["{\"error\": [{\"code\":429}]}"]);
    assert!(is_whole(body));
    assert!(!is_whole(b"{\"error\": [{\"code\":429}]"));
}

#[test]
fn a_broken_array_gives_what_came_before() {
    const DUE: &str = "no value where an element was due";
    const COMMA: &str = "no comma after an element";
    const END: &str = "something follows its end";
    for (body, count, reason) in [
        (&b"\"text\""[..], 0, NO_ARRAY),
        (b"data: {}\n\n", 0, NO_ARRAY),
        (b"<html>", 0, NO_ARRAY),
        (b"\xEF\xBB[]", 0, NO_ARRAY),
        (b"[,{}]", 0, DUE),
        (b"[{},]", 1, DUE),
        (b"[{},,{}]", 1, DUE),
        (b"[:]", 0, DUE),
        (b"[}", 0, DUE),
        (b"[{}{}]", 1, COMMA),
        (b"[{}\n{}]", 1, COMMA),
        (b"[1 2]", 1, COMMA),
        (b"[1\"\"]", 1, COMMA),
        (b"[{}: {}]", 1, COMMA),
        (b"[{}}", 1, COMMA),
        (b"[{}]]", 1, END),
        (b"[{}],", 1, END),
        (b"[{}][{}]", 1, END),
        (b"{}{}", 1, END),
        (b"{},", 1, END),
    ] {
        let told = told(body);
        let text = String::from_utf8_lossy(body);
        assert_eq!(told.error, Some(FramingError::Broken(reason)), "{text}");
        assert_eq!(told.events.len(), count, "{text}");
    }
    assert_eq!(
        FramingError::Broken(NO_ARRAY).to_string(),
        "not a JSON array: the body begins with neither [ nor {"
    );
}

#[test]
fn a_limit_is_reached_exactly() {
    let error = Some(FramingError::TooLarge(TooLarge { limit: 4 }));
    for (body, count, failed) in [
        (&b"[{12},\"45\",1234,[6]]"[..], 4, false),
        (b"[1         ,        2]", 2, false),
        (b"[1,{123}]", 1, true),
        (b"[1,12345]", 1, true),
        (b"[1,12345", 1, true),
        (b"[1,\"123\"]", 1, true),
        (b"{123}", 0, true),
    ] {
        let told = testing::told(Framing::JsonArray, 4, body);
        assert_eq!((told.events.len(), told.error), (count, error.filter(|_| failed)), "{body:?}");
    }
}

#[test]
fn a19_an_element_that_never_ends() {
    let limit = 1 << 20;
    for (open, filling) in [("[", b'['), ("[\"", b'x'), ("[", b'1')] {
        let mut framer = Framer::new(limit);
        assert_eq!(framer.next(open.as_bytes()).unwrap(), (open.len(), None));
        let piece = vec![filling; 64 << 10];
        for _ in 0..15 {
            assert_eq!(framer.next(&piece).unwrap(), (piece.len(), None));
            assert!(framer.kept.capacity() <= limit);
        }
        assert_eq!(framer.next(&[piece, vec![filling]].concat()), Err(TooLarge { limit }.into()));
        assert_eq!(framer.kept.capacity(), 0);
        assert!(!framer.is_whole());
    }
}

#[test]
fn debug_tells_sizes_and_no_content() {
    let mut framer = Framer::new(8);
    framer.next(b"[\"secret").unwrap();
    assert_eq!(format!("{framer:?}"), "Framer { max_event_bytes: 8, kept: 7, failed: None, .. }");
}

/// The elements of `body` as serde_json tells them, if it is an array
fn oracle(body: &[u8]) -> Option<Vec<String>> {
    let elements: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
    Some(elements.iter().map(|element| element.get().to_owned()).collect())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[\\[\\]{}\",:\\\\a\u{e9}\u{2028} \n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |value| {
        prop_oneof![
            proptest::collection::vec(value.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[\\[\\]{}\",:\\\\a]{0,4}", value), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Arrays that are none, almost
    #[test]
    fn agrees_with_serde_json_about_the_whole((body, cuts) in body_in_reads(prop_oneof![
        6 => Just(&b"["[..]),
        6 => Just(&b"]"[..]),
        3 => Just(&b"{"[..]),
        3 => Just(&b"}"[..]),
        8 => Just(&b","[..]),
        3 => Just(&b"\""[..]),
        2 => Just(&b"\\"[..]),
        2 => Just(&b"\"k\":"[..]),
        2 => Just(&b"\r\n"[..]),
        4 => Just(&b"12"[..]),
        2 => Just(&b"null"[..]),
        4 => Just(&b"{\"a\":[1]}"[..]),
        2 => Just(&b",{}"[..]),
    ]), brackets in any::<bool>()) {
        let body = if brackets { [b"[", &body[..], b"]"].concat() } else { body };
        let cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(body.len())).collect();
        let told = told(&body);
        prop_assert_eq!(&testing::read(Framing::JsonArray, LIMIT, reads(&body, &cuts)), &told);
        let first = body.trim_ascii().first();
        let reads_all = told.error.is_none() && is_whole(&body)
            && told.events.iter().all(|event| serde_json::from_slice::<&RawValue>(event).is_ok());
        match oracle(&body) {
            Some(elements) => {
                prop_assert!(reads_all);
                prop_assert_eq!(told.events(), elements);
            }
            // Where it is no array, nobody can take it for one that was read to its end.
            None if first == Some(&b'[') => prop_assert!(!reads_all),
            None => {}
        }
    }

    #[test]
    fn any_array_comes_out_as_it_is(
        values in proptest::collection::vec(json(), 0..5),
        pretty in any::<bool>(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let body = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
        let body = body.unwrap();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        let read = testing::read(Framing::JsonArray, LIMIT, reads(body.as_bytes(), &cuts));
        prop_assert_eq!(read.events(), oracle(body.as_bytes()).unwrap());
        prop_assert!(is_whole(body.as_bytes()));
    }
}
