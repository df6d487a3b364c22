//! What servers add to the members, or leave out of them.

use super::super::super::Dialect::OpenAiChat as CHAT;
use super::super::super::Progress;
use super::super::super::testing::play;

#[test]
fn sounds_and_pictures_and_signed_reasoning_pass_as_they_came() {
    for member in [
        r#""audio":{"id":"a","data":"eA=="}"#,
        r#""images":[{"type":"image_url","image_url":{"url":"u"}}]"#,
        r#""reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","signature":"s"}]"#,
        r#""content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"u"}}]"#,
    ] {
        for kind in ["delta", "message"] {
            let data = format!(r#"{{"id":"c","choices":[{{"{kind}":{{{member}}}}}]}}"#);
            let played = play(CHAT, &[&data]);
            assert_eq!((played.unknown, played.last()), (1, Progress::Open), "{data}");
            let choice = &played.turn.choices[0];
            assert!(
                ["", "Hm"].contains(&&*choice.reasoning) && ["", "Hi"].contains(&&*choice.text),
                "{data}"
            );
        }
    }
    let nothing = r#"{"id":"c","choices":[{"delta":{"audio":null,"images":[],"reasoning_details":[]}}]}"#;
    assert_eq!(play(CHAT, &[nothing]).unknown, 0);
}

#[test]
fn text_and_messages_count_beside_an_empty_delta() {
    let played = play(
        CHAT,
        &[
            r#"{"choices":[{"text":"a","delta":{}}]}"#,
            r#"{"choices":[{"text":"b","delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"text":"c","delta":{"content":"c"}}]}"#,
        ],
    );
    assert_eq!(played.turn.text(), "abc");
    let whole = r#"{"choices":[{"delta":{},"message":{"content":"Hi"}}]}"#;
    assert_eq!(play(CHAT, &[whole, whole]).turn.text(), "Hi");
}

/// Some servers send neither ids nor numbers that differ
#[test]
fn another_name_after_arguments_opens_another_call() {
    let call = |members: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{{members}}}]}}}}]}}"#);
    for number in [r#""index":0,"#, ""] {
        let piece = |name: &str, arguments: &str| {
            call(&format!(r#"{number}"function":{{"name":"{name}","arguments":"{arguments}"}}"#))
        };
        let events =
            [piece("f", r#"{\"x\""#), piece("", ":1}"), piece("g", ""), piece("g", "{"), piece("g", "}")];
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        let played = play(CHAT, &events);
        assert_eq!(played.calls(), [["", "f", r#"{"x":1}"#], ["", "g", "{}"]], "{number}");
        // Before the first argument the second name may be a correction, and the first one stands.
        let named_twice = [piece("f", ""), piece("g", "{}")];
        assert_eq!(play(CHAT, &[&named_twice[0], &named_twice[1]]).calls(), [["", "f", "{}"]]);
    }
    // The same id is the same call, whatever name it has.
    let same = |name: &str| call(&format!(r#""id":"t","function":{{"name":"{name}","arguments":"1"}}"#));
    assert_eq!(play(CHAT, &[&same("f"), &same("g")]).calls(), [["t", "f", "11"]]);
}
