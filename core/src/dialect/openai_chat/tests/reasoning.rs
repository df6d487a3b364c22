//! Where servers give their reasoning, which is where they want it back.

use super::*;
use crate::outcome::ReasoningMember::{self, Reasoning, ReasoningContent};

fn member(deltas: &[&str]) -> Option<ReasoningMember> {
    let chunk = |delta: &&str| format!(r#"{{"choices":[{{"delta":{{{delta}}}}}]}}"#);
    let chunks: Vec<_> = deltas.iter().map(chunk).collect();
    play(CHAT, &chunks.iter().map(String::as_str).collect::<Vec<_>>()).turn.reasoning_member
}

#[test]
fn the_member_that_reasoning_comes_in_is_known() {
    for (deltas, expected) in [
        (&[r#""content":"Hi""#][..], None),
        (&[r#""content":"Hi","reasoning_content":null,"reasoning":null"#], None),
        (&[r#""reasoning_content":"Hm""#], Some(ReasoningContent)),
        (&[r#""reasoning_content":"""#, r#""content":"Hi""#], Some(ReasoningContent)),
        (&[r#""reasoning":"Hm""#, r#""reasoning_content":"Hm""#], Some(Reasoning)),
        (&[r#""reasoning_content":"""#, r#""reasoning":"Hm""#], Some(Reasoning)),
        (&[r#""reasoning":"","reasoning_content":"Hm""#], Some(ReasoningContent)),
    ] {
        assert_eq!(member(deltas), expected, "{deltas:?}");
    }
    let whole = r#"{"choices":[{"message":{"content":"Hi","reasoning":"Hm"},"finish_reason":"stop"}]}"#;
    assert_eq!(play_unary(CHAT, whole).turn.reasoning_member, Some(Reasoning));
}
