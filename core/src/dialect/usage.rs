//! What a provider counted, whatever it calls its counters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::JsonStr;
use crate::outcome::Usage;

/// Reads a usage object; `None` where it is no object, or an empty one
pub(super) fn read(raw: &str) -> Option<Usage> {
    // Some servers send the counters under both of OpenAI's names, so they cannot be aliases.
    let counters = serde_json::from_str::<Counters<'_>>(raw).ok()?;
    let first = |names: &[JsonStr<'_>]| names.iter().find_map(|name| name.number());
    let usage = Usage {
        input_tokens: first(&[counters.prompt_tokens, counters.input_tokens, counters.prompt_token_count]),
        output_tokens: first(&[
            counters.completion_tokens,
            counters.output_tokens,
            counters.candidates_token_count,
        ]),
        total_tokens: first(&[counters.total_tokens, counters.total_token_count]),
        raw: raw.to_owned(),
    };
    is_report(raw).then_some(usage)
}

/// Joins two usage objects: members of the later one replace those of the earlier, null ones do not
///
/// Anthropic reports in `message_start` and again, with fewer members, in `message_delta`.
pub(super) fn merge(earlier: &str, later: &str) -> String {
    let members = |raw| serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw).unwrap_or_default();
    let mut merged = members(earlier);
    for (name, value) in members(later) {
        if value.get() != "null" || !merged.contains_key(&name) {
            merged.insert(name, value);
        }
    }
    serde_json::to_string(&merged).unwrap_or_else(|_| later.to_owned())
}

/// Whether it is an object with anything in it
fn is_report(raw: &str) -> bool {
    let members = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    members.is_some_and(|members| !members.trim_ascii().is_empty())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counters<'a> {
    #[serde(borrow)]
    prompt_tokens: JsonStr<'a>,
    input_tokens: JsonStr<'a>,
    #[serde(rename = "promptTokenCount")]
    prompt_token_count: JsonStr<'a>,
    completion_tokens: JsonStr<'a>,
    output_tokens: JsonStr<'a>,
    #[serde(rename = "candidatesTokenCount")]
    candidates_token_count: JsonStr<'a>,
    total_tokens: JsonStr<'a>,
    #[serde(rename = "totalTokenCount")]
    total_token_count: JsonStr<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_of_every_dialect() {
        let counts =
            |raw| read(raw).map(|usage| (usage.input_tokens, usage.output_tokens, usage.total_tokens));
        assert_eq!(
            counts(r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"input_tokens":5}"#),
            Some((Some(5), Some(2), Some(7)))
        );
        assert_eq!(counts(r#"{"input_tokens":5,"output_tokens":null}"#), Some((Some(5), None, None)));
        assert_eq!(
            counts(r#"{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}"#),
            Some((Some(5), Some(2), Some(7)))
        );
        for nothing in ["null", "{ }", r#""""#, "[]", "0"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_later_null_does_not_hide_an_earlier_count() {
        assert_eq!(
            merge(
                r#"{"input_tokens":17,"output_tokens":1,"a":{"b":1}}"#,
                r#"{"output_tokens":65,"input_tokens":null}"#
            ),
            r#"{"a":{"b":1},"input_tokens":17,"output_tokens":65}"#
        );
        assert_eq!(merge("", r#"{"output_tokens":2}"#), r#"{"output_tokens":2}"#);
    }
}
