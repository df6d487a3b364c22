//! Scenarios on tokio, a runtime for each.

use std::time::Instant;

use steadfast_scenario::Call;
use steadfast_suite::{Caller, Driver, Ended, Part, Then};
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

async fn call(client: Client, request: Request, script: Call) -> Ended {
    let mut caller = Caller::new(&script);
    let mut stream = client.stream(request);
    while let Some(then) = take(&mut stream, &mut caller).await {
        match then {
            Then::Take => {}
            Then::Pause(pause) => sleep(pause).await,
            Then::Cancel => stream.cancel(),
        }
    }
    let elapsed = caller.elapsed();
    caller.ended(stream.outcome().await, elapsed)
}

/// Waits for the next item, or until the caller gives up
async fn take(stream: &mut CallStream, caller: &mut Caller<'_>) -> Option<Then> {
    let until = caller.gives_up_at();
    if until.is_some_and(|until| until <= Instant::now()) {
        return Some(caller.gives_up());
    }
    let next = stream.next_with(|item| caller.takes(&item));
    match until {
        None => next.await,
        Some(until) => match timeout_at(until.into(), next).await {
            Ok(then) => then,
            Err(_) => Some(caller.gives_up()),
        },
    }
}
