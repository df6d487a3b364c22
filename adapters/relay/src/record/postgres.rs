//! Records in PostgreSQL, where several relays write.
//!
//! What a batch says of a call is joined to one row before it is sent, so that a batch is two statements
//! however many records are in it. All of it can be written twice: a batch whose commit was not answered
//! is sent again.

use std::thread;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use steadfast::relay::Side;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::calls::{BodyPiece, Call};
use super::database::DatabaseError;
use super::postgres_rows::Rows;
use super::postgres_url::PostgresUrl;
use super::queue::Record;

/// The version of the tables
const VERSION: i64 = 1;
/// How long a connection to one address of the server may take
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a statement may run in the server
const STATEMENT_WITHIN: Duration = Duration::from_secs(10);
/// How long one exchange may take in all, to reconnect and to commit: that much where the server is mute
const EXCHANGE_WITHIN: Duration = Duration::from_secs(20);
/// The lock of who makes the tables: any number, and the same in every relay
const MAKING: i64 = 0x5354_4541_4446_0001;
/// The lock of who deletes
const RETAINING: i64 = 0x5354_4541_4446_0002;

/// Times are microseconds since 1970, sizes are bytes; `side` is 0 for the request and 1 for the answer.
/// A call's `size` is what its records weigh, and `sizes` has the sum of them, in a row for each relay so
/// that none waits for another.
const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS steadfast;
CREATE TABLE steadfast.calls (
    key INT8 PRIMARY KEY,
    id TEXT,
    begun INT8 NOT NULL,
    ended INT8,
    app TEXT,
    route TEXT,
    method TEXT,
    target TEXT,
    request_head TEXT,
    status INT4,
    answered INT8,
    answer_head TEXT,
    ending TEXT,
    code TEXT,
    limit_hit TEXT,
    sends INT4,
    request_bytes INT8,
    request_cut INT8,
    answer_bytes INT8,
    answer_cut INT8,
    timeline TEXT,
    waterfall TEXT,
    size INT8 NOT NULL
);
CREATE INDEX calls_by_id ON steadfast.calls (id);
CREATE INDEX calls_by_end ON steadfast.calls (ended);
CREATE TABLE steadfast.pieces (
    call INT8 NOT NULL,
    side INT2 NOT NULL,
    start INT8 NOT NULL,
    at INT8 NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (call, side, start)
);
CREATE TABLE steadfast.sizes (relay INT4 PRIMARY KEY, bytes INT8 NOT NULL);
CREATE TABLE steadfast.version (version INT8 NOT NULL);
";

/// The columns of a [`Call`], in the order in which they are read
const COLUMNS: &str = "key, id, begun, ended, app, route, method, target, request_head, status, answered, \
    answer_head, ending, code, limit_hit, sends, request_bytes, request_cut, answer_bytes, answer_cut, \
    timeline, waterfall";

/// A database of records, connected to when it is used
pub(super) struct Postgres {
    url: PostgresUrl,
    /// Tells this relay's row of sizes from that of another
    relay: i32,
    is_writer: bool,
    runtime: Executor,
    client: Option<Client>,
}

impl Postgres {
    /// For a relay that writes; the tables are made where there are none, and no connection is open yet
    pub(super) fn writer(url: &PostgresUrl, relay: i32) -> Result<Self, DatabaseError> {
        Self::new(url, relay, true)
    }

    /// For who reads what relays wrote
    pub(super) fn reader(url: &PostgresUrl) -> Result<Self, DatabaseError> {
        Self::new(url, 0, false)
    }

