//! Dialects: what the events of each provider mean.
//!
//! | file | dialect |
//! |---|---|
//! | [`openai_chat`] | OpenAI Chat Completions and the servers compatible with it |
//! | [`openai_responses`] | OpenAI Responses |
//! | [`anthropic`] | Anthropic Messages |
//! | [`gemini`] | Gemini `streamGenerateContent` |
//! | [`Decoder`] | the dialects behind one type, and what their events have in common |
//! | [`findings`] | what a decoder finds in an event, as spans of its bytes |
//! | [`few`] | a list that is nearly always of one element |
//! | [`json`] | strings of a JSON document without copying them |
//! | `identity` | which of the response's id and model are known |
//! | `choices` | which answers have opened and finished |
//! | `tools` | which tool call a fragment belongs to |
//! | `usage` | what a provider counted |
//! | [`finish`] | the finish-reason table |
//! | [`provider_error`] | errors in a provider's own words, from bodies and from streams |

pub mod anthropic;
mod choices;
mod decoder;
pub mod few;
pub mod findings;
pub mod finish;
pub mod gemini;
mod identity;
pub mod json;
pub mod openai_chat;
pub mod openai_responses;
pub mod provider_error;
#[cfg(test)]
mod testing;
mod tools;
mod usage;

use crate::outcome::ProviderError;
pub use decoder::{Decoder, Dialect};
use findings::Findings;

/// Decodes the events of one answer
///
/// A decoder is fed each event of one response in order. It holds only what it needs to number
/// tool calls and to know whether the turn has ended; the text goes out through [`Findings`].
pub trait Decode {
    /// Takes in one event: its SSE name (`"message"` where unset) and its data
    ///
    /// Errors: [`Malformed`] where the data is not what the dialect can be (rule STR-8).
    fn event(&mut self, name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed>;

    /// Takes in a whole unary answer, with the same findings as the stream of it would give
    ///
    /// Errors: [`Malformed`] where the body is not JSON.
    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed>;

    /// What is known of the turn's end
    fn progress(&self) -> Progress;
}

/// How far a turn is
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// More of the answer is to come
    #[default]
    Open,
    /// The completion marker came: the answer is whole, usage or the sentinel may follow
    Marked,
    /// The sentinel came: nothing of interest follows
    Ended,
}

/// Data that cannot be an event of this dialect
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// What is wrong, without quoting the data
    pub reason: String,
}

/// The error that `text`, an event which reports one, reports in whatever form
fn in_band_error(text: &str) -> ProviderError {
    provider_error::from_raw(text).unwrap_or_else(|| ProviderError {
        kind: Some("error".to_owned()),
        message: text.to_owned(),
        ..ProviderError::default()
    })
}
