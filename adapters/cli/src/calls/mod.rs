//! `steadfast calls`: what went through a relay.

mod export;
mod one;
mod table;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use steadfast_relay::record::{Call, Calls, Database, DatabaseError};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{is_read, json_line, print, stdout};
use crate::usage::UsageError;

/// The file of records that is read and written where none is named
const DEFAULT_DATABASE: &str = "calls.db";

/// How often the database is asked for news: every 250 ms
const FOLLOW_EVERY: Duration = Duration::from_millis(250);
/// How much later than its end a call may be written: 10 s
const LATE: Duration = Duration::from_secs(10);
/// The most calls that are read at once
const MAX_READ: u32 = 10_000;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("one").required(false))]
pub(crate) struct CallsArgs {
    /// The file of records that the relay writes, or postgres://user@host/name
    #[arg(long, value_name = "FILE|URL", default_value = DEFAULT_DATABASE)]
    pub(crate) database: String,

    /// How many of the newest calls to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_READ)))]
    pub(crate) limit: u32,

    /// List further calls as they end, until Ctrl-C
    #[arg(long, conflicts_with = "one")]
    pub(crate) follow: bool,

    /// Show the call of that id: its timeline, its heads and its bodies
    #[arg(long, group = "one", value_name = "ID")]
    pub(crate) show: Option<String>,

    /// Print a trace of the call of that id, for `replay`
    #[arg(long, group = "one", value_name = "ID", conflicts_with = "json")]
    pub(crate) export_trace: Option<String>,

    /// Print a line of JSON for each call
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command
pub(crate) fn run(args: &CallsArgs) -> Result<Exit, Failure> {
    let unreadable = |error: &DatabaseError| UsageError::Calls(error.to_string());
    let database = Database::parse(&args.database).map_err(|error| unreadable(&error))?;
    let calls = Calls::open(&database).map_err(|error| unreadable(&error))?;
    let find = |id: &str| -> Result<Call, Failure> {
        let found = calls.find(id).map_err(|error| unreadable(&error))?;
        found.ok_or_else(|| UsageError::NoCall { id: id.to_owned() }.into())
    };
    if let Some(id) = &args.export_trace {
        let call = find(id)?;
        let body = calls.body(&call, steadfast_relay::Side::Answer).map_err(|error| unreadable(&error))?;
        let trace = export::trace(&call, &body)
            .map_err(|why| UsageError::NoTrace { id: id.clone(), why: why.to_string() })?;
        is_read(stdout().and_then(|mut out| out.write_all(&trace)))?;
    } else if let Some(id) = &args.show {
        let one = one::One::read(&calls, find(id)?).map_err(|error| unreadable(&error))?;
        is_read(if args.json {
            print(&json_line(&one).map_err(std::io::Error::from)?)
        } else {
            print(&one.text())
        })?;
    } else {
        list(args, &calls).map_err(|stop| match stop {
            Stop::Database(error) => unreadable(&error).into(),
            Stop::Failure(failure) => failure,
        })?;
    }
    Ok(Exit::Completed)
}

enum Stop {
    Database(DatabaseError),
    Failure(Failure),
}

impl From<DatabaseError> for Stop {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Lists the newest calls, the newest one last, and those that follow
fn list(args: &CallsArgs, calls: &Calls) -> Result<(), Stop> {
    let began = unix_micros();
    let mut newest = calls.recent(args.limit)?;
    newest.reverse();
    if !args.json && (args.follow || !newest.is_empty()) && !is_read(print(&table::heading()))? {
        return Ok(());
    }
    if !rows(args, newest.iter())? || !args.follow {
        return Ok(());
    }
    // Calls are not written in the order in which they ended, nor at once: what ended a little before
    // the last look is looked at again.
    let late = LATE.as_micros() as i64;
    let mut shown: BTreeSet<(i64, i64)> = newest.iter().filter_map(ended).collect();
    // What had ended before the list was made, and is not in it, was left out on purpose.
    let known = calls.ended_since(began - late, MAX_READ)?;
    shown.extend(known.iter().filter(|call| call.ended.is_some_and(|at| at < began)).filter_map(ended));
    loop {
        let since = unix_micros() - late;
        shown = shown.split_off(&(since - late, 0));
        let ended_since = calls.ended_since(since, MAX_READ)?;
        let new: Vec<&Call> =
            ended_since.iter().filter(|call| ended(call).is_some_and(|end| shown.insert(end))).collect();
        if !rows(args, new.into_iter())? {
            return Ok(());
        }
        thread::sleep(FOLLOW_EVERY);
    }
}

/// When a call ended, and which it is
fn ended(call: &Call) -> Option<(i64, i64)> {
    Some((call.ended?, call.key))
}

fn rows<'c>(args: &CallsArgs, calls: impl Iterator<Item = &'c Call>) -> Result<bool, Failure> {
    let mut text = String::new();
    for call in calls {
        text += &if args.json { json_line(call).map_err(std::io::Error::from)? } else { table::row(call) };
    }
    if text.is_empty() { Ok(true) } else { is_read(print(&text)) }
}

fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
