//! `steadfast serve`: the relay.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | what is served, from start to stop |
//! | `plan.rs` | what a file, the command line and the environment make of it |
//! | `check.rs` | `--check`: what is in force, and where each part comes from |
//! | `descriptors.rs` | how many connections the system lets it have open |
//! | `signals.rs` | what a service manager, or a person, tells it |

mod check;
mod descriptors;
mod plan;
mod signals;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use steadfast_relay::{Config, KeyHash, Recorder, Relay, Server};
use steadfast_tokio::steadfast::connect::Proxies;
use steadfast_tokio::{Client, PoolSettings};
use tokio::runtime;
use tokio::time::sleep;

use self::plan::{Plan, Provided};
use self::signals::{Signals, Told};
use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::read_all;
use crate::message::{say, say_as_is};
use crate::output::{is_read, print, print_json};
use crate::usage::UsageError;

/// The longest key that is hashed: 4 KiB
const MAX_KEY_BYTES: usize = 4096;

/// The shortest key that is hashed: of shorter ones a hash can be tried out
const MIN_KEY_CHARS: usize = 16;

/// How long what was recorded may take to be written, when the relay ends: 10 s
const RECORDS_WITHIN: Duration = Duration::from_secs(10);

/// Runs the command
pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    if args.hash_key {
        return hash_key();
    }
    let provided = Provided::for_(args)?;
    let plan = Plan::make(args, &provided, None)?;
    if args.check {
        return check::run(args, &plan);
    }
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(serve(args, &provided, plan));
    // What is still open was given its time.
    runtime.shutdown_background();
    exit
}

/// The line on stdout: where to connect to
#[derive(Serialize)]
struct Listening {
    listening: String,
    base_url: String,
    upstreams: Vec<String>,
}

async fn serve(args: &ServeArgs, provided: &Provided, plan: Plan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let Plan { mut config, routes, tls, .. } = plan;
    let client = match provided {
        Provided::Configured => Client::new(),
        // It is on this machine, whatever leads out.
        Provided::Embedded(_) => Client::new().with_proxies(Proxies::none()),
    };
    // As many as may be open may be idle, for the next burst.
    let max_idle = config.max_connections.value.unwrap_or(usize::MAX);
    let client = client.with_pool(PoolSettings { max_idle, ..PoolSettings::default() });
    let recording = config.recording.as_ref();
    let recorder = recording
        .map(|recording| Recorder::open(&recording.database.value, recording.settings))
        .transpose()?;
    if let Some(trouble) = recorder.as_ref().and_then(Recorder::trouble) {
        say(format_args!("records wait: {trouble}"));
    }
    let relay = Relay::new(routes, client, config.max_connections.value);
    let relay = match &recorder {
        Some(recorder) => relay.with_observer(Arc::new(recorder.clone())),
        None => relay,
    };
    let relay = relay.with_own_pages(recorder.clone());
    relay.limit_apps(room_for_apps(&config));
    let scheme = if tls.is_some() { "https" } else { "http" };
    if let Some(tls) = tls {
        relay.secure_apps(tls);
    }
    let server = Server::bind(config.listen.value, config.share_port.value, relay.clone())?;
    let base_url = format!("{scheme}://{}", server.address()?);
    let upstreams = config.upstreams.iter().map(|upstream| upstream.name.clone()).collect();
    let listening = Listening { listening: server.address()?.to_string(), base_url, upstreams };
    // One whose output nobody reads serves all the same.
    is_read(match args.json {
        true => print_json(&listening),
        false => print(&format!("listening on {}\n", listening.base_url)),
    })?;
    if let Provided::Embedded(_) = provided {
        introduce(&listening.base_url);
    }
    let exit = tokio::select! {
        () = server.run() => unreachable!("it accepts until it is dropped"),
        exit = stand_by(args, provided, &mut config, &relay, &mut signals) => exit,
    };
    if let Some(recorder) = recorder.filter(|_| exit != Exit::Cancelled) {
        finish(&recorder);
    }
    Ok(exit)
}

