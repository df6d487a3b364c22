//! One event, in one line.

use serde::{Deserialize, Serialize};

use super::bodies::Content;
use crate::body::WINDOW_BYTES;
use crate::call::{AttemptId, Call, Fact};
use crate::http1::ResponseHead;
use crate::machine::{Ended, Event, IoFailure, Supply};
use crate::time::Instant;

/// An event that a call accepted, and when
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EventLine<'a> {
    pub(super) at: Instant,
    #[serde(flatten)]
    pub(super) told: Told<'a>,
}

/// What a call was told; see the table of [`super`]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Told<'a> {
    Start,
    Elapsed,
    Taken,
    Cancel,
    Connected {
        link: AttemptId,
    },
    Reused {
        link: AttemptId,
    },
    Sent {
        link: AttemptId,
        bytes: usize,
    },
    Supplied {
        link: AttemptId,
        bytes: usize,
    },
    HeadSupplied {
        link: AttemptId,
        /// Names, and what stands for the values
        fields: Vec<(String, String)>,
    },
    SupplyEnded {
        link: AttemptId,
    },
    SupplyFailed {
        link: AttemptId,
        message: String,
    },
    Received {
        link: AttemptId,
        #[serde(flatten)]
        content: Content<'a>,
    },
    Eof {
        link: AttemptId,
        ended: Ended,
    },
    Failed {
        link: AttemptId,
        failure: IoFailure,
    },
    Head {
        link: AttemptId,
        #[serde(flatten)]
        head: HeadLine,
    },
    Body {
        link: AttemptId,
        #[serde(flatten)]
        content: Content<'a>,
    },
    End {
        link: AttemptId,
    },
    RetryRefused {
        link: AttemptId,
    },
    ConsumerFailed {
        message: String,
    },
}

/// The head of a response: its status and its header fields
///
/// Every byte of a value is the character of that number, so that any value can be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeadLine {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

/// An event as the recorder takes it: bytes apart, for they are searched before they are written
pub(crate) enum Noted<'e> {
    /// Bytes of a connection; of a body, where another transport parsed it
    Bytes { link: AttemptId, of_body: bool, bytes: &'e [u8] },
    /// Anything else
    Other(Other),
}

/// An event without bytes
pub(crate) struct Other(pub(super) Told<'static>);

impl<'e> Noted<'e> {
    pub(crate) fn of(event: &Event<'e, Call>) -> Self {
        Self::Other(Other(match event {
            Event::Received(link, bytes) => return Self::Bytes { link: *link, of_body: false, bytes },
            Event::Fact(Fact::Body(link, bytes)) => {
                return Self::Bytes { link: *link, of_body: true, bytes };
            }
            Event::Start => Told::Start,
            Event::Elapsed => Told::Elapsed,
            Event::Taken => Told::Taken,
            Event::Cancel => Told::Cancel,
            Event::Connected(link) => Told::Connected { link: *link },
            Event::Reused(link) => Told::Reused { link: *link },
            Event::Sent(link, bytes) => Told::Sent { link: *link, bytes: *bytes },
            Event::Supplied(link, supply) => match supply {
                Supply::Bytes(bytes) => Told::Supplied { link: *link, bytes: bytes.len() },
                Supply::Head(fields) => {
                    Told::HeadSupplied { link: *link, fields: crate::call::blanked(fields) }
                }
                Supply::End => Told::SupplyEnded { link: *link },
                Supply::Failed(message) => Told::SupplyFailed { link: *link, message: message.clone() },
            },
            Event::Eof(link, ended) => Told::Eof { link: *link, ended: *ended },
            Event::Failed(link, failure) => Told::Failed { link: *link, failure: failure.clone() },
            Event::Fact(Fact::Head(link, head)) => Told::Head { link: *link, head: HeadLine::of(head) },
            Event::Fact(Fact::End(link)) => Told::End { link: *link },
            Event::Fact(Fact::RetryRefused(link)) => Told::RetryRefused { link: *link },
            Event::Fact(Fact::ConsumerFailed(message)) => {
                Told::ConsumerFailed { message: (*message).to_owned() }
            }
        }))
    }
}

impl HeadLine {
    pub(super) fn of(head: &ResponseHead) -> Self {
        let text = |value: &[u8]| value.iter().map(|byte| char::from(*byte)).collect();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        Self { status: head.status.as_u16(), headers: headers.collect() }
    }

    /// The head; `None` where no head can be like that
    fn head(&self) -> Option<ResponseHead> {
        let headers = header_map(&self.headers)?;
        let status = http::StatusCode::from_u16(self.status).ok()?;
        Some(ResponseHead { version: http::Version::HTTP_11, status, reason: bytes::Bytes::new(), headers })
    }
}

/// Header fields; `None` where none can be like that
fn header_map(fields: &[(String, String)]) -> Option<http::HeaderMap> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in fields {
        let bytes: Option<Vec<u8>> = value.chars().map(|char| u8::try_from(char).ok()).collect();
        let value = http::HeaderValue::from_bytes(&bytes?).ok()?;
        headers.try_append(http::HeaderName::try_from(name).ok()?, value).ok()?;
    }
    Some(headers)
}

