//! Scenarios on threads, one for each call.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use steadfast::call::Item;
use steadfast_blocking::{Client, Stream, TlsConfig};
use steadfast_scenario::{Call, Cancel};
use steadfast_suite::{Driver, Ended, Part};

/// `steadfast-blocking`
pub(super) struct Blocking;

impl Driver for Blocking {
    fn name(&self) -> &'static str {
        "blocking"
    }

    fn play(&self, Part { call, request, ca_pem, traces }: &Part<'_>) -> Result<Vec<Ended>, String> {
        let mut client = Client::new().with_recorders(traces.recorders());
        if let Some(pem) = ca_pem {
            client =
                client.with_tls(TlsConfig::roots_only(pem.as_bytes()).map_err(|error| error.to_string())?);
        }
        if !call.parallel {
            return Ok((0..call.calls).map(|_| make(client.stream(request.clone()), call)).collect());
        }
        thread::scope(|scope| {
            let begin = |_| scope.spawn(|| make(client.stream(request.clone()), call));
            let running: Vec<_> = (0..call.calls).map(begin).collect();
            let ended =
                running.into_iter().map(|running| running.join().map_err(|_| "a call panicked".to_owned()));
            ended.collect()
        })
    }
}

/// Makes a call as the script of its caller says; one who gives up at a time does so on another thread
fn make(stream: Stream, script: &Call) -> Ended {
    let began = Instant::now();
    let Some(Cancel::At(after)) = script.cancel else { return take_all(stream, script, began) };
    if after.is_zero() {
        stream.canceller().cancel();
        return take_all(stream, script, began);
    }
    let canceller = stream.canceller();
    let (over, is_over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_over.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout) {
                canceller.cancel();
            }
        });
        let ended = take_all(stream, script, began);
        drop(over);
        ended
    })
}

fn take_all(mut stream: Stream, script: &Call, began: Instant) -> Ended {
    enum Taken {
        Delta,
        Turn,
        Other,
    }
    let (mut deltas, mut turn_at) = (0, None);
    while let Some(taken) = stream.next_with(|item| match item {
        Item::Delta(_) => Taken::Delta,
        Item::Finished(_) => Taken::Turn,
        Item::Unknown { .. } => Taken::Other,
    }) {
        match taken {
            Taken::Delta => {
                deltas += 1;
                if script.cancel == Some(Cancel::AfterDeltas(deltas)) {
                    stream.cancel();
                } else if let Some(consumer) = script.consumer
                    && deltas % consumer.every == 0
                {
                    // It is the consumer of the script who is slow.
                    thread::sleep(consumer.pause);
                }
            }
            Taken::Turn => {
                turn_at.get_or_insert_with(|| began.elapsed());
                if script.cancel == Some(Cancel::AfterTurn) {
                    stream.cancel();
                }
            }
            Taken::Other => {}
        }
    }
    let elapsed = began.elapsed();
    let outcome = stream.outcome();
    // A turn that needs no marker is delivered with the outcome.
    let turn_at = turn_at.or(outcome.result.is_ok().then_some(elapsed));
    Ended { outcome, elapsed, turn_at }
}
