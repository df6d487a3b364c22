//! One call, with all that was kept of it.

use std::fmt::Write as _;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use steadfast_relay::Side;
use steadfast_relay::record::{Body, Call, Calls, DatabaseError};

use super::table::utc;
use crate::output::for_terminal;

/// A call and its bodies
pub(super) struct One {
    call: Call,
    request: Body,
    answer: Body,
}

impl One {
    /// Errors: those of the database.
    pub(super) fn read(calls: &Calls, call: Call) -> Result<Self, DatabaseError> {
        let (request, answer) = (calls.body(&call, Side::Request)?, calls.body(&call, Side::Answer)?);
        Ok(Self { call, request, answer })
    }

    /// For people
    pub(super) fn text(&self) -> String {
        let Self { call, request, answer } = self;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mut text = format!("{}  {}\n", call.name(), call.ending());
        // A string takes all.
        _ = writeln!(
            text,
            "begun {} UTC · app {} · route {} · sends {}",
            utc(call.begun),
            or_none(&call.app),
            or_none(&call.route),
            call.sends
        );
        if let Some(waterfall) = &call.waterfall {
            _ = writeln!(text, "\n{waterfall}");
        }
        _ = writeln!(text, "\n{} {}", call.method, call.target);
        fields(&mut text, &call.request_head);
        body(&mut text, request, call.sizes(Side::Request));
        if let Some(status) = call.status {
            let whose =
                if call.answered.is_some() { "the provider's answer" } else { "the relay's own answer" };
            _ = writeln!(text, "\n{status} ({whose})");
            fields(&mut text, &call.answer_head);
            body(&mut text, answer, call.sizes(Side::Answer));
        }
        for_terminal(&text).into_owned()
    }
}

fn fields(text: &mut String, fields: &[(String, String)]) {
    for (name, value) in fields {
        _ = writeln!(text, "{name}: {value}");
    }
}

/// What was kept of a body, and where something is missing
fn body(text: &mut String, body: &Body, (came, cut): (u64, u64)) {
    let mut at = 0;
    text.push('\n');
    for (offset, bytes) in body.runs() {
        if offset > at {
            _ = writeln!(text, "\n[{} bytes are not recorded]", offset - at);
        }
        at = offset + bytes.len() as u64;
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if came > at {
        _ = writeln!(text, "[{} bytes are not recorded]", came - at);
    }
    let lost = came.saturating_sub(cut + body.kept());
    if lost > 0 {
        _ = writeln!(text, "[of {came} bytes {cut} are past the caps, and {lost} were dropped]");
    }
}

/// The call, and of each body its runs: `offset`, and `text` or `base64`
impl Serialize for One {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'o> {
            #[serde(flatten)]
            call: &'o Call,
            request_body: Runs<'o>,
            answer_body: Runs<'o>,
        }
        Whole { call: &self.call, request_body: Runs(&self.request), answer_body: Runs(&self.answer) }
            .serialize(serializer)
    }
}

struct Runs<'o>(&'o Body);

impl Serialize for Runs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.runs().into_iter().map(|(offset, bytes)| Run { offset, bytes }))
    }
}

struct Run {
    offset: u64,
    bytes: Vec<u8>,
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(2))?;
        out.serialize_entry("offset", &self.offset)?;
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => out.serialize_entry("text", text)?,
            Err(_) => out.serialize_entry("base64", &BASE64_STANDARD.encode(&self.bytes))?,
        }
        out.end()
    }
}
