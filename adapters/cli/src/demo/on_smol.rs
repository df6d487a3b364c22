//! Scenarios on smol, an executor for each.

use std::time::Instant;

use smol::{Executor, Timer};
use steadfast::call::Item;
use steadfast_scenario::{Call, Cancel};
use steadfast_smol::{CallStream, Client, Request, TlsConfig};
use steadfast_suite::{Driver, Ended, Part};

/// `steadfast-smol`
pub(super) struct Smol;

impl Driver for Smol {
    fn name(&self) -> &'static str {
        "smol"
    }

    fn play(&self, part: &Part<'_>) -> Result<Vec<Ended>, String> {
        let client = match part.ca_pem {
            None => Client::new(),
            Some(pem) => Client::new()
                .with_tls(TlsConfig::roots_only(pem.as_bytes()).map_err(|error| error.to_string())?),
        };
        let client = client.with_recorders(part.traces.recorders());
        Ok(smol::block_on(play(&client, &part.request, part.call)))
    }
}

async fn play(client: &Client, request: &Request, script: &Call) -> Vec<Ended> {
    let executor = Executor::new();
    let mut ended = Vec::new();
    let mut running = Vec::new();
    for _ in 0..script.calls {
        let call = call_once(client.stream(request.clone()), script);
        if script.parallel {
            running.push(executor.spawn(call));
        } else {
            ended.push(call.await);
        }
    }
    let rest = async {
        for call in running {
            ended.push(call.await);
        }
    };
    executor.run(rest).await;
    ended
}

/// What one step of the consumer took
enum Taken {
    Delta,
    Turn,
    Other,
    Nothing,
    /// The time has come at which the caller gives up
    GivenUp,
}

async fn call_once(mut stream: CallStream, script: &Call) -> Ended {
    let began = Instant::now();
    let mut give_up_at = match script.cancel {
        Some(Cancel::At(after)) => Some(began + after),
        Some(Cancel::AfterDeltas(_) | Cancel::AfterTurn) | None => None,
    };
    let mut deltas = 0;
    let mut turn_at = None;
    loop {
        match take(&mut stream, give_up_at).await {
            Taken::Delta => {
                deltas += 1;
                if script.cancel == Some(Cancel::AfterDeltas(deltas)) {
                    stream.cancel();
                } else if let Some(consumer) = script.consumer
                    && deltas % consumer.every == 0
                {
                    Timer::after(consumer.pause).await;
                }
            }
            Taken::Turn => {
                turn_at.get_or_insert_with(|| began.elapsed());
                if script.cancel == Some(Cancel::AfterTurn) {
                    stream.cancel();
                }
            }
            Taken::Other => {}
            Taken::Nothing => break,
            Taken::GivenUp => {
                give_up_at = None;
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

/// Waits for the next item, or until the caller gives up
async fn take(stream: &mut CallStream, until: Option<Instant>) -> Taken {
    let next = stream.next_with(|item| match item {
        Item::Delta(_) => Taken::Delta,
        Item::Finished(_) => Taken::Turn,
        Item::Unknown { .. } => Taken::Other,
    });
    let next = async { next.await.unwrap_or(Taken::Nothing) };
    let Some(until) = until else { return next.await };
    // A caller who gives up before anything was done does not even ask.
    if until <= Instant::now() {
        return Taken::GivenUp;
    }
    let give_up = async {
        Timer::at(until).await;
        Taken::GivenUp
    };
    smol::future::or(next, give_up).await
}
