//! What the core knows of a dialect before any event of it came: one table row for each.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::decoder::Decoder;
use crate::framing::Framing;

/// What there is to know of a dialect besides what its events mean
///
/// Two definitions are the same if their names are.
#[derive(Clone, Copy)]
pub struct Definition {
    /// Its name in configuration and messages, which no other dialect has
    pub name: &'static str,
    /// How the events of a stream are framed
    pub framing: Framing,
    /// How they are framed where the server calls the body `application/json`; `None` where that is no
    /// stream but one JSON document, the whole answer at once
    pub framing_of_json: Option<Framing>,
    /// Whether its streams have a sentinel; one without ends with its body
    pub has_sentinel: bool,
    /// Makes a decoder that has seen nothing yet
    pub decoder: fn() -> Decoder,
}

impl Definition {
    /// How a body with this `Content-Type` is framed, that answers a request for a stream; `None` for
    /// one JSON document
    ///
    /// Servers mislabel streams in every way, so the only type that is believed is
    /// `application/json`; that is what a server says that answers at once instead.
    pub fn framing(&self, content_type: Option<&str>) -> Option<Framing> {
        let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        if essence.trim_ascii().eq_ignore_ascii_case("application/json") {
            self.framing_of_json
        } else {
            Some(self.framing)
        }
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Definition {}

impl Hash for Definition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dialect;
    use super::*;

    #[test]
    fn every_dialect_says_how_its_bodies_are_framed() {
        use Framing::{JsonArray, Ndjson, Sse};
        let table = [
            (Dialect::OpenAiChat, Sse, None),
            (Dialect::OpenAiCompletions, Sse, None),
            (Dialect::OpenAiResponses, Sse, None),
            (Dialect::Anthropic, Sse, None),
            (Dialect::Gemini, Sse, Some(JsonArray)),
            (Dialect::GeminiInteractions, Sse, None),
            (Dialect::Ollama, Ndjson, Some(Ndjson)),
            (Dialect::Cohere, Sse, None),
        ];
        assert_eq!(table.map(|(dialect, ..)| dialect), Dialect::ALL);
        for (dialect, stream, json) in table {
            for content_type in
                [None, Some("text/event-stream"), Some("text/plain"), Some(""), Some("application/x-ndjson")]
            {
                assert_eq!(dialect.framing(content_type), Some(stream), "{dialect:?} {content_type:?}");
            }
            for content_type in ["application/json", "Application/JSON ; charset=utf-8"] {
                assert_eq!(dialect.framing(Some(content_type)), json, "{dialect:?} {content_type}");
            }
        }
    }
}
