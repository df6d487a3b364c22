//! Records in a SQLite file.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, params};
use steadfast::relay::{Ending, Exchanged, Side};

use super::calls::{BodyPiece, Call};
use super::database::DatabaseError;
use super::queue::{Over, Record, What};

/// The version of the tables
const VERSION: i64 = 1;
/// How long another process may keep the file to itself
const BUSY: Duration = Duration::from_secs(5);
/// The most pages that a deletion gives back to the system
const VACUUM_PAGES: u32 = 2_048;

/// Times are microseconds since 1970, sizes are bytes; `side` is 0 for the request and 1 for the answer
const TABLES: &str = "
CREATE TABLE calls (
    key INTEGER PRIMARY KEY,
    id TEXT,
    begun INTEGER NOT NULL,
    ended INTEGER,
    app TEXT,
    route TEXT,
    method TEXT,
    target TEXT,
    request_head TEXT,
    status INTEGER,
    answered INTEGER,
    answer_head TEXT,
    ending TEXT,
    code TEXT,
    limit_hit TEXT,
    sends INTEGER,
    request_bytes INTEGER,
    request_cut INTEGER,
    answer_bytes INTEGER,
    answer_cut INTEGER,
    timeline TEXT,
    waterfall TEXT
);
CREATE INDEX calls_by_id ON calls (id);
CREATE INDEX calls_by_end ON calls (ended);
CREATE TABLE pieces (
    call INTEGER NOT NULL,
    side INTEGER NOT NULL,
    start INTEGER NOT NULL,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (call, side, start)
);
";

/// The columns of a [`Call`], in the order in which they are read
const COLUMNS: &str = "key, id, begun, ended, app, route, method, target, request_head, status, answered, \
    answer_head, ending, code, limit_hit, sends, request_bytes, request_cut, answer_bytes, answer_cut, \
    timeline, waterfall";

/// A file of records
pub(super) struct Sqlite(Connection);

