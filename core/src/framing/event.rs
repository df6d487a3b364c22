//! What every framing hands out: events, and where their bytes lie.

/// An event, or an `error` line or a bare one of an event stream
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where the data lies: the `data` lines joined by LF, the value of the `error` line, the whole bare
    /// object, or the JSON of the line or array element
    pub data: Located,
    /// Where the event's name lies; `None` is "message", and so is every event that is no
    /// server-sent one
    pub name: Option<Located>,
    /// The field that brought the data
    pub field: Field,
}

/// The field that brought the data of an [`Event`]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `data`: an event as the standard has it, and every event that is no server-sent one
    Data,
    /// `error`, which the standard passes over: some llama.cpp servers report a failure by a line
    /// `error: {…}`. It is reported as soon as the line ends and leaves the pending event as it
    /// was, so a caller who skips it sees exactly the standard's events.
    Error,
    /// A line that begins with `{`, which the standard passes over as well: some proxies write an error
    /// as bare JSON into an event stream, and Gemini does so over several lines. As with `error`, it
    /// comes as soon as the line ends in which the object does; a field or a blank line before that is
    /// the end of it, and so is more than an event may have.
    Bare,
}

/// Where a piece of an event lies
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// In the input of the call that returned it
    Input {
        /// Offset of the first byte
        start: usize,
        /// Offset after the last byte
        end: usize,
    },
    /// In the framer, until its next call of `next`
    Kept {
        /// Offset of the first byte
        start: usize,
        /// Offset after the last byte
        end: usize,
    },
}

impl Event {
    /// An event without a name
    pub(super) fn unnamed(data: Located) -> Self {
        Self { data, name: None, field: Field::Data }
    }
}

impl Located {
    /// How many bytes there are
    pub fn len(self) -> usize {
        let (Self::Input { start, end } | Self::Kept { start, end }) = self;
        end - start
    }

    /// Whether there are none
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Without the first `count` bytes
    pub(super) fn skip(self, count: usize) -> Self {
        match self {
            Self::Input { start, end } => Self::Input { start: start + count, end },
            Self::Kept { start, end } => Self::Kept { start: start + count, end },
        }
    }

    /// The bytes, which lie in `input` or in `kept`
    pub(super) fn of<'a>(self, input: &'a [u8], kept: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Input { start, end } => &input[start..end],
            Self::Kept { start, end } => &kept[start..end],
        }
    }
}
