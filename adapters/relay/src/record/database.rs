//! Where records are, and what can be wrong with it.

use std::io;
use std::path::{Path, PathBuf};

use super::queue::Record;
use super::sqlite::Sqlite;

/// Where records are
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file
    File(PathBuf),
}

/// A database that cannot be used; no text holds its password
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A URL of a kind that is not known
    #[error("a database is a file, and not a URL with {0}://")]
    Scheme(String),
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
    /// The system has no thread for the writer
    #[error("no thread for the recorder: {0}")]
    Thread(io::Error),
}

impl Database {
    /// The database of that name: a file
    ///
    /// Errors: a URL, of whatever scheme.
    pub fn parse(name: &str) -> Result<Self, DatabaseError> {
        match name.split_once("://") {
            Some((scheme, _)) => Err(DatabaseError::Scheme(scheme.to_owned())),
            None => Ok(Self::File(Path::new(name).to_owned())),
        }
    }

    /// For a writer; made where there is none
    pub(super) fn open(&self) -> Result<Store, DatabaseError> {
        match self {
            Self::File(path) => Ok(Store::Sqlite(Sqlite::create(path)?)),
        }
    }
}

/// A database that is written
pub(super) enum Store {
    Sqlite(Sqlite),
}

impl Store {
    /// Writes all of these, or none
    pub(super) fn write(&mut self, batch: &[Record]) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(batch),
        }
    }

    /// Deletes the oldest calls with lesser keys, at most so many, and returns their number
    pub(super) fn delete_before(&mut self, key: i64, most: u32) -> Result<u32, DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.delete_before(key, most),
        }
    }

    /// What all records take up
    pub(super) fn bytes(&mut self) -> Result<u64, DatabaseError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.bytes(),
        }
    }
}