    fn new(url: &PostgresUrl, relay: i32, is_writer: bool) -> Result<Self, DatabaseError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(DatabaseError::Thread)?;
        let runtime = Executor(Some(runtime));
        Ok(Self { url: url.clone(), relay, is_writer, runtime, client: None })
    }

    /// Connects, if there is no connection
    pub(super) fn connect(&mut self) -> Result<(), DatabaseError> {
        self.exchange(async |_| Ok(()))
    }

    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), DatabaseError> {
        let rows = Rows::of(batch);
        let relay = self.relay;
        self.exchange(async |client| write(client.transaction().await?, &rows, relay).await)
    }

    /// Deletes nothing while another relay does
    pub(super) fn delete_before(&mut self, key: i64, most: u32) -> Result<u32, DatabaseError> {
        let relay = self.relay;
        self.exchange(async |client| delete(client.transaction().await?, key, most, relay).await)
    }

    /// What the records of all relays weigh
    pub(super) fn bytes(&mut self) -> Result<u64, DatabaseError> {
        let sum = "SELECT coalesce(sum(bytes), 0)::int8 FROM steadfast.sizes";
        let bytes: i64 = self.exchange(async |client| client.query_one(sum, &[]).await?.try_get(0))?;
        Ok(bytes.max(0) as u64)
    }

    /// The newest calls, the newest one first
    pub(super) fn recent(&mut self, most: u32) -> Result<Vec<Call>, DatabaseError> {
        self.calls("ORDER BY key DESC LIMIT $1", &[&i64::from(most)])
    }

    /// The calls that were over at that time or later, in the order in which they ended
    pub(super) fn ended_since(&mut self, at: i64, most: u32) -> Result<Vec<Call>, DatabaseError> {
        self.calls("WHERE ended >= $1 ORDER BY ended, key LIMIT $2", &[&at, &i64::from(most)])
    }

    /// The call of that id, or of that key
    pub(super) fn find(&mut self, id: &str, key: Option<i64>) -> Result<Option<Call>, DatabaseError> {
        // An id is no text of PostgreSQL where a zero is in it.
        if id.contains('\0') {
            return Ok(None);
        }
        let found = self.calls("WHERE id = $1 OR key = $2 ORDER BY key DESC LIMIT 1", &[&id, &key])?;
        Ok(found.into_iter().next())
    }

    /// The pieces of a body that were kept, in their order
    pub(super) fn pieces(&mut self, key: i64, side: Side) -> Result<Vec<BodyPiece>, DatabaseError> {
        let query =
            "SELECT start, at, bytes FROM steadfast.pieces WHERE call = $1 AND side = $2 ORDER BY start";
        let side = super::postgres_rows::number(side);
        self.exchange(async |client| {
            let rows = client.query(query, &[&key, &side]).await?;
            rows.iter()
                .map(|row| {
                    let offset = row.try_get::<_, i64>(0)?.max(0) as u64;
                    Ok(BodyPiece { offset, at: row.try_get(1)?, bytes: row.try_get(2)? })
                })
                .collect()
        })
    }

    fn calls(&mut self, which: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Call>, DatabaseError> {
        let query = format!("SELECT {COLUMNS} FROM steadfast.calls {which}");
        self.exchange(async |client| client.query(&query, values).await?.iter().map(call).collect())
    }

    /// Does that over the connection, opened anew where there is none, within a bound
    fn exchange<T, W>(&mut self, work: W) -> Result<T, DatabaseError>
    where
        T: Send,
        W: AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error> + Send,
    {
        let Self { url, is_writer, runtime: Executor(Some(runtime)), client, .. } = self else {
            unreachable!("it has one until it is dropped")
        };
        let failed = |source| DatabaseError::Postgres { database: url.to_string(), source };
        // A thread of its own: whoever asks may be in a runtime, which takes no other within it.
        let done = thread::scope(|scope| {
            let exchange = scope.spawn(|| {
                let within = async {
                    if client.as_ref().is_none_or(Client::is_closed) {
                        *client = Some(open(url, *is_writer).await?);
                    }
                    let Some(client) = client.as_mut() else { unreachable!("it was opened") };
                    work(client).await.map_err(failed)
                };
                runtime.block_on(async { timeout(EXCHANGE_WITHIN, within).await })
            });
            exchange.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let done = done.unwrap_or_else(|_| {
            Err(DatabaseError::Mute { database: url.to_string(), seconds: EXCHANGE_WITHIN.as_secs() })
        });
        if done.is_err() {
            *client = None;
        }
        done
    }
}

/// A runtime that may be dropped within another one: nothing in it blocks
struct Executor(Option<Runtime>);

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection to a database with tables in it
async fn open(url: &PostgresUrl, is_writer: bool) -> Result<Client, DatabaseError> {
    let failed = |source| DatabaseError::Postgres { database: url.to_string(), source };
    let mut config = url.config();
    config.connect_timeout(CONNECT_WITHIN).tcp_user_timeout(EXCHANGE_WITHIN);
    // A connection's error is told to whoever uses it.
    let mut client = if config.get_ssl_mode() == SslMode::Disable {
        let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
        drop(tokio::spawn(connection));
        client
    } else {
        let (client, connection) = config.connect(tls()?).await.map_err(failed)?;
        drop(tokio::spawn(connection));
        client
    };
    let within = STATEMENT_WITHIN.as_millis();
    let reads = if is_writer { "" } else { "SET default_transaction_read_only = on;" };
    let settings = format!(
        "SET statement_timeout = {within}; SET idle_in_transaction_session_timeout = {within}; {reads}"
    );
    client.batch_execute(&settings).await.map_err(failed)?;
    let mut version = version(&client).await.map_err(failed)?;
    if version.is_none() && is_writer {
        version = Some(make(&mut client).await.map_err(failed)?);
    }
    match version {
        None => Err(DatabaseError::NoRecords { database: url.to_string() }),
        Some(version) if version > VERSION => Err(DatabaseError::Newer { version, known: VERSION }),
        Some(_) => Ok(client),
    }
}

/// Trusts what the system trusts
fn tls() -> Result<MakeRustlsConnect, DatabaseError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(|error| DatabaseError::Tls(error.to_string()))?;
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// The version of the tables, if there are tables
async fn version(client: &Client) -> Result<Option<i64>, tokio_postgres::Error> {
    // Not by `to_regclass`, whose cache may not know yet what another relay has just made.
    let is_there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n \
                    ON n.oid = c.relnamespace WHERE n.nspname = 'steadfast' AND c.relname = 'version')";
    if !client.query_one(is_there, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    client.query_one("SELECT max(version) FROM steadfast.version", &[]).await?.try_get(0)
}

/// Makes the tables, unless another relay has just made them
async fn make(client: &mut Client) -> Result<i64, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING]).await?;
    let made = version(transaction.client()).await?;
    if made.is_none() {
        let tables = format!("{TABLES} INSERT INTO steadfast.version VALUES ({VERSION});");
        transaction.batch_execute(&tables).await?;
    }
    transaction.commit().await?;
    Ok(made.unwrap_or(VERSION))
}

