//! Recorded streams of real providers, decoded and compared with what others read in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;
use serde_json::Value;
use steadfast::dialect::findings::{Finding, Findings};
use steadfast::dialect::{Decode, Decoder, Dialect, Progress};
use steadfast::framing::{Framer, Framing};
use steadfast::outcome::ProviderError;
use steadfast::outcome::{Choice, ToolCall, ToolKind, Turn};
use steadfast_tests::shared;

#[derive(Deserialize)]
struct Streams {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    dialect: String,
    framing: String,
    body_file: String,
    expected: Expected,
    /// What is seen where the last event is taken although no blank line follows it (rule STR-9)
    expected_with_tail_flush: Option<Expected>,
}

#[derive(Clone, Default, Deserialize)]
struct Expected {
    text: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ExpectedCall>,
    finish_reason: Option<String>,
    usage: Option<ExpectedUsage>,
    id: Option<String>,
    model: Option<String>,
    error: Option<Value>,
    block_reason: Option<String>,
    #[serde(default)]
    done_sentinel: bool,
    terminal_event: Option<String>,
    /// Cohere's plan before tool calls, which to us is reasoning
    #[serde(default)]
    tool_plan: String,
    #[serde(default)]
    other_choices: BTreeMap<u32, ExpectedChoice>,
}

#[derive(Clone, Default, Deserialize)]
struct ExpectedChoice {
    text: String,
    finish_reason: Option<String>,
}

#[derive(Clone, Deserialize)]
struct ExpectedCall {
    id: Option<String>,
    name: String,
    /// The very text; absent where the provider sends JSON
    arguments: Option<String>,
    arguments_json: Option<Value>,
    #[serde(default)]
    server: bool,
}

#[derive(Clone, Deserialize)]
struct ExpectedUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    raw: Option<Value>,
}

#[derive(Deserialize)]
struct Exceptions {
    by_rule: Vec<Exception>,
    out_of_scope: Vec<OutOfScope>,
}

/// A case that is not decoded
#[derive(Deserialize)]
struct OutOfScope {
    name: String,
    framing: String,
    reason: String,
}

/// A case where a rule of ours and the expectation part ways
#[derive(Deserialize)]
struct Exception {
    name: String,
    field: String,
    ours: String,
    rule: String,
}

#[derive(Default)]
struct Decoded {
    turn: Turn,
    error: Option<ProviderError>,
    block_reason: Option<String>,
    progress: Progress,
}