/// An event that was read from a trace
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) at: Instant,
    told: Told<'static>,
    bytes: Vec<u8>,
    head: Option<ResponseHead>,
    /// Header fields that were made for an attempt
    fields: Option<http::HeaderMap>,
}

/// What an event line lacks to be fed again
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    Bytes,
    Head,
}

impl Happened {
    /// Errors: the line does not hold what the event needs.
    pub(super) fn of(line: EventLine<'static>) -> Result<Self, Lacking> {
        let EventLine { at, mut told } = line;
        let (mut bytes, mut made, mut fields_made) = (Vec::new(), None, None);
        match &mut told {
            Told::Received { content, .. } | Told::Body { content, .. } => {
                let content = std::mem::replace(content, Content::EMPTY);
                bytes = content.whole().ok_or(Lacking::Bytes)?;
            }
            Told::Head { head, .. } => made = Some(head.head().ok_or(Lacking::Head)?),
            // No byte of a request is in a trace, and any other does as well.
            Told::HeadSupplied { fields, .. } => fields_made = Some(header_map(fields).ok_or(Lacking::Head)?),
            Told::Supplied { bytes: len, .. } if *len > WINDOW_BYTES => return Err(Lacking::Bytes),
            Told::Supplied { bytes: len, .. } => bytes = vec![0; *len],
            Told::Start
            | Told::Elapsed
            | Told::Taken
            | Told::Cancel
            | Told::Connected { .. }
            | Told::Reused { .. }
            | Told::Sent { .. }
            | Told::SupplyEnded { .. }
            | Told::SupplyFailed { .. }
            | Told::Eof { .. }
            | Told::Failed { .. }
            | Told::End { .. }
            | Told::RetryRefused { .. }
            | Told::ConsumerFailed { .. } => {}
        }
        Ok(Self { at, told, bytes, head: made, fields: fields_made })
    }

    pub(super) fn told(&self) -> &Told<'static> {
        &self.told
    }

    /// The connection that it is about
    pub(super) fn link(&self) -> Option<AttemptId> {
        match &self.told {
            Told::Start | Told::Elapsed | Told::Taken | Told::Cancel | Told::ConsumerFailed { .. } => None,
            Told::Connected { link }
            | Told::Reused { link }
            | Told::Sent { link, .. }
            | Told::Supplied { link, .. }
            | Told::HeadSupplied { link, .. }
            | Told::SupplyEnded { link }
            | Told::SupplyFailed { link, .. }
            | Told::Received { link, .. }
            | Told::Eof { link, .. }
            | Told::Failed { link, .. }
            | Told::Head { link, .. }
            | Told::Body { link, .. }
            | Told::RetryRefused { link }
            | Told::End { link } => Some(*link),
        }
    }

    pub(super) fn is_sent(&self) -> bool {
        matches!(self.told, Told::Sent { .. })
    }

    pub(super) fn is_supplied(&self) -> bool {
        matches!(
            self.told,
            Told::HeadSupplied { .. }
                | Told::Supplied { .. }
                | Told::SupplyEnded { .. }
                | Told::SupplyFailed { .. }
        )
    }

    /// The same for a call
    pub(super) fn event(&self) -> Event<'_, Call> {
        match &self.told {
            Told::Start => Event::Start,
            Told::Elapsed => Event::Elapsed,
            Told::Taken => Event::Taken,
            Told::Cancel => Event::Cancel,
            Told::Connected { link } => Event::Connected(*link),
            Told::Reused { link } => Event::Reused(*link),
            Told::Sent { link, bytes } => Event::Sent(*link, *bytes),
            Told::Supplied { link, .. } => Event::Supplied(*link, Supply::Bytes(&self.bytes)),
            Told::HeadSupplied { link, .. } => {
                let fields = self.fields.clone().expect("made when the line was read");
                Event::Supplied(*link, Supply::Head(fields))
            }
            Told::SupplyEnded { link } => Event::Supplied(*link, Supply::End),
            Told::SupplyFailed { link, message } => Event::Supplied(*link, Supply::Failed(message.clone())),
            Told::Received { link, .. } => Event::Received(*link, &self.bytes),
            Told::Eof { link, ended } => Event::Eof(*link, *ended),
            Told::Failed { link, failure } => Event::Failed(*link, failure.clone()),
            Told::Head { link, .. } => {
                let head = self.head.clone().expect("made when the line was read");
                Event::Fact(Fact::Head(*link, head))
            }
            Told::Body { link, .. } => Event::Fact(Fact::Body(*link, &self.bytes)),
            Told::End { link } => Event::Fact(Fact::End(*link)),
            Told::RetryRefused { link } => Event::Fact(Fact::RetryRefused(*link)),
            Told::ConsumerFailed { message } => Event::Fact(Fact::ConsumerFailed(message)),
        }
    }
}