impl Sqlite {
    /// Opens the file, and makes it where there is none; nobody else may read it
    pub(super) fn create(path: &Path) -> Result<Self, DatabaseError> {
        make(path).map_err(|source| DatabaseError::File { path: path.to_owned(), source })?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        check(&connection, path, true)?;
        // Of a new file only: it has to be set before there is a table.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        if version(&connection)? == 0 {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?;
        }
        Ok(Self(connection))
    }

    /// Opens a file that exists, to read it
    pub(super) fn read(path: &Path) -> Result<Self, DatabaseError> {
        fs::metadata(path).map_err(|source| DatabaseError::File { path: path.to_owned(), source })?;
        // A reader of a file in WAL mode has to write to the index beside it.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(BUSY)?;
        check(&connection, path, false)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(Self(connection))
    }

    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), DatabaseError> {
        let transaction = self.0.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for record in batch {
            write(&transaction, record)?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn delete_before(&mut self, key: i64, most: u32) -> Result<u32, DatabaseError> {
        let transaction = self.0.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let last: Option<i64> = transaction.query_row(
            "SELECT max(key) FROM (SELECT key FROM calls WHERE key < ?1 ORDER BY key LIMIT ?2)",
            params![key, most],
            |row| row.get(0),
        )?;
        let Some(last) = last else { return Ok(0) };
        transaction.execute("DELETE FROM pieces WHERE call <= ?1", [last])?;
        let deleted = transaction.execute("DELETE FROM calls WHERE key <= ?1", [last])?;
        transaction.commit()?;
        self.0.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
        Ok(u32::try_from(deleted).unwrap_or(u32::MAX))
    }

    pub(super) fn bytes(&self) -> Result<u64, DatabaseError> {
        let pragma = |name: &str| {
            self.0.pragma_query_value(None, name, |row| row.get(0)).map(|n: i64| n.max(0) as u64)
        };
        let used = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
        Ok(used * pragma("page_size")?)
    }

    /// The newest calls, the newest one first
    pub(super) fn recent(&self, most: u32) -> Result<Vec<Call>, DatabaseError> {
        self.calls("ORDER BY key DESC LIMIT ?1", params![most])
    }

    /// The calls that were over at that time or later, in the order in which they ended
    pub(super) fn ended_since(&self, at: i64, most: u32) -> Result<Vec<Call>, DatabaseError> {
        self.calls("WHERE ended >= ?1 ORDER BY ended, key LIMIT ?2", params![at, most])
    }

    /// The call of that id, or of that key
    pub(super) fn find(&self, id: &str, key: Option<i64>) -> Result<Option<Call>, DatabaseError> {
        let found = self.calls("WHERE id = ?1 OR key = ?2 ORDER BY key DESC LIMIT 1", params![id, key])?;
        Ok(found.into_iter().next())
    }

    /// The pieces of a body that were kept, in their order
    pub(super) fn pieces(&self, key: i64, side: Side) -> Result<Vec<BodyPiece>, DatabaseError> {
        let mut query = self
            .0
            .prepare("SELECT start, at, bytes FROM pieces WHERE call = ?1 AND side = ?2 ORDER BY start")?;
        let piece =
            |row: &Row<'_>| Ok(BodyPiece { offset: size(row, 0)?, at: row.get(1)?, bytes: row.get(2)? });
        let pieces = query.query_map(params![key, number(side)], piece)?;
        Ok(pieces.collect::<Result<_, _>>()?)
    }

    fn calls(&self, which: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Call>, DatabaseError> {
        let mut query = self.0.prepare(&format!("SELECT {COLUMNS} FROM calls {which}"))?;
        let calls = query.query_map(values, call)?;
        Ok(calls.collect::<Result<_, _>>()?)
    }
}

/// A new file is for its owner alone
fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Whether records are in the file, or nothing is and that will do
fn check(connection: &Connection, path: &Path, may_be_empty: bool) -> Result<(), DatabaseError> {
    let not_records = || DatabaseError::NotRecords { path: path.to_owned() };
    let version = match version(connection) {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(not_records());
        }
        version => version?,
    };
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let tables = count("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")?;
    let ours =
        count("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('calls', 'pieces')")?;
    match version {
        0 if tables == 0 && may_be_empty => Ok(()),
        1..=VERSION if ours == 2 => Ok(()),
        newer if newer > VERSION && ours == 2 => Err(DatabaseError::Newer { version: newer, known: VERSION }),
        _ => Err(not_records()),
    }
}

fn write(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    let Record { key, at, what } = record;
    let prepare = |sql| connection.prepare_cached(sql);
    let written = match what {
        What::Request { method, target, fields } => prepare(
            "INSERT INTO calls (key, begun, method, target, request_head) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (key) DO UPDATE SET method = excluded.method, target = excluded.target, \
             request_head = excluded.request_head",
        )?
        .execute(params![key, at, method, target, head(fields)]),
        What::Answer { status, fields } => prepare(
            "INSERT INTO calls (key, begun, answered, status, answer_head) VALUES (?1, ?2, ?2, ?3, ?4) \
             ON CONFLICT (key) DO UPDATE SET answered = excluded.answered, status = excluded.status, \
             answer_head = excluded.answer_head",
        )?
        .execute(params![key, at, status, head(fields)]),
        What::Piece { side, offset, bytes } => prepare(
            "INSERT OR REPLACE INTO pieces (call, side, start, at, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key, number(*side), *offset as i64, at, bytes]),
        What::Over(over) => return write_end(connection, *key, *at, over),
    };
    written.map(drop)
}

fn write_end(connection: &Connection, key: i64, ended: i64, over: &Over) -> rusqlite::Result<()> {
    let Over { exchanged, begun, request, answer } = over;
    let Exchanged { request_id, ending, app, route, status, sends, timeline, .. } = exchanged;
    let (code, limit) = match ending {
        Ending::Refused(code) => (Some(code.name()), None),
        Ending::Limit(timer) => (None, Some(timer.name())),
        Ending::Passed | Ending::Served | Ending::Broken | Ending::AppLeft | Ending::Stopped => (None, None),
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO calls (key, id, begun, ended, app, route, status, ending, code, limit_hit, sends, \
         request_bytes, request_cut, answer_bytes, answer_cut, timeline, waterfall) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
         ON CONFLICT (key) DO UPDATE SET id = excluded.id, begun = excluded.begun, ended = excluded.ended, \
         app = excluded.app, route = excluded.route, status = excluded.status, ending = excluded.ending, \
         code = excluded.code, limit_hit = excluded.limit_hit, sends = excluded.sends, \
         request_bytes = excluded.request_bytes, request_cut = excluded.request_cut, \
         answer_bytes = excluded.answer_bytes, answer_cut = excluded.answer_cut, \
         timeline = excluded.timeline, waterfall = excluded.waterfall",
    )?;
    let values = params![
        key,
        request_id,
        begun,
        ended,
        app.as_deref(),
        route.as_deref(),
        status.map(|status| status.as_u16()),
        ending.name(),
        code,
        limit,
        sends,
        request.came as i64,
        request.cut as i64,
        answer.came as i64,
        answer.cut as i64,
        serde_json::to_string(timeline).ok(),
        timeline.to_string(),
    ];
    statement.execute(values).map(drop)
}

/// Header fields as JSON: a list of name and value
fn head(fields: &[(String, String)]) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

const fn number(side: Side) -> i64 {
    match side {
        Side::Request => 0,
        Side::Answer => 1,
    }
}

fn size(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64)
}

fn call(row: &Row<'_>) -> rusqlite::Result<Call> {
    let fields = |column: usize| -> rusqlite::Result<Vec<(String, String)>> {
        let json: Option<String> = row.get(column)?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    };
    Ok(Call {
        key: row.get(0)?,
        id: row.get(1)?,
        begun: row.get(2)?,
        ended: row.get(3)?,
        app: row.get(4)?,
        route: row.get(5)?,
        method: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        target: row.get::<_, Option<String>>(7)?.unwrap_or_default(),
        request_head: fields(8)?,
        status: row.get(9)?,
        answered: row.get(10)?,
        answer_head: fields(11)?,
        ending: row.get(12)?,
        code: row.get(13)?,
        limit_hit: row.get(14)?,
        sends: row.get::<_, Option<u32>>(15)?.unwrap_or(0),
        request_bytes: size(row, 16)?,
        request_cut: size(row, 17)?,
        answer_bytes: size(row, 18)?,
        answer_cut: size(row, 19)?,
        timeline: row.get(20)?,
        waterfall: row.get(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64) -> Record {
        let bytes = vec![b'a'; 1_000];
        Record { key: 1, at: 1, what: What::Piece { side: Side::Answer, offset, bytes } }
    }

    /// A batch is written whole or not at all, and once there is room again the next one is
    #[test]
    fn a_full_disk_takes_nothing_and_then_goes_on() {
        let path = std::env::temp_dir().join(format!("steadfast-pages-{}.db", std::process::id()));
        _ = fs::remove_file(&path);
        let mut sqlite = Sqlite::create(&path).unwrap();
        let limit = |sqlite: &Sqlite, pages: u32| {
            sqlite.0.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&sqlite, 20);
        sqlite.write(&[piece(0)]).unwrap();
        let many: Vec<Record> = (1..100).map(|number| piece(1_000 * number)).collect();
        let error = sqlite.write(&many).unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        assert_eq!(sqlite.pieces(1, Side::Answer).unwrap().len(), 1);
        limit(&sqlite, 10_000);
        sqlite.write(&many).unwrap();
        assert_eq!(sqlite.pieces(1, Side::Answer).unwrap().len(), 100);
        drop(sqlite);
        fs::remove_file(&path).unwrap();
    }
}
