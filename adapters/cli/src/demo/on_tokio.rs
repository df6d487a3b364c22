//! Scenarios on tokio, a runtime for each.

use std::time::Instant;

use steadfast::call::Item;
use steadfast_scenario::{Call, Cancel};
use steadfast_suite::{Driver, Ended, Part};
use steadfast_tokio::{CallStream, Client, Request, TlsConfig};
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout_at};

/// `steadfast-tokio`
pub(super) struct Tokio;

impl Driver for Tokio {
    fn name(&self) -> &'static str {
        "tokio"
    }

    fn play(&self, part: &Part<'_>) -> Result<Vec<Ended>, String> {
        let client = match part.ca_pem {
            None => Client::new(),
            Some(pem) => Client::new()
                .with_tls(TlsConfig::roots_only(pem.as_bytes()).map_err(|error| error.to_string())?),
        };
        let client = client.with_recorders(part.traces.recorders());
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(runtime.block_on(play(client, part)))
    }
}

async fn play(client: Client, part: &Part<'_>) -> Vec<Ended> {
    let calls = part.call.calls as usize;
    let mut ended = Vec::with_capacity(calls);
    if !part.call.parallel {
        for _ in 0..calls {
            ended.push(call(client.clone(), part.request.clone(), part.call.clone()).await);
        }
        return ended;
    }
    let mut running = JoinSet::new();
    for number in 0..calls {
        let call = call(client.clone(), part.request.clone(), part.call.clone());
        running.spawn(async move { (number, call.await) });
    }
    let mut numbered = running.join_all().await;
    numbered.sort_by_key(|(number, _)| *number);
    ended.extend(numbered.into_iter().map(|(_, call)| call));
    ended
}

/// What one step of the consumer took
enum Taken {
    Delta,
    Turn,
    Other,
}

async fn call(client: Client, request: Request, script: Call) -> Ended {
    let began = Instant::now();
    let mut stream = client.stream(request);
    let mut cancel_at = match script.cancel {
        Some(Cancel::At(after)) => Some(began + after),
        Some(Cancel::AfterDeltas(_) | Cancel::AfterTurn) | None => None,
    };
    let mut deltas = 0;
    let mut turn_at = None;
    loop {
        let taken = take(&mut stream, cancel_at).await;
        match taken {
            Ok(Some(Taken::Delta)) => {
                deltas += 1;
                if script.cancel == Some(Cancel::AfterDeltas(deltas)) {
                    stream.cancel();
                } else if let Some(consumer) = script.consumer
                    && deltas % consumer.every == 0
                {
                    sleep(consumer.pause).await;
                }
            }
            Ok(Some(Taken::Turn)) => {
                turn_at.get_or_insert_with(|| began.elapsed());
                if script.cancel == Some(Cancel::AfterTurn) {
                    stream.cancel();
                }
            }
            Ok(Some(Taken::Other)) => {}
            Ok(None) => break,
            Err(GivenUp) => {
                cancel_at = None;
                stream.cancel();
            }
        }
    }
    let elapsed = began.elapsed();
    let outcome = stream.outcome().await;
    // A turn that needs no marker is delivered with the outcome.
    let turn_at = turn_at.or(outcome.result.is_ok().then_some(elapsed));
    Ended { outcome, elapsed, turn_at }
}

/// The time has come at which the caller gives up
struct GivenUp;

/// Waits for the next item, or until the caller gives up
async fn take(stream: &mut CallStream, until: Option<Instant>) -> Result<Option<Taken>, GivenUp> {
    let next = stream.next_with(|item| match item {
        Item::Delta(_) => Taken::Delta,
        Item::Finished(_) => Taken::Turn,
        Item::Unknown { .. } => Taken::Other,
    });
    match until {
        None => Ok(next.await),
        // A caller who gives up before anything was done does not even ask.
        Some(until) if until <= Instant::now() => Err(GivenUp),
        Some(until) => timeout_at(until.into(), next).await.map_err(|_| GivenUp),
    }
}