/// Has all records written, and says how many are lost
fn finish(recorder: &Recorder) {
    if !recorder.flush(RECORDS_WITHIN) {
        let lost = recorder.counters().queued;
        say(format_args!("{lost} parts of records were not written within {} s", RECORDS_WITHIN.as_secs()));
    }
    if recorder.dropped() > 0 {
        let why = recorder.trouble().unwrap_or_else(|| "more came than the database took".to_owned());
        say(format_args!("{} parts of records were dropped: {why}", recorder.dropped()));
    }
}

/// Does what signals tell, until it is to stop, and then until nothing runs any more
async fn stand_by(
    args: &ServeArgs,
    provided: &Provided,
    config: &mut Config,
    relay: &Relay,
    signals: &mut Signals,
) -> Exit {
    while signals.next().await == Told::Reload {
        reload(args, provided, config, relay);
    }
    relay.drain();
    let bound = config.drain.value;
    let (apps, _) = relay.open();
    if apps > 0 {
        say(format_args!(
            "draining: {} open, up to {bound} s; a second signal stops at once",
            connections(apps)
        ));
    }
    let past_bound = async {
        match bound.limit() {
            Some(limit) => sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let second = async { while signals.next().await == Told::Reload {} };
    tokio::select! {
        biased;
        () = relay.drained() => Exit::Completed,
        () = second => Exit::Cancelled,
        () = past_bound => {
            let (apps, _) = relay.open();
            say(format_args!("the drain bound of {bound} s is reached: {} cut off", connections(apps)));
            Exit::Failed
        }
    }
}

fn connections(count: usize) -> String {
    if count == 1 { "1 connection".to_owned() } else { format!("{count} connections") }
}

/// Reads the configuration again and puts it in force, where it can be; else the one in force stays
fn reload(args: &ServeArgs, provided: &Provided, in_force: &mut Config, relay: &Relay) {
    let plan = match Plan::make(args, provided, Some(in_force)) {
        Ok(plan) => plan,
        Err(error) => return say(format_args!("the configuration in force stays: {error}")),
    };
    for setting in plan.next_start {
        say(format_args!("{setting} takes effect with the next start"));
    }
    relay.reload(plan.routes, plan.config.max_connections.value);
    relay.limit_apps(room_for_apps(&plan.config));
    if let Some(tls) = plan.tls {
        relay.secure_apps(tls);
    }
    *in_force = plan.config;
    say("the configuration was read again and is in force");
}

fn room_for_apps(config: &Config) -> Option<usize> {
    descriptors::room_for_apps(config.max_connections.value, config.max_app_connections.value)
}

/// Says that no model answers, and how to try it
fn introduce(base_url: &str) {
    say("no --config and no --upstream: an embedded provider answers, a script and no model; try");
    let body = r#"{"model": "any", "stream": true, "messages": [{"role": "user", "content": "Hi."}]}"#;
    say_as_is(format_args!(
        "  curl -N {base_url}/openai/v1/chat/completions -H 'content-type: application/json' -d '{body}'"
    ));
}

/// Prints the hash of the key on stdin
fn hash_key() -> Result<Exit, Failure> {
    let unreadable = |error: io::Error| UsageError::Unreadable {
        path: "the key on stdin".to_owned(),
        error: error.to_string(),
    };
    let key = read_all(io::stdin().lock(), MAX_KEY_BYTES).map_err(unreadable)?;
    let key = key.trim_ascii();
    if key.is_empty() {
        return Err(UsageError::NoKeyToHash.into());
    }
    if !key.iter().all(u8::is_ascii_graphic) {
        return Err(UsageError::UnusableKey("the key").into());
    }
    if key.len() < MIN_KEY_CHARS {
        return Err(UsageError::ShortKey(MIN_KEY_CHARS).into());
    }
    is_read(print(&format!("{}\n", KeyHash::of(key))))?;
    Ok(Exit::Completed)
}
