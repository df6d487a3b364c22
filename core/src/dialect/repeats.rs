//! JSON objects that repeat a member.
//!
//! Some servers and proxies write a member twice, and the providers' own clients take the last one.
//! What serde derives refuses that, so such a document is read again here, the slow way.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::Error;
use serde_json::value::RawValue;

/// Whether reading failed because a member came twice
pub(super) fn are_cause_of(error: &Error) -> bool {
    error.is_data() && error.to_string().starts_with("duplicate field")
}

/// Reads `text` as one JSON document; of a member that comes twice, the last one counts
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    // The whole document is checked first, so that what is no JSON is located in it.
    T::deserialize(LastCounts(serde_json::from_str(text)?))
}

/// A value whose objects are read whole before any of their members is
struct LastCounts<'a>(&'a RawValue);

impl<'de> IntoDeserializer<'de, Error> for LastCounts<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for LastCounts<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.0.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text)?;
                visitor.visit_map(MapDeserializer::new(members.into_iter()))
            }
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(text)?;
                visitor.visit_seq(SeqDeserializer::new(elements.into_iter().map(LastCounts)))
            }
            _ => self.0.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.get() == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The members of an object, each name once
struct Members<'a>(Vec<(String, LastCounts<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            members.push((name, LastCounts(value)));
        }
        let mut seen = BTreeSet::new();
        let mut last: Vec<bool> = members.iter().rev().map(|(name, _)| seen.insert(name.as_str())).collect();
        members.retain(|_| last.pop().unwrap_or_default());
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dialect;
    use super::super::json::{self, JsonStr, Member};
    use super::super::testing::{malformed, play, play_unary};
    use super::*;

    #[test]
    fn the_last_of_a_repeated_member_counts_in_every_dialect() {
        let (chat, responses) = (Dialect::OpenAiChat, Dialect::OpenAiResponses);
        for (dialect, event) in [
            (chat, r#"{"id":"1","id":"1","choices":[{"delta":{"content":"a","content":"b"}}]}"#),
            (
                chat,
                r#"{"choices":[],"choices":[{"delta":null,"delta":{"role":"a","role":"b","content":"b"}}]}"#,
            ),
            (chat, r#"{"i\u0064":"1","id":"1","choices":[{"delta":{"content":"b"}}]}"#),
            (responses, r#"{"type":"x","type":"response.output_text.delta","delta":"a","delta":"b"}"#),
            (
                Dialect::Anthropic,
                r#"{"type":"content_block_delta","delta":7,"delta":{"type":"text_delta","text":"a","text":"b"}}"#,
            ),
            (
                Dialect::Gemini,
                r#"[{"candidates":[{"content":{"parts":[{"text":"a","text":"b"}]},"index":0,"index":0}]}]"#,
            ),
            (Dialect::Ollama, r#"{"message":{"content":"a"},"message":{"content":"\u0062"},"done":false}"#),
            (
                Dialect::Cohere,
                r#"{"type":"content-delta","delta":{"message":{"content":{"text":"a","text":"b"}}}}"#,
            ),
        ] {
            assert_eq!(play(dialect, &[event]).turn.text(), "b", "{event}");
        }
        let body = r#"{"id":"1","id":"2","choices":[{"message":{"content":"a","content":"b"}}]}"#;
        let unary = play_unary(chat, body).turn;
        assert_eq!((unary.text(), unary.id.as_deref()), ("b", Some("2")));
    }

    #[test]
    fn usage_and_errors_take_the_last_of_a_repeated_member() {
        let counted = r#"{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}"#;
        assert_eq!(play(Dialect::OpenAiChat, &[counted]).tokens(), Some([Some(2), Some(3), Some(5)]));
        let failed = r#"{"error":{"message":"a","message":"b","type":"t"}}"#;
        assert_eq!(play(Dialect::OpenAiChat, &[failed]).error(), (Some("t"), None, None, "b"));
    }

    #[test]
    fn a_repeated_member_excuses_nothing_else() {
        assert_eq!(
            malformed(Dialect::OpenAiChat, &[r#"{"id":"1","id":"1","choices":[}"#]),
            "not JSON, at line 1 column 31"
        );
        let misshapen = malformed(Dialect::OpenAiChat, &[r#"{"id":"1","id":"1","choices":{"a":1}}"#]);
        assert!(misshapen.starts_with("JSON of an unexpected shape"), "{misshapen}");
    }

    #[test]
    fn what_is_read_lies_in_the_text_as_ever() {
        #[derive(Deserialize)]
        struct Event<'a> {
            #[serde(borrow)]
            delta: Member<Delta<'a>>,
        }
        #[derive(Default, Deserialize)]
        struct Delta<'a> {
            #[serde(borrow)]
            text: JsonStr<'a>,
            raw: Option<&'a RawValue>,
            none: Option<u32>,
        }
        let text = r#"{"delta":{"text":"a","text":"b","raw": {"x":1,"x":2},"none":null,"other":[1,{}]}}"#;
        let delta = json::read::<Event<'_>>(text).unwrap().delta.object().unwrap();
        assert_eq!((delta.text.plain(), delta.raw.map(RawValue::get)), (Some("b"), Some(r#"{"x":1,"x":2}"#)));
        assert_eq!(
            (delta.none, text.as_bytes().as_ptr_range().contains(&delta.text.escaped().as_ptr())),
            (None, true)
        );
    }
}
