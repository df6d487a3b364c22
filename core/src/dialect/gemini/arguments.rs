//! Arguments of a function call that come value by value, each with its JSON path (Vertex AI).
//!
//! Source: <https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling>

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::super::Malformed;
use super::super::findings::{Finding, Findings};
use super::super::json::{self, JsonStr};

/// A call whose arguments are on their way
#[derive(Debug)]
pub(super) struct Streamed {
    call: u32,
    arguments: Value,
    /// Paths and texts so far, in bytes
    taken: usize,
    /// Values so far
    values: usize,
    /// Whether a value came that has no place
    is_broken: bool,
}

/// A value, or a piece of a text
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    #[serde(borrow)]
    json_path: JsonStr<'a>,
    string_value: Option<JsonStr<'a>>,
    number_value: Option<Number>,
    bool_value: Option<bool>,
}

/// The most bytes of paths and texts that one call may have
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What a value counts for beside its text: its size or more, and the same on every platform (INV-9)
///
/// It is largest where a crate beside ours has turned on `preserve_order` of serde_json.
const VALUE_BYTES: usize = 72;

const _: () = assert!(size_of::<Value>() <= VALUE_BYTES);

/// The most names and numbers that one path may have, as many as JSON is read deep
const MAX_DEPTH: usize = 127;

impl Streamed {
    /// A call with the arguments that came with its name
    pub(super) fn new(call: u32, args: Option<&RawValue>) -> Result<Self, Malformed> {
        let arguments = Value::Object(json::object::<Map<String, Value>>(args)?);
        Ok(Self { call, arguments, taken: 0, values: 0, is_broken: false })
    }

    /// Bytes of what came, and room for each value
    pub(super) fn held(&self) -> usize {
        self.taken + self.values * VALUE_BYTES
    }

    /// Takes in a value; returns whether it has a place
    ///
    /// Errors: [`Malformed`] past the cap on bytes, and where a text is none.
    pub(super) fn add(&mut self, piece: &PartialArg<'_>) -> Result<bool, Malformed> {
        let path = piece.json_path.text()?.to_string();
        let text = piece.string_value.map(JsonStr::text).transpose()?.map(|text| text.to_string());
        self.values += 1;
        self.taken += path.len() + text.as_ref().map_or(0, String::len);
        if self.taken > MAX_BYTES {
            return Err(Malformed { reason: format!("more than {MAX_BYTES} bytes of arguments by path") });
        }
        let Some(place) = place(&mut self.arguments, &path) else {
            self.is_broken = true;
            return Ok(false);
        };
        match (place, text, &piece.number_value, piece.bool_value) {
            (Value::String(held), Some(text), ..) => held.push_str(&text),
            (place, Some(text), ..) => *place = Value::String(text),
            (place, _, Some(number), _) => *place = Value::Number(whole(number)),
            (place, _, _, Some(bool)) => *place = Value::Bool(bool),
            // Null, or the end of a value that came.
            _ => {}
        }
        Ok(true)
    }

    /// The call is over; one that is not `whole` gets arguments whose last brace is missing, so that
    /// nobody takes them for whole
    pub(super) fn end(self, choice: u32, whole: bool, findings: &mut Findings) {
        let mut arguments = self.arguments.to_string();
        if !whole || self.is_broken {
            arguments.pop();
        }
        let fragment = findings.owned(&arguments);
        findings.push(Finding::ToolArguments { choice, index: self.call, fragment });
    }
}

/// The value at a path such as `$.foo.bar[0]['a b']`, made if it is the next one
fn place<'v>(root: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut rest = path.strip_prefix('$')?;
    let mut value = root;
    for _ in 0..MAX_DEPTH {
        if rest.is_empty() {
            return Some(value);
        }
        let (step, after) = step(rest)?;
        rest = after;
        value = match step {
            Step::Name(name) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                value.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            Step::Number(number) => {
                if value.is_null() {
                    *value = Value::Array(Vec::new());
                }
                let elements = value.as_array_mut()?;
                if number == elements.len() {
                    elements.push(Value::Null);
                }
                elements.get_mut(number)?
            }
        };
    }
    None
}

