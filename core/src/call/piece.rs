//! An item of a call, owned.

use bytes::Bytes;

use crate::call::Item;
use crate::outcome::{Delta, ToolKind};

/// An item of a call, copied out of the bytes it was lent from
///
/// Each variant is that of [`Item`] and [`Delta`]; see there. Pieces of the first choice are the
/// usual case: [`Piece::text`] is their text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// Text of the answer
    Text {
        /// Which of several answers; 0 where there is one
        choice: u32,
        /// The piece, never empty
        text: String,
    },
    /// Text of the model's reasoning
    Reasoning {
        /// Which of several answers
        choice: u32,
        /// The piece, never empty
        text: String,
    },
    /// Text with which the model declines
    Refusal {
        /// Which of several answers
        choice: u32,
        /// The piece, never empty
        text: String,
    },
    /// A tool call opens
    ToolCall {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice
        index: u32,
        /// Who runs the tool, and on what
        kind: ToolKind,
        /// The provider's id of the call
        id: String,
        /// The tool's name
        name: String,
    },
    /// A piece of a tool call's arguments
    ToolArguments {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice
        index: u32,
        /// The piece, never empty
        fragment: String,
    },
    /// Bytes of a body that was asked for as it comes, never empty
    Bytes(Bytes),
    /// An event of a kind that the dialect does not know
    Unknown {
        /// The event's SSE name
        name: String,
        /// The event's data
        data: String,
    },
    /// The answer is whole, though trailing usage may follow; [`Call::turn`](crate::call::Call::turn) has it
    Finished,
}

impl Piece {
    /// Text of the answer's first choice; empty for every other piece
    pub fn text(&self) -> &str {
        match self {
            Self::Text { choice: 0, text } => text,
            Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::Refusal { .. }
            | Self::ToolCall { .. }
            | Self::ToolArguments { .. }
            | Self::Bytes(_)
            | Self::Unknown { .. }
            | Self::Finished => "",
        }
    }
}

impl From<Item<'_>> for Piece {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Delta(Delta::Text { choice, text }) => Self::Text { choice, text: text.to_owned() },
            Item::Delta(Delta::Reasoning { choice, text }) => {
                Self::Reasoning { choice, text: text.to_owned() }
            }
            Item::Delta(Delta::Refusal { choice, text }) => Self::Refusal { choice, text: text.to_owned() },
            Item::Delta(Delta::ToolCall { choice, index, kind, id, name }) => {
                Self::ToolCall { choice, index, kind, id: id.to_owned(), name: name.to_owned() }
            }
            Item::Delta(Delta::ToolArguments { choice, index, fragment }) => {
                Self::ToolArguments { choice, index, fragment: fragment.to_owned() }
            }
            Item::Bytes(bytes) => Self::Bytes(Bytes::copy_from_slice(bytes)),
            Item::Unknown { name, data } => Self::Unknown { name: name.to_owned(), data: data.to_owned() },
            Item::Finished(_) => Self::Finished,
        }
    }
}
