//! What each provider counts, in one way of counting.

use std::ops::AddAssign;

use serde::Serialize;
use serde_json::Value;

use crate::outcome::Usage;

/// Tokens by kind; no token is in two of them
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Of the prompt, but for those that were read from a cache or written to it
    pub input: u64,
    /// Of the prompt, read from the provider's cache
    pub cached_input: u64,
    /// Of the prompt, written to the provider's cache where it counts them by themselves
    pub cache_write: u64,
    /// Of the answer, without its reasoning
    pub output: u64,
    /// Of the model's reasoning, where the provider counts them by themselves
    pub reasoning: u64,
}

impl Tokens {
    /// What a provider counted, from its own report; `None` where it counts no tokens
    ///
    /// Providers differ in what they count where: see the comments of the code for each.
    pub fn of(usage: &Usage) -> Option<Self> {
        let (prompt, answer) = (usage.input_tokens, usage.output_tokens);
        if prompt.is_none() && answer.is_none() {
            return None;
        }
        let raw: Value = serde_json::from_str(&usage.raw).unwrap_or_default();
        let count =
            |pointers: &[&str]| pointers.iter().find_map(|pointer| raw.pointer(pointer).and_then(whole));
        // Cohere bills less than the model saw.
        let prompt = count(&["/billed_units/input_tokens"]).or(prompt).unwrap_or(0);
        let answer = count(&["/billed_units/output_tokens"]).or(answer).unwrap_or(0);
        // Anthropic counts what its cache gave and took beside the input.
        let beside = count(&["/cache_read_input_tokens"]);
        let cache_write = count(&["/cache_creation_input_tokens"]).unwrap_or(0);
        if beside.is_some() || cache_write > 0 {
            let cached_input = beside.unwrap_or(0);
            return Some(Self { input: prompt, cached_input, cache_write, output: answer, reasoning: 0 });
        }
        // OpenAI Chat and Responses, DeepSeek, Gemini, Gemini Interactions and Cohere: within the input.
        let cached_input = count(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cachedContentTokenCount",
            "/total_cached_tokens",
            "/cached_tokens",
        ]);
        let cached_input = cached_input.unwrap_or(0).min(prompt);
        // Gemini counts what its own tools put into the prompt beside the input.
        let of_tools = count(&["/toolUsePromptTokenCount", "/total_tool_use_tokens"]).unwrap_or(0);
        let input = (prompt - cached_input).saturating_add(of_tools);
        // Gemini counts thoughts beside the answer, OpenAI within it; and xAI, in OpenAI's words, beside it,
        // which the total shows.
        let thoughts = count(&["/thoughtsTokenCount", "/total_thought_tokens"]);
        let within = count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
        ]);
        let (output, reasoning) = match (thoughts, within) {
            (Some(thoughts), _) => (answer, thoughts),
            (None, Some(reasoning))
                if usage.total_tokens == Some(prompt.saturating_add(answer).saturating_add(reasoning)) =>
            {
                (answer, reasoning)
            }
            (None, Some(reasoning)) => {
                let reasoning = reasoning.min(answer);
                (answer - reasoning, reasoning)
            }
            (None, None) => (answer, 0),
        };
        Some(Self { input, cached_input, cache_write: 0, output, reasoning })
    }

    /// All of them together
    pub fn total(&self) -> u64 {
        [self.input, self.cached_input, self.cache_write, self.output, self.reasoning]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// A count, which some providers write with a decimal point
fn whole(count: &Value) -> Option<u64> {
    count.as_u64().or_else(|| count.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64))
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::usage;

    #[track_caller]
    fn tokens(raw: &str) -> Option<[u64; 5]> {
        let counted = usage::read(raw).expect("a report");
        let usage = Usage {
            input_tokens: counted.tokens.input,
            output_tokens: counted.tokens.output,
            total_tokens: counted.tokens.total,
            raw: counted.raw.to_owned(),
        };
        let Tokens { input, cached_input, cache_write, output, reasoning } = Tokens::of(&usage)?;
        Some([input, cached_input, cache_write, output, reasoning])
    }

    #[test]
    fn every_provider_is_counted_in_one_way() {
        for (provider, raw, expected) in [
            (
                "OpenAI Chat",
                r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
                   "prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":30}}"#,
                [36, 64, 0, 20, 30],
            ),
            (
                "OpenAI Responses",
                r#"{"input_tokens":100,"output_tokens":50,"total_tokens":150,
                   "input_tokens_details":{"cached_tokens":64},"output_tokens_details":{"reasoning_tokens":30}}"#,
                [36, 64, 0, 20, 30],
            ),
            (
                "xAI",
                r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150,
                   "completion_tokens_details":{"reasoning_tokens":30}}"#,
                [100, 0, 0, 20, 30],
            ),
            (
                "DeepSeek",
                r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10}"#,
                [10, 90, 0, 5, 0],
            ),
            (
                "Anthropic",
                r#"{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":7,"output_tokens":5}"#,
                [10, 90, 7, 5, 0],
            ),
            (
                "Gemini",
                r#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":5,
                   "thoughtsTokenCount":9,"toolUsePromptTokenCount":3,"totalTokenCount":117}"#,
                [43, 60, 0, 5, 9],
            ),
            (
                "Gemini Interactions",
                r#"{"total_tokens":16,"total_input_tokens":5,"total_output_tokens":2,"total_thought_tokens":9}"#,
                [5, 0, 0, 2, 9],
            ),
            ("Ollama", r#"{"prompt_eval_count":26,"eval_count":8}"#, [26, 0, 0, 8, 0]),
            ("Cohere", r#"{"tokens":{"input_tokens":26,"output_tokens":8}}"#, [26, 0, 0, 8, 0]),
            (
                "Cohere, billed",
                r#"{"billed_units":{"input_tokens":5.0,"output_tokens":2},"tokens":{"input_tokens":507,"output_tokens":10}}"#,
                [5, 0, 0, 2, 0],
            ),
        ] {
            assert_eq!(tokens(raw), Some(expected), "{provider}");
        }
        assert_eq!(tokens(r#"{"seconds":3}"#), None);
    }

    #[test]
    fn a_report_that_does_not_add_up_is_no_reason_to_panic() {
        let raw = r#"{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":9},
            "completion_tokens_details":{"reasoning_tokens":9}}"#;
        assert_eq!(tokens(raw), Some([0, 1, 0, 0, 2]));
    }
}
