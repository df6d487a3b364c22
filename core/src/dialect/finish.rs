//! The finish-reason table (rule STR-11), and how a turn ended.

use super::findings::{Finding, Findings};
use super::json::JsonStr;
use crate::outcome::ProviderError;
use crate::outcome::{Choice, Turn};

/// What a provider's finish reason says of the answer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model said all it had to say
    Completed,
    /// The provider stopped the model early
    Incomplete,
    /// The provider failed
    Error,
}

/// How a turn ended that came to its terminal state
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer is whole
    Completed,
    /// The provider stopped early, with its own word for why
    Incomplete(String),
    /// A tool call was left unfinished, and nothing says that the model stopped
    Truncated,
    /// No answer came
    Empty,
}

/// The verdict on a finish reason; upper and lower case differ, unknown words are incomplete
pub fn verdict(word: &str) -> Verdict {
    WORDS.iter().find(|(known, _)| *known == word).map_or(Verdict::Incomplete, |&(_, verdict)| verdict)
}

/// How a turn ended whose sentinel or completion marker came (rules STR-5 and STR-11)
///
/// A choice without a finish reason, after a bare sentinel, is whole unless it has a tool call that
/// is not. If nothing at all was said or finished, servers that lost an error still send the
/// sentinel: that is no answer.
pub fn ending(turn: &Turn) -> Ending {
    let words = || turn.choices.iter().filter_map(|choice| choice.finish_reason.as_deref());
    if let Some(word) = words().find(|word| verdict(word) != Verdict::Completed) {
        return Ending::Incomplete(word.to_owned());
    }
    let unfinished = |choice: &Choice| {
        choice.finish_reason.is_none() && choice.tool_calls.iter().any(|call| !call.looks_whole())
    };
    if turn.choices.iter().any(unfinished) {
        return Ending::Truncated;
    }
    if turn.choices.iter().all(|choice| choice.finish_reason.is_none() && choice.is_empty()) {
        return Ending::Empty;
    }
    Ending::Completed
}

/// Adds what a finish reason means: [`Finding::Finish`], or an error in the provider's words
///
/// Returns whether the choice is finished. An empty word finishes nothing: some servers send it in
/// every chunk.
pub fn push(
    findings: &mut Findings,
    data: &str,
    choice: u32,
    word: JsonStr<'_>,
    message: JsonStr<'_>,
) -> bool {
    if word.is_empty() {
        return false;
    }
    if word_is_error(word) {
        let kind = Some(word.to_string());
        let message = message.to_string();
        findings.push(Finding::Error(ProviderError { kind, message, ..ProviderError::default() }));
        return false;
    }
    let reason = findings.span(data, word);
    findings.push(Finding::Finish { choice, reason });
    true
}

/// Whether a finish reason reports a failure
pub fn word_is_error(word: JsonStr<'_>) -> bool {
    // No word of the table needs an escape.
    word.plain().is_some_and(|word| verdict(word) == Verdict::Error)
}

const WORDS: &[(&str, Verdict)] = &[
    ("stop", Verdict::Completed),
    ("end_turn", Verdict::Completed),
    ("stop_sequence", Verdict::Completed),
    ("tool_calls", Verdict::Completed),
    ("tool_use", Verdict::Completed),
    ("function_call", Verdict::Completed),
    ("STOP", Verdict::Completed),
    ("COMPLETE", Verdict::Completed),
    // Cohere's words, which are those of the others in capitals.
    ("STOP_SEQUENCE", Verdict::Completed),
    ("TOOL_CALL", Verdict::Completed),
    // OpenAI Responses has no finish reason; its status is the word.
    ("completed", Verdict::Completed),
    // Gemini Interactions: the caller's tools are to run.
    ("requires_action", Verdict::Completed),
    ("length", Verdict::Incomplete),
    ("max_tokens", Verdict::Incomplete),
    ("content_filter", Verdict::Incomplete),
    ("refusal", Verdict::Incomplete),
    ("pause_turn", Verdict::Incomplete),
    ("SAFETY", Verdict::Incomplete),
    ("RECITATION", Verdict::Incomplete),
    // Cohere, and MAX_TOKENS of Gemini too.
    ("MAX_TOKENS", Verdict::Incomplete),
    ("TIMEOUT", Verdict::Incomplete),
    ("error", Verdict::Error),
    ("abort", Verdict::Error),
    ("MALFORMED_FUNCTION_CALL", Verdict::Error),
    ("UNEXPECTED_TOOL_CALL", Verdict::Error),
    ("ERROR", Verdict::Error),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ToolCall;

    fn turn(choices: &[(u32, &str, Option<&str>, &[&str])]) -> Turn {
        let choices = choices.iter().map(|&(index, text, finish_reason, calls)| Choice {
            index,
            text: text.to_owned(),
            finish_reason: finish_reason.map(str::to_owned),
            tool_calls: calls
                .iter()
                .map(|&arguments| ToolCall { arguments: arguments.to_owned(), ..ToolCall::default() })
                .collect(),
            ..Choice::default()
        });
        Turn { choices: choices.collect(), ..Turn::default() }
    }

    #[test]
    fn words_of_the_table_and_others() {
        assert_eq!(verdict("stop"), Verdict::Completed);
        assert_eq!(verdict("STOP"), Verdict::Completed);
        assert_eq!(verdict("Stop"), Verdict::Incomplete);
        assert_eq!(verdict("NEW_REASON_7"), Verdict::Incomplete);
        assert_eq!(verdict("MALFORMED_FUNCTION_CALL"), Verdict::Error);
        assert_eq!(verdict("abort"), Verdict::Error);
        for (word, said) in [
            ("COMPLETE", Verdict::Completed),
            ("STOP_SEQUENCE", Verdict::Completed),
            ("TOOL_CALL", Verdict::Completed),
            ("MAX_TOKENS", Verdict::Incomplete),
            ("TIMEOUT", Verdict::Incomplete),
            ("ERROR", Verdict::Error),
            ("requires_action", Verdict::Completed),
        ] {
            assert_eq!(verdict(word), said, "{word}");
        }
    }

    #[test]
    fn a_turn_is_incomplete_if_one_choice_is() {
        assert_eq!(
            ending(&turn(&[(0, "a", Some("stop"), &[]), (1, "b", Some("stop"), &[])])),
            Ending::Completed
        );
        let one = turn(&[(0, "a", Some("stop"), &[]), (1, "b", Some("length"), &[])]);
        assert_eq!(ending(&one), Ending::Incomplete("length".to_owned()));
        let both = turn(&[(0, "a", Some("SAFETY"), &[]), (1, "b", Some("length"), &[])]);
        assert_eq!(ending(&both), Ending::Incomplete("SAFETY".to_owned()));
    }

    #[test]
    fn a_bare_sentinel_is_an_end_only_after_something_whole() {
        assert_eq!(ending(&turn(&[])), Ending::Empty);
        assert_eq!(ending(&turn(&[(0, "", None, &[])])), Ending::Empty);
        assert_eq!(ending(&turn(&[(0, "", Some("stop"), &[])])), Ending::Completed);
        assert_eq!(ending(&turn(&[(0, "a", None, &[])])), Ending::Completed);
        assert_eq!(ending(&turn(&[(0, "", None, &[""])])), Ending::Completed);
        assert_eq!(ending(&turn(&[(0, "a", None, &["{}", "{\"a\""])])), Ending::Truncated);
        assert_eq!(ending(&turn(&[(0, "a", Some("tool_calls"), &["{\"a\""])])), Ending::Completed);
    }
}
