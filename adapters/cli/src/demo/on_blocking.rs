//! Scenarios on threads, one for each call.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use steadfast_blocking::{Client, Stream, TlsConfig};
use steadfast_suite::{Caller, Driver, Ended, Part, Then};

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
            return Ok((0..call.calls)
                .map(|_| make(client.stream(request.clone()), Caller::new(call)))
                .collect());
        }
        thread::scope(|scope| {
            let begin = |_| scope.spawn(|| make(client.stream(request.clone()), Caller::new(call)));
            let running: Vec<_> = (0..call.calls).map(begin).collect();
            let ended =
                running.into_iter().map(|running| running.join().map_err(|_| "a call panicked".to_owned()));
            ended.collect()
        })
    }
}

/// Makes a call as its caller does; one who gives up at a time does so on another thread
fn make(stream: Stream, mut caller: Caller<'_>) -> Ended {
    let Some(until) = caller.gives_up_at() else { return take_all(stream, caller) };
    let after = until.saturating_duration_since(Instant::now());
    if after.is_zero() {
        caller.gives_up();
        stream.canceller().cancel();
        return take_all(stream, caller);
    }
    let canceller = stream.canceller();
    let (over, is_over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_over.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout) {
                canceller.cancel();
            }
        });
        let ended = take_all(stream, caller);
        drop(over);
        ended
    })
}

fn take_all(mut stream: Stream, mut caller: Caller<'_>) -> Ended {
    while let Some(then) = stream.next_with(|item| caller.takes(&item)) {
        match then {
            Then::Take => {}
            Then::Pause(pause) => thread::sleep(pause),
            Then::Cancel => stream.cancel(),
        }
    }
    let elapsed = caller.elapsed();
    caller.ended(stream.outcome(), elapsed)
}