async fn write(
    transaction: Transaction<'_>,
    rows: &Rows<'_>,
    relay: i32,
) -> Result<(), tokio_postgres::Error> {
    let pieces = rows.pieces();
    transaction
        .execute(
            "INSERT INTO steadfast.pieces (call, side, start, at, bytes) \
             SELECT * FROM unnest($1::int8[], $2::int2[], $3::int8[], $4::int8[], $5::bytea[]) \
             ON CONFLICT (call, side, start) DO UPDATE SET at = excluded.at, bytes = excluded.bytes",
            &[&pieces.calls, &pieces.sides, &pieces.starts, &pieces.ats, &pieces.bytes],
        )
        .await?;
    // What a record does not say stays; the end of a call knows better when it began, and what the app got.
    let kept: Vec<String> = COLUMNS
        .split(", ")
        .filter(|column| !["key", "begun", "status"].contains(column))
        .map(|column| format!("{column} = coalesce(excluded.{column}, c.{column})"))
        .collect();
    let upsert = format!(
        "INSERT INTO steadfast.calls AS c ({COLUMNS}, size) \
         SELECT {COLUMNS}, size FROM json_populate_recordset(NULL::steadfast.calls, $1::text::json) \
         ON CONFLICT (key) DO UPDATE SET \
         begun = CASE WHEN excluded.ended IS NULL THEN c.begun ELSE excluded.begun END, \
         status = CASE WHEN excluded.ended IS NULL THEN coalesce(excluded.status, c.status) \
         ELSE excluded.status END, size = c.size + excluded.size, {}",
        kept.join(", ")
    );
    transaction.execute(&upsert, &[&rows.calls()]).await?;
    grow(&transaction, relay, rows.size()).await?;
    transaction.commit().await
}

