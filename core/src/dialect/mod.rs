//! Dialects: what the events of each provider mean.
//!
//! | file | dialect |
//! |---|---|
//! | [`openai_chat`] | OpenAI Chat Completions, completions, and the servers compatible with them |
//! | [`openai_responses`] | OpenAI Responses |
//! | [`anthropic`] | Anthropic Messages |
//! | [`gemini`] | Gemini `streamGenerateContent` |
//! | [`gemini_interactions`] | Gemini Interactions |
//! | [`ollama`] | Ollama's own `/api/chat` and `/api/generate` |
//! | [`cohere`] | Cohere v2 chat |
//! | [`Definition`] | what is known of a dialect before any event came |
//! | [`Decoder`] | the dialects behind one type, and what their events have in common |
//! | [`findings`] | what a decoder finds in an event, as spans of its bytes |
//! | [`few`] | a list that is nearly always of one element |
//! | [`json`] | strings of a JSON document without copying them |
//! | `repeats` | JSON objects that repeat a member |
//! | [`identity`] | which of the response's id and model are known |
//! | [`choices`] | which answers have opened and finished |
//! | [`tools`] | which tool call a fragment belongs to |
//! | [`blocks`] | the parts of an answer that open, grow and stop by number |
//! | [`usage`] | what a provider counted |
//! | [`finish`] | the finish-reason table |
//! | [`provider_error`] | errors in a provider's own words, from bodies and from streams |
//!
//! # What has no place in a turn
//!
//! A turn holds text, reasoning, refusals, tool calls, finish reasons, usage and signatures. An event that says
//! anything else goes to the consumer as it came, after its deltas ([`Finding::Unknown`]):
//!
//! - an event, block, item, step or delta of a kind that the dialect does not know, such as what a
//!   provider's own tool found;
//! - an event with citations, which every provider gives in a form of its own: `annotations` and
//!   `citations` of OpenAI Chat and its like, `response.output_text.annotation.added`, Anthropic's
//!   `citations_delta`, Gemini's grounding and citation metadata, annotations of Gemini Interactions,
//!   Cohere's `citation-start`;
//! - an event with sounds, pictures, files or code: `audio`, `images` and parts that are no text of
//!   OpenAI Chat, Gemini's parts that are neither text nor function calls, content of Cohere that is
//!   no text, `images` and `image` of Ollama;
//! - an event with `reasoning_details` of OpenAI Chat and its like, which have to be sent back, and
//!   whose text is in `reasoning` as well;
//! - an event of Gemini with a streamed argument whose place is not found.
//!
//! Members that a dialect does not know, in an event that it knows, are passed over. A unary answer
//! passes nothing on: its body is there as a whole.
//!
//! # Members of a wrong type
//!
//! A member that is null or empty in whatever type (`""`, `[]`, `{}`) says nothing where another type
//! is due, and so does a member of any type that brings neither words nor calls. Where words or calls
//! are due, a value that cannot be read as such is never passed over: it is [`Malformed`], in a stream
//! and in a whole body, in every dialect.
//!
//! # Adding a dialect
//!
//! A dialect is one file: a [`Definition`], and a decoder, which is a struct with what must be
//! remembered from event to event, the [`Decode`] of it, and structs for the members that are looked
//! at. [`ollama`] is the one to copy. Another crate adds one in the same way; it needs `serde` with
//! `derive`, and `serde_json` with `raw_value`. This one has all that a turn holds:
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::value::RawValue;
//! use steadfast::call::Request;
//! use steadfast::dialect::choices::Choices;
//! use steadfast::dialect::findings::{Finding, Findings};
//! use steadfast::dialect::identity::Identity;
//! use steadfast::dialect::json::{self, JsonStr, Member};
//! use steadfast::dialect::tools::Fragment;
//! use steadfast::dialect::usage::{Counted, Tokens};
//! use steadfast::dialect::{Decode, Decoder, Definition, Dialect, Malformed, Progress};
//! use steadfast::dialect::{finish, provider_error};
//! use steadfast::framing::Framing;
//! use steadfast::outcome::Turn;
//!
//! /// `{"say": "Hi"}`, and `{"stop": "end_turn"}` at the end
//! static PARROT: Definition = Definition {
//!     name: "parrot",
//!     framing: Framing::Sse,
//!     framing_of_json: None,
//!     has_sentinel: true,
//!     decoder: || Decoder::Custom(Box::new(Parrot::default())),
//! };
//!
//! #[derive(Debug, Default)]
//! struct Parrot {
//!     choices: Choices,
//!     identity: Identity,
//!     ended: bool,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Line<'a> {
//!     #[serde(borrow)]
//!     id: JsonStr<'a>,
//!     model: JsonStr<'a>,
//!     think: JsonStr<'a>,
//!     say: JsonStr<'a>,
//!     call: Member<Call<'a>>,
//!     picture: Option<&'a RawValue>,
//!     stop: JsonStr<'a>,
//!     count: Option<&'a RawValue>,
//!     error: Option<&'a RawValue>,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Call<'a> {
//!     #[serde(borrow)]
//!     number: JsonStr<'a>,
//!     id: JsonStr<'a>,
//!     name: JsonStr<'a>,
//!     arguments: Option<&'a RawValue>,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Count<'a> {
//!     #[serde(borrow)]
//!     heard: JsonStr<'a>,
//!     said: JsonStr<'a>,
//! }
//!
//! impl Decode for Parrot {
//!     fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
//!         let line = json::read::<Line<'_>>(data)?;
//!         if json::says_something(line.error) {
//!             findings.push(Finding::Error(provider_error::from_raw(data).unwrap_or_default()));
//!             return Ok(());
//!         }
//!         self.identity.push(data, line.id, line.model, findings);
//!         let open = self.choices.open(0, findings)?;
//!         findings.push_piece(data, line.think, |text| Finding::Reasoning { choice: 0, text })?;
//!         findings.push_piece(data, line.say, |text| Finding::Text { choice: 0, text })?;
//!         if let Some(Call { number, id, name, arguments }) = line.call.present()? {
//!             let key = number.index();
//!             open.tools.take(data, findings, 0, Fragment { key, id, name, arguments, ..Fragment::default() })?;
//!         }
//!         self.ended |= finish::push(findings, data, 0, line.stop, JsonStr::default());
//!         if let Some(raw) = line.count {
//!             let count = json::object::<Count<'_>>(Some(raw)).unwrap_or_default();
//!             let tokens = Tokens { input: count.heard.number(), output: count.said.number(), total: None };
//!             findings.push_usage(data, Counted { tokens, raw: raw.get() });
//!         }
//!         // A turn has no place for a picture, so the event goes to the caller as it came.
//!         if json::says_something(line.picture) {
//!             findings.push(Finding::Unknown);
//!         }
//!         Ok(())
//!     }
//!
//!     fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
//!         self.event("message", body, findings)?;
//!         self.ended = true;
//!         Ok(())
//!     }
//!
//!     fn progress(&self) -> Progress {
//!         if self.ended { Progress::Ended } else { Progress::Open }
//!     }
//! }
//!
//! // A call is sent with it as with any other dialect, by whichever driver.
//! let dialect = Dialect::Custom(&PARROT);
//! let request = Request::post("http://localhost/talk").body("{}").dialect(dialect).stream().build()?;
//! assert_eq!(request.dialect().map(Dialect::name), Some("parrot"));
//!
//! // A recorded stream, as a test plays it.
//! let (mut decoder, mut findings) = (Decoder::new(dialect), Findings::default());
//! let (mut turn, mut unknown) = (Turn::default(), 0);
//! for data in [
//!     r#"{"id":"p1","model":"grey","think":"Hm","say":"Hell\u006f"}"#,
//!     ": not for the dialect",
//!     r#"{"call":{"number":0,"id":"t1","name":"fly","arguments":"{\"to\":"}}"#,
//!     r#"{"call":{"number":0,"arguments":"\"sea\"}"}}"#,
//!     r#"{"say":"!","picture":"eA==","stop":"end_turn","count":{"heard":5,"said":2}}"#,
//! ] {
//!     decoder.event("message", data, &mut findings)?;
//!     while let Some(finding) = findings.take().cloned() {
//!         finding.apply(&mut turn, &findings, data);
//!         unknown += usize::from(finding == Finding::Unknown);
//!     }
//!     findings.clear();
//! }
//! assert_eq!((turn.text(), turn.finish_reason(), unknown), ("Hello!", Some("end_turn"), 1));
//! assert_eq!(turn.choices[0].tool_calls[0].arguments, r#"{"to":"sea"}"#);
//! assert_eq!(turn.usage.and_then(|usage| usage.output_tokens), Some(2));
//! assert_eq!(decoder.progress(), Progress::Ended);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The half hour goes into these:
//!
//! 1. Read members as [`json::JsonStr`], [`json::Member`], [`few::Few`] and `Option<&RawValue>`:
//!    nothing is copied, and null, absence and a number in place of a string are all taken, as servers
//!    send them. Lists of parts that may be plain text are read by [`json::parts`].
//! 2. Give words to [`findings::Findings::push_piece`] and calls to [`tools::Tools`], and hand on their
//!    errors: they are how a value that cannot be read is kept from being lost.
//! 3. Give the end to [`Progress`]: `Marked` where the answer is whole but usage or a sentinel may
//!    follow, `Ended` at the sentinel. Nothing else makes a call succeed.
//! 4. Give finish reasons to [`finish::push`], whose table says what they mean; a word that is not in
//!    it is an incomplete answer. An error inside the answer is a [`Finding::Error`], and
//!    [`provider_error::from_raw`] reads most spellings.
//! 5. Give counts to [`findings::Findings::push_usage`]. [`usage::read`] knows the names of many
//!    providers; others are put into a [`usage::Counted`], as above. Its `raw` is the provider's own
//!    report: a JSON object, which may be part of the event.
//! 6. Give what the provider signs to [`findings::Findings::push_signature`], right after the part that
//!    is signed: it has to be sent back with the answer.
//! 7. Say [`Finding::Unknown`] of an event whose kind is not known, and of one with something that has
//!    no place in a turn, so that the caller gets it as it came.
//! 8. Open every choice with [`choices::Choices`] and number tool calls with [`tools::Tools`] (or
//!    [`blocks::Blocks`], where parts start and stop): they bound what a peer can make us hold, and
//!    they know how fragments go astray.
//! 9. Payloads that are empty, `null` or a comment, plain text in an event named `ping` or the like,
//!    and events named `error`, do not reach a decoder. `[DONE]` does: it is the sentinel, or to be
//!    passed over.
//! 10. Play a recorded stream of the provider, and a unary answer, and compare the turns.
//!     `tests/tests/foreign_dialect.rs` of the repository drives whole calls with such a dialect.
//!
//! A dialect of ours is moreover a variant of [`Dialect`] and of [`Decoder`], a line in the table
//! above, and cases in the conformance data.
//!
//! [`Finding::Unknown`]: findings::Finding::Unknown
//! [`Finding::Error`]: findings::Finding::Error

