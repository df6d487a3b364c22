//! Scenarios on smol, an executor for each.

use std::time::Instant;

use smol::{Executor, Timer};
use steadfast_scenario::Call;
use steadfast_smol::{CallStream, Client, Request, TlsConfig};
use steadfast_suite::{Caller, Driver, Ended, Part, Then};

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
        let caller = Caller::new(script);
        let call = call_once(client.stream(request.clone()), caller);
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

async fn call_once(mut stream: CallStream, mut caller: Caller<'_>) -> Ended {
    while let Some(then) = take(&mut stream, &mut caller).await {
        match then {
            Then::Take => {}
            Then::Pause(pause) => _ = Timer::after(pause).await,
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
    let Some(until) = until else { return next.await };
    let in_time = smol::future::or(async { Some(next.await) }, async {
        Timer::at(until).await;
        None
    });
    match in_time.await {
        Some(then) => then,
        None => Some(caller.gives_up()),
    }
}