/// Deletes the oldest calls with lesser keys, at most so many, and returns their number
async fn delete(
    transaction: Transaction<'_>,
    key: i64,
    most: u32,
    relay: i32,
) -> Result<u32, tokio_postgres::Error> {
    let lock = transaction.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&RETAINING]).await?;
    if !lock.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let last =
        "SELECT max(key) FROM (SELECT key FROM steadfast.calls WHERE key < $1 ORDER BY key LIMIT $2) AS c";
    let last = transaction.query_one(last, &[&key, &i64::from(most)]).await?.try_get::<_, Option<i64>>(0)?;
    let Some(last) = last else { return Ok(0) };
    transaction.execute("DELETE FROM steadfast.pieces WHERE call <= $1", &[&last]).await?;
    let deleted = "WITH deleted AS (DELETE FROM steadfast.calls WHERE key <= $1 RETURNING size) \
                   SELECT count(*), coalesce(sum(size), 0)::int8 FROM deleted";
    let deleted = transaction.query_one(deleted, &[&last]).await?;
    let (count, size): (i64, i64) = (deleted.try_get(0)?, deleted.try_get(1)?);
    grow(&transaction, relay, -size).await?;
    transaction.commit().await?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Adds to what this relay's records weigh, less what it deleted of any relay's
async fn grow(transaction: &Transaction<'_>, relay: i32, by: i64) -> Result<(), tokio_postgres::Error> {
    let grow = "INSERT INTO steadfast.sizes AS s (relay, bytes) VALUES ($1, $2) \
                ON CONFLICT (relay) DO UPDATE SET bytes = s.bytes + excluded.bytes";
    transaction.execute(grow, &[&relay, &by]).await.map(drop)
}

fn call(row: &Row) -> Result<Call, tokio_postgres::Error> {
    let fields = |column: usize| -> Result<Vec<(String, String)>, tokio_postgres::Error> {
        let json: Option<String> = row.try_get(column)?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    };
    let text = |column: usize| -> Result<String, tokio_postgres::Error> {
        Ok(row.try_get::<_, Option<String>>(column)?.unwrap_or_default())
    };
    let size = |column: usize| -> Result<u64, tokio_postgres::Error> {
        Ok(row.try_get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64)
    };
    let number = |column: usize| row.try_get::<_, Option<i32>>(column);
    Ok(Call {
        key: row.try_get(0)?,
        id: row.try_get(1)?,
        begun: row.try_get(2)?,
        ended: row.try_get(3)?,
        app: row.try_get(4)?,
        route: row.try_get(5)?,
        method: text(6)?,
        target: text(7)?,
        request_head: fields(8)?,
        status: number(9)?.and_then(|status| status.try_into().ok()),
        answered: row.try_get(10)?,
        answer_head: fields(11)?,
        ending: row.try_get(12)?,
        code: row.try_get(13)?,
        limit_hit: row.try_get(14)?,
        sends: number(15)?.and_then(|sends| sends.try_into().ok()).unwrap_or(0),
        request_bytes: size(16)?,
        request_cut: size(17)?,
        answer_bytes: size(18)?,
        answer_cut: size(19)?,
        timeline: row.try_get(20)?,
        waterfall: row.try_get(21)?,
    })
}
