//! Every scenario over real sockets and threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use steadfast_blocking::{Client, Dialect, Item, Outcome, Overrides, Proxies, Request, Stream, TlsConfig};
use steadfast_mock::Mock;
use steadfast_scenario::{Call, Cancel, Dialect as Dialects, Scenario, Shape, Tally, all};
use steadfast_sim::observed;

/// So many are played at once
const AT_ONCE: usize = 16;

/// So long the server has to see what it must have seen; it learns of a close later than the caller
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// A server whose pauses were so much too long did not do what its script says
const LATE: Duration = Duration::from_millis(40);

/// So often a scenario is played at most, where its server is late each time
const MOST_PLAYS: u32 = 3;

struct Ended {
    outcome: Outcome,
    elapsed: Duration,
    turn_at: Option<Duration>,
}

#[test]
fn every_scenario_ends_as_it_must() {
    let scenarios = all();
    assert!(scenarios.len() >= 95, "{}", scenarios.len());
    let (next, differences) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = play(scenario);
                    differences.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let differences = differences.into_inner().expect("no panic");
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Where a scenario differs; again where it does and its server was too late to show anything
fn play(scenario: &Scenario) -> Vec<String> {
    let mut plays = 1;
    loop {
        let (differences, late) = play_once(scenario);
        if differences.is_empty() || late < LATE || plays == MOST_PLAYS {
            return differences;
        }
        plays += 1;
    }
}

fn play_once(scenario: &Scenario) -> (Vec<String>, Duration) {
    let Scenario { script, call, seen, tolerance, .. } = scenario;
    let mock = Mock::start(script, None).expect("a server");
    let mut client = Client::new().with_proxies(Proxies::none());
    if let Some(pem) = mock.ca_pem() {
        client = client.with_tls(TlsConfig::roots_only(pem.as_bytes()).expect("a root"));
    }
    let request = request(scenario, &mock.base_url());
    let calls: Vec<Ended> = if call.parallel {
        thread::scope(|scope| {
            let begin = |_| scope.spawn(|| make(client.stream(request.clone()), call));
            let running: Vec<_> = (0..call.calls).map(begin).collect();
            running.into_iter().map(|running| running.join().expect("no panic")).collect()
        })
    } else {
        (0..call.calls).map(|_| make(client.stream(request.clone()), call)).collect()
    };
    mock.wait_for(SEEN_WITHIN, |recorded| {
        let tally: Tally = recorded.tally();
        seen.check(&tally).is_empty()
    });
    let recorded = mock.shutdown();
    let of_server = seen.check(&recorded.tally()).into_iter().map(|mismatch| format!("server: {mismatch}"));
    let of_calls = calls.iter().enumerate().flat_map(|(number, ended)| {
        let observed = observed(&ended.outcome, ended.elapsed, ended.turn_at);
        let number = u32::try_from(number).expect("few calls");
        let found = scenario.check(number, &observed, *tolerance);
        found.into_iter().map(move |mismatch| format!("call {number}: {mismatch}"))
    });
    let found = of_server.chain(of_calls).map(|found| format!("{}: {found}", scenario.name())).collect();
    (found, recorded.late())
}

fn request(scenario: &Scenario, base_url: &str) -> Request {
    let call = &scenario.call;
    let mut overrides = Overrides::new();
    for (name, value) in &call.config {
        overrides.set(name, &value.to_string()).expect("a known setting");
    }
    let dialect = match call.dialect {
        Dialects::OpenaiChat => Dialect::OpenAiChat,
        Dialects::OpenaiResponses => Dialect::OpenAiResponses,
        Dialects::Anthropic => Dialect::Anthropic,
        Dialects::Gemini => Dialect::Gemini,
    };
    let padding = usize::try_from(call.body_bytes).expect("a body that fits in memory");
    let request = Request::post(&format!("{base_url}/v1"))
        .json(&serde_json::json!({ "prompt": " ".repeat(padding) }))
        .dialect(dialect)
        .overrides(overrides);
    let request = if call.shape == Shape::Stream { request.stream() } else { request };
    request.build().expect("a request")
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