#[cfg(test)]
mod agreement;
pub mod anthropic;
pub mod blocks;
pub mod choices;
pub mod cohere;
mod decoder;
mod definition;
pub mod few;
pub mod findings;
pub mod finish;
pub mod gemini;
pub mod gemini_interactions;
pub mod identity;
pub mod json;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
pub mod provider_error;
mod repeats;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod testing;
pub mod tools;
pub mod usage;

use crate::outcome::ProviderError;
pub use decoder::{Decoder, Dialect};
pub use definition::Definition;
use findings::Findings;

/// Decodes the events of one answer
///
/// A decoder is fed each event of one response in order. It holds only what it needs to number
/// tool calls and to know whether the turn has ended; the text goes out through [`Findings`].
pub trait Decode: std::fmt::Debug + Send + Sync {
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

    /// Bytes of the answer that it keeps from event to event and has yet to hand over in findings
    ///
    /// They count against `max_body_bytes`, as the answer does. None, where a dialect keeps no more than
    /// ids, names and counts.
    fn held(&self) -> usize {
        0
    }
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

impl Malformed {
    /// JSON, but not as the dialect has it
    fn shape(what: &str) -> Self {
        Self { reason: format!("JSON of an unexpected shape: {what}") }
    }
}

/// The error that `text`, an event which reports one, reports in whatever form
fn in_band_error(text: &str) -> ProviderError {
    provider_error::from_raw(text).unwrap_or_else(|| ProviderError {
        kind: Some("error".to_owned()),
        message: text.to_owned(),
        ..ProviderError::default()
    })
}