#[test]
fn recorded_streams_decode_as_expected() {
    let Some(path) = shared::path("conformance/streams.json") else { return };
    let streams: Streams = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let Exceptions { by_rule: exceptions, mut out_of_scope } =
        serde_json::from_str(include_str!("data/conformance_streams_exceptions.json")).unwrap();
    let mut unused: BTreeSet<_> = exceptions.iter().map(|exception| exception.name.as_str()).collect();
    let mut passed: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut skipped = 0;
    for case in &streams.cases {
        let Some(dialect) = dialect(&case.dialect) else {
            let listed = out_of_scope.iter().position(|out| out.name == case.name);
            let out = out_of_scope.remove(listed.unwrap_or_else(|| panic!("{} is not listed", case.name)));
            assert_eq!(out.framing, case.framing, "{}", case.name);
            println!("out of scope: {}: {}", out.name, out.reason);
            skipped += 1;
            continue;
        };
        let body = fs::read_to_string(path.with_file_name(&case.body_file)).unwrap();
        let decoded = decode(dialect, &case.framing, &body);
        let expected = case.expected_with_tail_flush.as_ref().unwrap_or(&case.expected);
        let mut differences = compare(&decoded, expected);
        differences.extend(compare_progress(dialect, &decoded, expected, &case.framing));
        differences.retain(|(field, ours, _)| {
            let excused = exceptions.iter().any(|exception| {
                exception.name == case.name && exception.field == *field && exception.ours == *ours
            });
            if excused {
                unused.remove(case.name.as_str());
            }
            !excused
        });
        let (right, all) = passed.entry(&case.dialect).or_default();
        *all += 1;
        *right += usize::from(differences.is_empty());
        for (field, ours, theirs) in differences {
            failures.push(format!("{}: {field}\n   ours {ours}\n theirs {theirs}", case.name));
        }
    }
    let (right, all) = passed.values().fold((0, 0), |sum, (right, all)| (sum.0 + right, sum.1 + all));
    let each: Vec<_> =
        passed.iter().map(|(dialect, (right, all))| format!("{dialect}: {right}/{all}")).collect();
    let by_rule = exceptions.len();
    println!(
        "conformance streams: {right}/{all} ({}), {by_rule} of them by a rule of ours; {skipped} out of scope",
        each.join(", ")
    );
    for Exception { name, field, rule, .. } in &exceptions {
        println!("by rule: {name}: {field}: {rule}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
    assert_eq!((all, skipped, out_of_scope.len()), (144, 3, 0), "cases, and those out of scope");
}

fn dialect(name: &str) -> Option<Dialect> {
    Some(match name {
        "openai-chat" => Dialect::OpenAiChat,
        "openai-completion" => Dialect::OpenAiCompletions,
        "openai-responses" => Dialect::OpenAiResponses,
        "anthropic-messages" => Dialect::Anthropic,
        "gemini-generate" => Dialect::Gemini,
        "gemini-interactions" => Dialect::GeminiInteractions,
        "ollama-ndjson" => Dialect::Ollama,
        "cohere-v2" => Dialect::Cohere,
        _ => return None,
    })
}

fn decode(dialect: Dialect, framing: &str, body: &str) -> Decoded {
    let mut decoder = Decoder::new(dialect);
    let mut findings = Findings::default();
    let mut decoded = Decoded::default();
    if framing == "json-error" {
        decoder.unary(body, &mut findings).unwrap();
        decoded.take(&mut findings, body);
        decoded.progress = decoder.progress();
        return decoded;
    }
    let framed = dialect.framing((framing == "ndjson").then_some("application/x-ndjson"));
    let events = match (framing, framed) {
        ("sse", Some(framed @ Framing::Sse)) | ("ndjson", Some(framed @ Framing::Ndjson)) => {
            events(framed, body)
        }
        _ => panic!("{dialect:?} in {framing}"),
    };
    for (name, data) in events {
        decoder.event(&name, &data, &mut findings).unwrap();
        decoded.take(&mut findings, &data);
    }
    decoded.progress = decoder.progress();
    decoded
}

impl Decoded {
    fn take(&mut self, findings: &mut Findings, data: &str) {
        while let Some(finding) = findings.take().cloned() {
            finding.apply(&mut self.turn, findings, data);
            if let Finding::Error(error) = finding {
                // The first error ends a call (rule STR-7).
                self.error.get_or_insert(error);
            } else if let Finding::Blocked(reason) = finding {
                self.block_reason = Some(reason);
            }
        }
        findings.clear();
    }
}

/// The names and the data of a body's events, an unterminated last one included
fn events(framing: Framing, body: &str) -> Vec<(String, String)> {
    let mut framer = Framer::new(framing, 16 << 20);
    let mut events = Vec::new();
    let mut rest = body.as_bytes();
    loop {
        let (consumed, event) = framer.next(rest).expect("no event over the cap");
        let event = event.or_else(|| if consumed == rest.len() { framer.tail() } else { None });
        let Some(event) = event else { break events };
        let text = |located| String::from_utf8(framer.bytes(rest, located).to_vec()).expect("UTF-8");
        events.push((event.name.map_or_else(|| "message".to_owned(), text), text(event.data)));
        rest = &rest[consumed..];
    }
}

/// The fields in which the two differ: name, ours, theirs
fn compare(decoded: &Decoded, expected: &Expected) -> Vec<(&'static str, String, String)> {
    let mut differences = Vec::new();
    let mut check = |field, ours: String, theirs: String| {
        if ours != theirs {
            differences.push((field, ours, theirs));
        }
    };
    let turn = &decoded.turn;
    let nothing = Choice::default();
    let choice = turn.choices.iter().find(|choice| choice.index == 0).unwrap_or(&nothing);
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    check("text", choice.text.clone(), or_empty(&expected.text));
    check("reasoning", choice.reasoning.clone(), or_empty(&expected.reasoning) + &expected.tool_plan);
    check("refusal", choice.refusal.clone(), or_empty(&expected.refusal));
    check("id", or_empty(&turn.id), or_empty(&expected.id));
    check("model", or_empty(&turn.model), or_empty(&expected.model));
    check("block_reason", or_empty(&decoded.block_reason), or_empty(&expected.block_reason));
    check("finish_reason", or_empty(&choice.finish_reason), or_empty(&expected.finish_reason));
    check(
        "error",
        format!("{:?}", decoded.error.as_ref().map(of_error)),
        format!("{:?}", expected.error.as_ref().map(of_value)),
    );
    let ours: Vec<_> = turn.choices.iter().filter(|choice| choice.index != 0).map(of_choice).collect();
    let theirs: Vec<_> = expected.other_choices.iter().map(of_expected_choice).collect();
    check("other_choices", format!("{ours:?}"), format!("{theirs:?}"));
    let ours: Vec<_> = choice.tool_calls.iter().map(of_call).collect();
    let theirs: Vec<_> = expected.tool_calls.iter().map(of_expected_call).collect();
    check(
        "tool_calls",
        format!("{:?}", ours.iter().map(|call| &call.0).collect::<Vec<_>>()),
        format!("{:?}", theirs.iter().map(|call| &call.0).collect::<Vec<_>>()),
    );
    for (ours, theirs) in ours.iter().zip(&theirs) {
        match &theirs.1 {
            Some(theirs) => check("arguments", format!("{:?}", ours.1), format!("{theirs:?}")),
            None => check("arguments", json(&ours.1), json(&theirs.2)),
        }
    }
    let ours = turn.usage.as_ref();
    let theirs = expected.usage.as_ref();
    let tokens = |input, output, total| format!("{input:?} {output:?} {total:?}");
    check(
        "usage",
        format!(
            "{:?}",
            ours.map(|usage| tokens(usage.input_tokens, usage.output_tokens, usage.total_tokens))
        ),
        format!(
            "{:?}",
            theirs.map(|usage| tokens(usage.input_tokens, usage.output_tokens, usage.total_tokens))
        ),
    );
    if let Some(raw) = theirs.and_then(|usage| usage.raw.as_ref()) {
        check("usage.raw", json(ours.map_or("", |usage| &usage.raw)), raw.to_string());
    }
    differences
}

/// The difference in how the turn is known to have ended, if there is one
fn compare_progress(
    dialect: Dialect,
    decoded: &Decoded,
    expected: &Expected,
    framing: &str,
) -> Option<(&'static str, String, String)> {
    let sentinel = match dialect {
        _ if framing == "json-error" => true,
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => expected.done_sentinel,
        Dialect::OpenAiResponses | Dialect::Anthropic | Dialect::Ollama => {
            let names = ["response.completed", "response.incomplete", "message_stop", "done"];
            expected.terminal_event.as_deref().is_some_and(|event| names.contains(&event))
        }
        // Their finish reason is in the sentinel.
        Dialect::GeminiInteractions | Dialect::Cohere => expected.finish_reason.is_some(),
        Dialect::Gemini | Dialect::Custom(_) => false,
    };
    // What failed has an error, and no end.
    let marked = expected.finish_reason.as_deref().is_some_and(|word| word != "failed");
    let progress = match (sentinel, marked) {
        (true, _) => Progress::Ended,
        (false, true) => Progress::Marked,
        (false, false) => Progress::Open,
    };
    let differ = progress != decoded.progress;
    differ.then(|| ("progress", format!("{:?}", decoded.progress), format!("{progress:?}")))
}

fn of_choice(choice: &Choice) -> (u32, String, Option<String>) {
    (choice.index, choice.text.clone(), choice.finish_reason.clone())
}

fn of_expected_choice((index, choice): (&u32, &ExpectedChoice)) -> (u32, String, Option<String>) {
    (*index, choice.text.clone(), choice.finish_reason.clone())
}

fn of_call(call: &ToolCall) -> ((String, String, bool), String) {
    ((call.id.clone(), call.name.clone(), call.kind == ToolKind::Server), call.arguments.clone())
}

fn of_expected_call(call: &ExpectedCall) -> ((String, String, bool), Option<String>, String) {
    let id = call.id.clone().unwrap_or_default();
    let json = call.arguments_json.as_ref().map(Value::to_string).unwrap_or_default();
    ((id, call.name.clone(), call.server), call.arguments.clone(), json)
}

/// Message and code of an error; providers name the rest differently
fn of_error(error: &ProviderError) -> (String, String) {
    (error.message.clone(), error.code.clone().unwrap_or_default())
}

fn of_value(error: &Value) -> (String, String) {
    let text = |name: &str| match &error[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    };
    (text("message"), text("code"))
}

/// JSON text with its members in one order
fn json(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}
