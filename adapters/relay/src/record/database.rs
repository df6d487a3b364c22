//! Where records are, and what can be wrong with it.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tokio_postgres::error::SqlState;

use super::postgres::Postgres;
use super::postgres_url::PostgresUrl;
use super::queue::Record;
use super::sqlite::Sqlite;

/// Where records are
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file
    File(PathBuf),
    /// A database of PostgreSQL, which several relays may share
    Postgres(PostgresUrl),
}

/// The file, or the URL without its password
impl fmt::Display for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Postgres(url) => write!(out, "{url}"),
        }
    }
}

/// A database that cannot be used; no text holds its password
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A URL of a kind that is not known
    #[error("a database is a file or postgres://user@host/name, and not a URL with {0}://")]
    Scheme(String),
    /// A URL of PostgreSQL that cannot be used
    #[error("a URL of PostgreSQL is postgres://user@host:port/name: {0}")]
    Url(&'static str),
    /// The file cannot be made, or opened
    #[error("{path}: {source}")]
    File {
        /// The file
        path: PathBuf,
        /// The operating system's word
        source: io::Error,
    },
    /// There is such a database, but no records are in it
    #[error("{path} is no file of records: name another, or none that exists")]
    NotRecords {
        /// The file
        path: PathBuf,
    },
    /// It was made by a newer version of this crate
    #[error("the records are of version {version}, and this program knows up to {known}: use a newer one")]
    Newer {
        /// The version of its tables
        version: i64,
        /// The newest that is known here
        known: i64,
    },
    /// SQLite's word
    #[error("the records: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL's word, or that of the way to it
    #[error("the records in {database}: {}", words(source))]
    Postgres {
        /// Its URL, without the password
        database: String,
        /// What went wrong
        source: tokio_postgres::Error,
    },
    /// PostgreSQL said nothing
    #[error("the records in {database}: no answer within {seconds} s")]
    Mute {
        /// Its URL, without the password
        database: String,
        /// What it was given
        seconds: u64,
    },
    /// There is such a database, and no relay has ever recorded there
    #[error("no relay has recorded in {database}: name the database that recording.database names")]
    NoRecords {
        /// Its URL, without the password
        database: String,
    },
    /// There are no roots to check the server's certificate against
    #[error("no TLS to PostgreSQL: {0}")]
    Tls(String),
    /// The system has no thread for the writer
    #[error("no thread for the recorder: {0}")]
    Thread(io::Error),
}

impl Database {
    /// The database of that name: a file, or a URL of PostgreSQL
    ///
    /// Errors: a URL of another scheme, or one of PostgreSQL that is broken. Neither repeats it.
    pub fn parse(name: &str) -> Result<Self, DatabaseError> {
        match name.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(PostgresUrl::parse(name)?)),
            Some((scheme, _)) => Err(DatabaseError::Scheme(scheme.to_owned())),
            None => Ok(Self::File(Path::new(name).to_owned())),
        }
    }

    /// For the writer of this relay, made where there is none; and what is wrong with a server that cannot
    /// be reached
    pub(super) fn open(&self, relay: i32) -> Result<(Store, Option<DatabaseError>), DatabaseError> {
        match self {
            Self::File(path) => Ok((Store::Sqlite(Sqlite::create(path)?), None)),
            Self::Postgres(url) => {
                let mut postgres = Postgres::writer(url, relay)?;
                let trouble = match postgres.connect() {
                    Err(error) if !error.is_unreachable() => return Err(error),
                    connected => connected.err(),
                };
                Ok((Store::Postgres(Box::new(postgres)), trouble))
            }
        }
    }
}

impl DatabaseError {
    /// Whether a server may take the same at another time
    pub(super) fn may_pass(&self) -> bool {
        match self {
            // What is wrong with the data itself stays wrong: its classes are 22, 23 and 54.
            Self::Postgres { source, .. } => source
                .code()
                .is_none_or(|code| !["22", "23", "54"].iter().any(|class| code.code().starts_with(class))),
            Self::Mute { .. } | Self::NoRecords { .. } | Self::Tls(_) | Self::Newer { .. } => true,
            Self::Scheme(_)
            | Self::Url(_)
            | Self::File { .. }
            | Self::NotRecords { .. }
            | Self::Sqlite(_)
            | Self::Thread(_) => false,
        }
    }

    /// Whether there was no server to ask, or one that is about to start or stop
    fn is_unreachable(&self) -> bool {
        let Self::Postgres { source, .. } = self else { return matches!(self, Self::Mute { .. }) };
        match source.code() {
            Some(code) => {
                let passing = [
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::TOO_MANY_CONNECTIONS,
                ];
                passing.contains(code)
            }
            None => {
                let cause = source.source().and_then(|source| source.downcast_ref::<io::Error>());
                // A certificate that is not trusted is such data.
                source.is_closed() || cause.is_some_and(|cause| cause.kind() != io::ErrorKind::InvalidData)
            }
        }
    }
}

/// What PostgreSQL says, without the rows that it may repeat in the details
fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("{}: {} ({})", said.severity(), said.message(), said.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// A database that is written
pub(super) enum Store {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Writes all of these, or none
    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(batch),
            Self::Postgres(postgres) => postgres.write(batch),
        }
    }

    /// Deletes the oldest calls with lesser keys, at most so many, and returns their number
    pub(super) fn delete_before(&mut self, key: i64, most: u32) -> Result<u32, DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.delete_before(key, most),
            Self::Postgres(postgres) => postgres.delete_before(key, most),
        }
    }

    /// What all records take up
    pub(super) fn bytes(&mut self) -> Result<u64, DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.bytes(),
            Self::Postgres(postgres) => postgres.bytes(),
        }
    }
}
