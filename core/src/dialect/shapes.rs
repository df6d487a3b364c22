//! One rule for members of a wrong type, in every dialect, streamed and whole.

use super::Dialect;
use super::testing::{Played, try_play, try_play_unary};

/// What a member is due to be
#[derive(Clone, Copy)]
enum Due {
    Text,
    /// A text, or a list of parts
    Parts,
    Object,
    List,
}

const EMPTY: [&str; 4] = ["null", r#""""#, "[]", "{}"];

impl Due {
    /// Values that say something and cannot be read
    fn lost(self) -> &'static [&'static str] {
        match self {
            Self::Text => &[r#"{"a":1}"#, "[1]", r#"[{"text":"x"}]"#],
            Self::Parts => &["[1]", r#"["x"]"#, r#"[["x"]]"#],
            Self::Object => &[r#""x""#, "[1]", "[{}]", "7", "true"],
            Self::List => &[r#""x""#, r#"{"a":1}"#, "[7]", r#"["x"]"#, "[[1]]", "7", "true"],
        }
    }
}

/// Events with a member that is marked by `@`
const EVENTS: &[(Dialect, Due, &str)] = &[
    (Dialect::OpenAiChat, Due::Parts, r#"{"id":"c","choices":[{"delta":{"content":@}}]}"#),
    (Dialect::OpenAiChat, Due::Text, r#"{"id":"c","choices":[{"delta":{"reasoning_content":@}}]}"#),
    (Dialect::OpenAiChat, Due::Text, r#"{"id":"c","choices":[{"delta":{"reasoning":@}}]}"#),
    (Dialect::OpenAiChat, Due::Text, r#"{"id":"c","choices":[{"delta":{"refusal":@}}]}"#),
    (Dialect::OpenAiChat, Due::List, r#"{"id":"c","choices":[{"delta":{"tool_calls":@}}]}"#),
    (Dialect::OpenAiChat, Due::Object, r#"{"id":"c","choices":[{"delta":{"tool_calls":[{"function":@}]}}]}"#),
    (Dialect::OpenAiChat, Due::Object, r#"{"id":"c","choices":[{"delta":{"function_call":@}}]}"#),
    (
        Dialect::OpenAiChat,
        Due::Text,
        r#"{"id":"c","choices":[{"delta":{"tool_calls":[{"function":{"name":@}}]}}]}"#,
    ),
    (Dialect::OpenAiChat, Due::Text, r#"{"id":"c","choices":[{"delta":{"tool_calls":[{"id":@}]}}]}"#),
    (Dialect::OpenAiChat, Due::Object, r#"{"id":"c","choices":[{"delta":@}]}"#),
    (Dialect::OpenAiChat, Due::List, r#"{"id":"c","choices":@}"#),
    (Dialect::OpenAiCompletions, Due::Text, r#"{"id":"c","choices":[{"text":@}]}"#),
    (Dialect::OpenAiResponses, Due::Text, r#"{"type":"response.output_text.delta","delta":@}"#),
    (Dialect::OpenAiResponses, Due::Text, r#"{"type":"response.output_text.done","text":@}"#),
    (
        Dialect::OpenAiResponses,
        Due::Parts,
        r#"{"type":"response.output_item.done","item":{"type":"message","content":@}}"#,
    ),
    (
        Dialect::OpenAiResponses,
        Due::Parts,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":@}}"#,
    ),
    (
        Dialect::OpenAiResponses,
        Due::Text,
        r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"text":@}]}}"#,
    ),
    (Dialect::OpenAiResponses, Due::Object, r#"{"type":"response.output_item.done","item":@}"#),
    (Dialect::OpenAiResponses, Due::Object, r#"{"type":"response.completed","response":@}"#),
    (Dialect::OpenAiResponses, Due::List, r#"{"type":"response.completed","response":{"output":@}}"#),
    (Dialect::Anthropic, Due::Object, r#"{"type":"content_block_delta","delta":@}"#),
    (Dialect::Anthropic, Due::Object, r#"{"type":"content_block_start","content_block":@}"#),
    (Dialect::Anthropic, Due::Object, r#"{"type":"message_start","message":@}"#),
    (Dialect::Anthropic, Due::Parts, r#"{"type":"message_start","message":{"content":@}}"#),
    (
        Dialect::Anthropic,
        Due::Text,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":@}}"#,
    ),
    (
        Dialect::Anthropic,
        Due::Text,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":@}}"#,
    ),
    (
        Dialect::Anthropic,
        Due::Text,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":@}}"#,
    ),
    (Dialect::Gemini, Due::List, r#"{"responseId":"g","candidates":@}"#),
    (Dialect::Gemini, Due::Object, r#"{"candidates":[{"content":@}]}"#),
    (Dialect::Gemini, Due::List, r#"{"candidates":[{"content":{"parts":@}}]}"#),
    (Dialect::Gemini, Due::Text, r#"{"candidates":[{"content":{"parts":[{"text":@}]}}]}"#),
    (Dialect::Gemini, Due::Object, r#"{"candidates":[{"content":{"parts":[{"functionCall":@}]}}]}"#),
    (Dialect::Gemini, Due::Text, r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":@}}]}}]}"#),
    (Dialect::GeminiInteractions, Due::Object, r#"{"event_type":"step.start","step":@}"#),
    (Dialect::GeminiInteractions, Due::Object, r#"{"event_type":"step.delta","delta":@}"#),
    (
        Dialect::GeminiInteractions,
        Due::Parts,
        r#"{"event_type":"step.start","step":{"type":"model_output","content":@}}"#,
    ),
    (
        Dialect::GeminiInteractions,
        Due::Parts,
        r#"{"event_type":"step.start","step":{"type":"thought","summary":@}}"#,
    ),
    (
        Dialect::GeminiInteractions,
        Due::Text,
        r#"{"event_type":"step.delta","delta":{"type":"text","text":@}}"#,
    ),
    (Dialect::GeminiInteractions, Due::Object, r#"{"event_type":"interaction.completed","interaction":@}"#),
    (
        Dialect::GeminiInteractions,
        Due::List,
        r#"{"event_type":"interaction.completed","interaction":{"steps":@}}"#,
    ),
    (Dialect::Ollama, Due::Object, r#"{"message":@,"done":false}"#),
    (Dialect::Ollama, Due::Text, r#"{"message":{"content":@},"done":false}"#),
    (Dialect::Ollama, Due::Text, r#"{"message":{"thinking":@},"done":false}"#),
    (Dialect::Ollama, Due::Text, r#"{"response":@,"done":false}"#),
    (Dialect::Ollama, Due::List, r#"{"message":{"tool_calls":@},"done":false}"#),
    (Dialect::Cohere, Due::Object, r#"{"type":"content-delta","delta":@}"#),
    (Dialect::Cohere, Due::Object, r#"{"type":"content-delta","delta":{"message":{"content":@}}}"#),
    (Dialect::Cohere, Due::Text, r#"{"type":"content-delta","delta":{"message":{"content":{"text":@}}}}"#),
    (Dialect::Cohere, Due::Text, r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":@}}}"#),
    (Dialect::Cohere, Due::Object, r#"{"type":"tool-call-start","delta":{"message":{"tool_calls":@}}}"#),
];

/// Whole bodies with a member that is marked by `@`
const BODIES: &[(Dialect, Due, &str)] = &[
    (Dialect::OpenAiChat, Due::Parts, r#"{"id":"c","choices":[{"message":{"content":@}}]}"#),
    (Dialect::OpenAiChat, Due::Text, r#"{"id":"c","choices":[{"message":{"reasoning":@}}]}"#),
    (Dialect::OpenAiChat, Due::List, r#"{"id":"c","choices":[{"message":{"tool_calls":@}}]}"#),
    (Dialect::OpenAiChat, Due::Object, r#"{"id":"c","choices":[{"message":@}]}"#),
    (Dialect::OpenAiCompletions, Due::Text, r#"{"id":"c","choices":[{"text":@}]}"#),
    (
        Dialect::OpenAiResponses,
        Due::Parts,
        r#"{"status":"completed","output":[{"type":"message","content":@}]}"#,
    ),
    (
        Dialect::OpenAiResponses,
        Due::Parts,
        r#"{"status":"completed","output":[{"type":"reasoning","summary":@}]}"#,
    ),
    (Dialect::OpenAiResponses, Due::List, r#"{"status":"completed","output":@}"#),
    (Dialect::Anthropic, Due::Parts, r#"{"type":"message","content":@}"#),
    (Dialect::Anthropic, Due::Text, r#"{"type":"message","content":[{"type":"text","text":@}]}"#),
    (Dialect::Anthropic, Due::Text, r#"{"type":"message","content":[{"type":"tool_use","name":@}]}"#),
    (Dialect::Gemini, Due::List, r#"{"responseId":"g","candidates":@}"#),
    (Dialect::Gemini, Due::Text, r#"{"candidates":[{"content":{"parts":[{"text":@}]}}]}"#),
    (Dialect::GeminiInteractions, Due::List, r#"{"status":"completed","steps":@}"#),
    (
        Dialect::GeminiInteractions,
        Due::Parts,
        r#"{"status":"completed","steps":[{"type":"model_output","content":@}]}"#,
    ),
    (Dialect::Ollama, Due::Text, r#"{"message":{"content":@},"done":true}"#),
    (Dialect::Cohere, Due::Parts, r#"{"message":{"content":@},"finish_reason":"COMPLETE"}"#),
    (Dialect::Cohere, Due::List, r#"{"message":{"tool_calls":@},"finish_reason":"COMPLETE"}"#),
];

fn said(played: &Played) -> String {
    let choices = played.turn.choices.iter();
    choices.map(|choice| [&*choice.text, &choice.reasoning, &choice.refusal].concat()).collect()
}

#[test]
fn what_says_nothing_may_have_any_type() {
    for (events, unary) in [(EVENTS, false), (BODIES, true)] {
        for (dialect, _, form) in events {
            for value in EMPTY {
                let data = form.replace('@', value);
                let played =
                    if unary { try_play_unary(*dialect, &data) } else { try_play(*dialect, &[&data]) };
                let played = played.unwrap_or_else(|fault| panic!("{dialect:?} {data}: {fault}"));
                assert_eq!((said(&played), played.errors.len()), (String::new(), 0), "{dialect:?} {data}");
            }
        }
    }
}

#[test]
fn words_and_calls_of_a_type_that_cannot_be_read_are_never_passed_over() {
    for (events, unary) in [(EVENTS, false), (BODIES, true)] {
        for (dialect, due, form) in events {
            for value in due.lost() {
                let data = form.replace('@', value);
                let played =
                    if unary { try_play_unary(*dialect, &data) } else { try_play(*dialect, &[&data]) };
                let fault = played.err().unwrap_or_else(|| panic!("{dialect:?} passes over {data}"));
                assert!(fault.reason.contains("unexpected shape"), "{dialect:?} {data}: {fault}");
            }
        }
    }
}

#[test]
fn parts_may_be_plain_text_or_one_part() {
    for (events, unary) in [(EVENTS, false), (BODIES, true)] {
        for (dialect, _, form) in events.iter().filter(|(_, due, _)| matches!(due, Due::Parts)) {
            for value in
                [r#""x\u0041""#, r#"{"type":"text","text":"xA"}"#, r#"[{"type":"text","text":"xA"}]"#]
            {
                let data = form.replace('@', value);
                let played =
                    if unary { try_play_unary(*dialect, &data) } else { try_play(*dialect, &[&data]) };
                assert_eq!(said(&played.unwrap()), "xA", "{dialect:?} {data}");
            }
        }
    }
}

#[test]
fn members_that_bring_neither_words_nor_calls_may_be_anything() {
    for (dialect, data) in [
        (
            Dialect::OpenAiChat,
            r#"{"id":{"a":1},"choices":[{"delta":{"content":"x"}}],"usage":"no","x_groq":7}"#,
        ),
        (Dialect::OpenAiResponses, r#"{"type":"response.created","response":"x"}"#),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.incomplete","response":{"incomplete_details":"x","usage":[1],"model":{"a":1}}}"#,
        ),
        (Dialect::Anthropic, r#"{"type":"message_start","message":{"id":[1],"usage":"no"}}"#),
        (Dialect::Gemini, r#"{"candidates":[],"promptFeedback":"x","usageMetadata":[1]}"#),
        (Dialect::GeminiInteractions, r#"{"event_type":"interaction.created","interaction":[1]}"#),
        (Dialect::Ollama, r#"{"model":{"a":1},"response":"x","done":false}"#),
        (Dialect::Cohere, r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":"x"}}"#),
        (Dialect::Cohere, r#"{"type":"content-end","delta":"x"}"#),
        (Dialect::Anthropic, r#"{"type":"shiny","delta":{"text":{"a":1}},"content_block":7}"#),
    ] {
        let played = try_play(dialect, &[data]).unwrap_or_else(|fault| panic!("{dialect:?} {data}: {fault}"));
        assert!(played.errors.is_empty(), "{dialect:?} {data}");
    }
}
