//! What a provider counted, whatever it calls its counters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{self, JsonStr};
/// A count of tokens, and the report that it was read from
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// What was counted
    pub tokens: Tokens,
    /// The provider's own report: a JSON object
    pub raw: &'a str,
}

/// What a provider counted
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt
    pub input: Option<u64>,
    /// Tokens of the answer
    pub output: Option<u64>,
    /// Both together, where the provider says so
    pub total: Option<u64>,
}

/// Reads a usage object; `None` where it is no object, or an empty one
pub fn read(raw: &str) -> Option<Counted<'_>> {
    // Some servers send the counters under both of OpenAI's names, so they cannot be aliases.
    let counters = json::read::<Counters<'_>>(raw).ok()?;
    let first = |names: &[JsonStr<'_>]| names.iter().find_map(|name| name.number());
    // Cohere reports what the model saw, and what of it is billed.
    let nested = |raw: Option<&RawValue>| -> Nested {
        let nested = raw.and_then(|raw| json::read::<Pair<'_>>(raw.get()).ok());
        nested.map_or(Nested::default(), |pair| (pair.input_tokens.number(), pair.output_tokens.number()))
    };
    let (seen, billed) = (nested(counters.tokens), nested(counters.billed_units));
    let input = first(&[
        counters.prompt_tokens,
        counters.input_tokens,
        counters.prompt_token_count,
        counters.total_input_tokens,
        counters.prompt_eval_count,
    ]);
    let output = first(&[
        counters.completion_tokens,
        counters.output_tokens,
        counters.candidates_token_count,
        counters.total_output_tokens,
        counters.eval_count,
    ]);
    let tokens = Tokens {
        input: input.or(seen.0).or(billed.0),
        output: output.or(seen.1).or(billed.1),
        total: first(&[counters.total_tokens, counters.total_token_count]),
    };
    is_report(raw).then_some(Counted { tokens, raw })
}

/// Joins two usage objects: members of the later one replace those of the earlier, null ones do not
///
/// Anthropic reports in `message_start` and again, with fewer members, in `message_delta`.
pub fn merge(earlier: &str, later: &str) -> String {
    let members = |raw| serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw).unwrap_or_default();
    let mut merged = members(earlier);
    for (name, value) in members(later) {
        if value.get() != "null" || !merged.contains_key(&name) {
            merged.insert(name, value);
        }
    }
    serde_json::to_string(&merged).unwrap_or_else(|_| later.to_owned())
}

/// The members with these names of the JSON object `raw`, as an object
///
/// For providers that count beside the answer and not in an object of its own.
pub fn select(raw: &str, names: &[&str]) -> String {
    let mut members = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw).unwrap_or_default();
    members.retain(|name, _| names.contains(&&**name));
    serde_json::to_string(&members).unwrap_or_default()
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
    total_input_tokens: JsonStr<'a>,
    total_output_tokens: JsonStr<'a>,
    prompt_eval_count: JsonStr<'a>,
    eval_count: JsonStr<'a>,
    tokens: Option<&'a RawValue>,
    billed_units: Option<&'a RawValue>,
}

/// Tokens of the prompt and of the answer
type Nested = (Option<u64>, Option<u64>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pair<'a> {
    #[serde(borrow)]
    input_tokens: JsonStr<'a>,
    output_tokens: JsonStr<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_of_every_dialect() {
        let counts =
            |raw: &str| read(raw).map(|Counted { tokens, .. }| (tokens.input, tokens.output, tokens.total));
        assert_eq!(
            counts(r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"input_tokens":5}"#),
            Some((Some(5), Some(2), Some(7)))
        );
        assert_eq!(counts(r#"{"input_tokens":5,"output_tokens":null}"#), Some((Some(5), None, None)));
        assert_eq!(
            counts(r#"{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}"#),
            Some((Some(5), Some(2), Some(7)))
        );
        assert_eq!(
            counts(
                r#"{"total_input_tokens":5,"total_output_tokens":2,"total_thought_tokens":9,"total_tokens":16}"#
            ),
            Some((Some(5), Some(2), Some(16)))
        );
        assert_eq!(
            counts(r#"{"prompt_eval_count":5,"eval_count":2,"eval_duration":9}"#),
            Some((Some(5), Some(2), None))
        );
        let billed = r#""billed_units":{"input_tokens":5,"output_tokens":2}"#;
        assert_eq!(counts(&format!("{{{billed}}}")), Some((Some(5), Some(2), None)));
        assert_eq!(
            counts(&format!(r#"{{{billed},"tokens":{{"input_tokens":507,"output_tokens":10}}}}"#)),
            Some((Some(507), Some(10), None))
        );
        assert_eq!(counts(r#"{"prompt_tokens":5,"tokens":7}"#), Some((Some(5), None, None)));
        for nothing in ["null", "{ }", r#""""#, "[]", "0"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn counters_beside_the_answer_are_picked_out() {
        let line = r#"{"message":{"content":"x"},"eval_count":2,"done":true,"prompt_eval_count":5}"#;
        let names = ["eval_count", "prompt_eval_count", "eval_duration"];
        assert_eq!(select(line, &names), r#"{"eval_count":2,"prompt_eval_count":5}"#);
        assert_eq!(read(&select(r#"{"done":true}"#, &names)), None);
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
