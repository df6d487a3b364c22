//! A batch of records as the rows that a database is to hold.

use std::collections::BTreeMap;

use serde::Serialize;
use steadfast::relay::{Ending, Exchanged, Side};

use super::queue::{Over, Record, What};

/// What a batch says of each call, and the pieces in it
#[derive(Default)]
pub(super) struct Rows<'a> {
    calls: BTreeMap<i64, CallRow<'a>>,
    /// By call, side and start
    pieces: BTreeMap<(i64, i16, i64), (i64, &'a [u8])>,
}

/// The pieces, column by column
#[derive(Default)]
pub(super) struct PieceColumns<'a> {
    pub(super) calls: Vec<i64>,
    pub(super) sides: Vec<i16>,
    pub(super) starts: Vec<i64>,
    pub(super) ats: Vec<i64>,
    pub(super) bytes: Vec<&'a [u8]>,
}

/// What a batch says of a call, by the names of the columns; `None` is what it does not say
#[derive(Default, Serialize)]
struct CallRow<'a> {
    key: i64,
    begun: i64,
    size: i64,
    id: Option<&'a str>,
    ended: Option<i64>,
    app: Option<&'a str>,
    route: Option<&'a str>,
    method: Option<String>,
    target: Option<String>,
    request_head: Option<String>,
    status: Option<u16>,
    answered: Option<i64>,
    answer_head: Option<String>,
    ending: Option<&'a str>,
    code: Option<&'a str>,
    limit_hit: Option<&'a str>,
    sends: Option<u32>,
    request_bytes: Option<u64>,
    request_cut: Option<u64>,
    answer_bytes: Option<u64>,
    answer_cut: Option<u64>,
    timeline: Option<String>,
    waterfall: Option<String>,
}

impl<'a> Rows<'a> {
    pub(super) fn of(batch: &'a [Record]) -> Self {
        let mut rows = Self::default();
        for record in batch {
            let Record { key, at, what } = record;
            let new = || CallRow { key: *key, begun: *at, ..CallRow::default() };
            let row = rows.calls.entry(*key).or_insert_with(new);
            row.size = row.size.saturating_add(i64::try_from(record.weight()).unwrap_or(i64::MAX));
            match what {
                What::Request { method, target, fields } => {
                    row.method = Some(text(method));
                    row.target = Some(text(target));
                    row.request_head = Some(head(fields));
                }
                What::Answer { status, fields } => {
                    row.answered = Some(*at);
                    row.status = Some(*status);
                    row.answer_head = Some(head(fields));
                }
                What::Piece { side, offset, bytes } => {
                    let start = i64::try_from(*offset).unwrap_or(i64::MAX);
                    rows.pieces.insert((*key, number(*side), start), (*at, bytes));
                }
                What::Over(over) => row.end(*at, over),
            }
        }
        rows
    }

    /// The rows of calls, as a JSON array
    pub(super) fn calls(&self) -> String {
        let rows: Vec<&CallRow<'_>> = self.calls.values().collect();
        serde_json::to_string(&rows).unwrap_or_default()
    }

    pub(super) fn pieces(&self) -> PieceColumns<'a> {
        let mut columns = PieceColumns::default();
        for ((call, side, start), (at, bytes)) in &self.pieces {
            columns.calls.push(*call);
            columns.sides.push(*side);
            columns.starts.push(*start);
            columns.ats.push(*at);
            columns.bytes.push(bytes);
        }
        columns
    }

    /// What all of it weighs
    pub(super) fn size(&self) -> i64 {
        self.calls.values().fold(0, |sum, row| sum.saturating_add(row.size))
    }
}

impl<'a> CallRow<'a> {
    fn end(&mut self, ended: i64, over: &'a Over) {
        let Over { exchanged, begun, request, answer } = over;
        let Exchanged { request_id, ending, app, route, status, sends, timeline, .. } = exchanged;
        (self.code, self.limit_hit) = match ending {
            Ending::Refused(code) => (Some(code.name()), None),
            Ending::Limit(timer) => (None, Some(timer.name())),
            Ending::Passed | Ending::Served | Ending::Broken | Ending::AppLeft | Ending::Stopped => {
                (None, None)
            }
        };
        self.id = Some(request_id);
        self.begun = *begun;
        self.ended = Some(ended);
        self.app = app.as_deref();
        self.route = route.as_deref();
        self.status = status.map(|status| status.as_u16());
        self.ending = Some(ending.name());
        self.sends = Some(*sends);
        self.request_bytes = Some(request.came);
        self.request_cut = Some(request.cut);
        self.answer_bytes = Some(answer.came);
        self.answer_cut = Some(answer.cut);
        self.timeline = serde_json::to_string(timeline).ok();
        self.waterfall = Some(text(&timeline.to_string()));
    }
}

/// The number of a side in the tables
pub(super) const fn number(side: Side) -> i16 {
    match side {
        Side::Request => 0,
        Side::Answer => 1,
    }
}

/// A text that PostgreSQL takes, which knows no zero
fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Header fields as JSON, in which a zero is escaped: a list of name and value
fn head(fields: &[(String, String)]) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}
