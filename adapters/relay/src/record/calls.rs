//! Reads records again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use steadfast::relay::Side;

use super::database::{Database, DatabaseError};
use super::postgres::Postgres;
use super::sqlite::Sqlite;

/// Reads the records of a database, also while a relay writes them
pub struct Calls(Reader);

enum Reader {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Mutex<Postgres>>),
}

/// A call that went through a relay; times are microseconds since 1970, sizes are bytes
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What it is named by in the database: it rises with the time at which calls began
    pub key: i64,
    /// Its request id, as the relay's own answers have it; `None` until it is over
    pub id: Option<String>,
    /// When its first byte came
    pub begun: i64,
    /// When it was over; `None` where it goes on, or its relay was killed
    pub ended: Option<i64>,
    /// The label of the app's key
    pub app: Option<String>,
    /// The name of its route
    pub route: Option<String>,
    /// The request's method; empty where its head never came whole
    pub method: String,
    /// The request's path and query, without credentials
    pub target: String,
    /// The request's header fields, without credentials
    pub request_head: Vec<(String, String)>,
    /// The status that the app got
    pub status: Option<u16>,
    /// When the head of the provider's answer came
    pub answered: Option<i64>,
    /// The header fields of the provider's answer, without credentials
    pub answer_head: Vec<(String, String)>,
    /// How it ended: a name of [`Ending`](steadfast::relay::Ending)
    pub ending: Option<String>,
    /// The relay's own error
    pub code: Option<String>,
    /// The limit that ended it
    pub limit_hit: Option<String>,
    /// How often it was sent
    pub sends: u32,
    /// The request's body
    pub request_bytes: u64,
    /// What of it lies past the cap
    pub request_cut: u64,
    /// The answer's body
    pub answer_bytes: u64,
    /// What of it lies between the caps
    pub answer_cut: u64,
    /// Attempts, waits and phases, as JSON
    pub timeline: Option<String>,
    /// The same, drawn
    pub waterfall: Option<String>,
}

/// What was kept of a body
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The pieces as they came, in their order
    pub pieces: Vec<BodyPiece>,
}

/// Bytes of a body
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPiece {
    /// Where in the body they begin
    pub offset: u64,
    /// When they came, in microseconds since 1970
    pub at: i64,
    /// In which each credential is replaced by as many bytes that mean nothing
    pub bytes: Vec<u8>,
}

impl Calls {
    /// Opens the records of a database that exists
    ///
    /// Errors: there is none, or it holds something else.
    pub fn open(database: &Database) -> Result<Self, DatabaseError> {
        match database {
            Database::File(path) => Ok(Self(Reader::Sqlite(Box::new(Sqlite::read(path)?)))),
            Database::Postgres(url) => {
                let mut postgres = Postgres::reader(url)?;
                postgres.connect()?;
                Ok(Self(Reader::Postgres(Box::new(Mutex::new(postgres)))))
            }
        }
    }

    /// The newest calls, at most so many, the newest one first
    ///
    /// Errors: those of the database, here and below.
    pub fn recent(&self, most: u32) -> Result<Vec<Call>, DatabaseError> {
        match &self.0 {
            Reader::Sqlite(sqlite) => sqlite.recent(most),
            Reader::Postgres(postgres) => held(postgres).recent(most),
        }
    }

    /// The calls that were over at `at`, in microseconds since 1970, or later: at most so many, the
    /// earliest one first
    pub fn ended_since(&self, at: i64, most: u32) -> Result<Vec<Call>, DatabaseError> {
        match &self.0 {
            Reader::Sqlite(sqlite) => sqlite.ended_since(at, most),
            Reader::Postgres(postgres) => held(postgres).ended_since(at, most),
        }
    }

    /// A call by its name: see [`Call::name`]
    pub fn find(&self, name: &str) -> Result<Option<Call>, DatabaseError> {
        let key = name.strip_prefix(Call::KEY_PREFIX).and_then(|key| key.parse().ok());
        match &self.0 {
            Reader::Sqlite(sqlite) => sqlite.find(name, key),
            Reader::Postgres(postgres) => held(postgres).find(name, key),
        }
    }

    /// What was kept of the body of a call's request, or of its answer
    pub fn body(&self, call: &Call, side: Side) -> Result<Body, DatabaseError> {
        let pieces = match &self.0 {
            Reader::Sqlite(sqlite) => sqlite.pieces(call.key, side),
            Reader::Postgres(postgres) => held(postgres).pieces(call.key, side),
        };
        Ok(Body { pieces: pieces? })
    }
}

fn held(postgres: &Mutex<Postgres>) -> MutexGuard<'_, Postgres> {
    postgres.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Call {
    const KEY_PREFIX: &str = "key_";

    /// Its request id; its key behind `key_` where it has none yet
    pub fn name(&self) -> String {
        self.id.clone().unwrap_or_else(|| format!("{}{}", Self::KEY_PREFIX, self.key))
    }

    /// How it ended in one word or two: the limit or the relay's own error where there is one
    pub fn ending(&self) -> String {
        match (&self.ending, &self.code, &self.limit_hit) {
            (None, ..) => "unfinished".to_owned(),
            (Some(_), Some(code), _) => code.clone(),
            (Some(ending), None, Some(limit)) => format!("{ending} {limit}"),
            (Some(ending), None, None) => ending.clone(),
        }
    }

    /// How many bytes of the bodies' there are, and how many the caps cut
    pub const fn sizes(&self, side: Side) -> (u64, u64) {
        match side {
            Side::Request => (self.request_bytes, self.request_cut),
            Side::Answer => (self.answer_bytes, self.answer_cut),
        }
    }
}

impl Body {
    /// How many bytes were kept
    pub fn kept(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// The runs of bytes without a gap in them, each with the place where it begins
    pub fn runs(&self) -> Vec<(u64, Vec<u8>)> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for piece in &self.pieces {
            match runs.last_mut() {
                Some((offset, bytes)) if *offset + bytes.len() as u64 == piece.offset => {
                    bytes.extend_from_slice(&piece.bytes);
                }
                Some(_) | None => runs.push((piece.offset, piece.bytes.clone())),
            }
        }
        runs
    }
}

/// Times in seconds since 1970, and the timeline as it is
impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = |at: i64| at as f64 / 1e6;
        let timeline = self
            .timeline
            .as_deref()
            .and_then(|json| serde_json::value::RawValue::from_string(json.to_owned()).ok());
        let mut out = serializer.serialize_struct("Call", 20)?;
        out.serialize_field("id", &self.name())?;
        out.serialize_field("begun", &seconds(self.begun))?;
        out.serialize_field("ended", &self.ended.map(seconds))?;
        out.serialize_field("app", &self.app)?;
        out.serialize_field("route", &self.route)?;
        out.serialize_field("method", &self.method)?;
        out.serialize_field("target", &self.target)?;
        out.serialize_field("status", &self.status)?;
        out.serialize_field("ending", &self.ending)?;
        out.serialize_field("code", &self.code)?;
        out.serialize_field("limit", &self.limit_hit)?;
        out.serialize_field("sends", &self.sends)?;
        out.serialize_field("request_bytes", &self.request_bytes)?;
        out.serialize_field("request_cut", &self.request_cut)?;
        out.serialize_field("request_head", &self.request_head)?;
        out.serialize_field("answered", &self.answered.map(seconds))?;
        out.serialize_field("answer_bytes", &self.answer_bytes)?;
        out.serialize_field("answer_cut", &self.answer_cut)?;
        out.serialize_field("answer_head", &self.answer_head)?;
        out.serialize_field("timeline", &timeline)?;
        out.end()
    }
}