enum Step {
    Name(String),
    Number(usize),
}

/// The step at the front of a path, and what follows it
fn step(path: &str) -> Option<(Step, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        return (!name.is_empty()).then(|| (Step::Name(name.to_owned()), rest));
    }
    let rest = path.strip_prefix('[')?;
    let Some(quote @ ('\'' | '"')) = rest.chars().next() else {
        let (number, rest) = rest.split_once(']')?;
        return Some((Step::Number(number.parse().ok()?), rest));
    };
    let mut name = String::new();
    let mut chars = rest[1..].chars();
    loop {
        match chars.next()? {
            '\\' => name.push(chars.next()?),
            end if end == quote => break,
            char => name.push(char),
        }
    }
    Some((Step::Name(name), chars.as_str().strip_prefix(']')?))
}

/// A number as a schema of integers takes it: the provider has doubles only
fn whole(number: &Number) -> Number {
    // Beyond, doubles are not exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(pieces: &[&str]) -> (Vec<bool>, String) {
        let mut streamed = Streamed::new(0, None).unwrap();
        let add = |piece: &&str| streamed.add(&json::read(piece).unwrap()).unwrap();
        let told = pieces.iter().map(add).collect();
        (told, streamed.arguments.to_string())
    }

    #[test]
    fn every_kind_of_value_has_its_place() {
        let (told, arguments) = placed(&[
            r#"{"jsonPath":"$.a","stringValue":"x\u00e9","willContinue":true}"#,
            r#"{"jsonPath":"$.a","stringValue":"y"}"#,
            r#"{"jsonPath":"$.b.c[0].d","numberValue":5.0}"#,
            r#"{"jsonPath":"$.b.c[0].e","numberValue":0.5}"#,
            r#"{"jsonPath":"$.b.c[1]","boolValue":false}"#,
            r#"{"jsonPath":"$['n ']\u0020","nullValue":"NULL_VALUE"}"#,
            r#"{"jsonPath":"$[\"q'.\\\"\"]","nullValue":null}"#,
            r#"{"jsonPath":"$.a"}"#,
        ]);
        assert_eq!(told, [true, true, true, true, true, false, true, true]);
        assert_eq!(arguments, r#"{"a":"xéy","b":{"c":[{"d":5,"e":0.5},false]},"n ":null,"q'.\"":null}"#);
    }

    #[test]
    fn a_value_without_a_place_is_told() {
        let deep = format!(r#"{{"jsonPath":"${}","boolValue":true}}"#, ".a".repeat(MAX_DEPTH + 1));
        for path in ["", "a", "$a", "$.", "$.a.", "$[", "$[x]", "$['a", "$['a'", "$[1]", "$.a[4294967295]"] {
            let piece = format!(r#"{{"jsonPath":"{path}","boolValue":true}}"#);
            assert_eq!(placed(&[&piece]).0, [false], "{path}");
        }
        assert_eq!(placed(&[&deep]).0, [false]);
        let under_text =
            [r#"{"jsonPath":"$.a","stringValue":"x"}"#, r#"{"jsonPath":"$.a.b","stringValue":"x"}"#];
        assert_eq!(placed(&under_text).0, [true, false]);
    }

    #[test]
    fn arguments_without_end_are_refused() {
        let mut streamed = Streamed::new(0, None).unwrap();
        let piece = format!(r#"{{"jsonPath":"$.a","stringValue":"{}"}}"#, "x".repeat(MAX_BYTES / 2));
        let piece = json::read::<PartialArg<'_>>(&piece).unwrap();
        assert_eq!(streamed.add(&piece), Ok(true));
        assert!(streamed.add(&piece).is_err());
    }
}
