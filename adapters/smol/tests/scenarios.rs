//! Every scenario over real sockets on smol, a thread for each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use smol::{Executor, Timer};
use steadfast::call::Item;
use steadfast_mock::Mock;
use steadfast_scenario::{Call, Cancel, Observed, Scenario, all};
use steadfast_sim::{observed, request_to};
use steadfast_smol::{CallStream, Client, Request, TlsConfig};

/// So many scenarios are played at once
const AT_ONCE: usize = 16;
/// So long the server has to see what it must have seen; it learns of a close later than the caller
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// A server whose pauses were so much too long did not do what its script says
const LATE: Duration = Duration::from_millis(40);
/// So often a scenario is played at most, where its server is late each time
const MOST_PLAYS: u32 = 3;

#[test]
fn every_scenario_ends_as_its_file_says() {
    let scenarios = all();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let wrong = play(scenario);
                    sender.send((scenario.name(), wrong)).expect("the test listens");
                }
            });
        }
    });
    drop(sender);
    let played: Vec<(&str, Vec<String>)> = receiver.into_iter().collect();
    assert_eq!(played.len(), scenarios.len());
    assert!(played.len() >= 94, "{}", played.len());
    let wrong: Vec<_> = played.into_iter().filter(|(_, wrong)| !wrong.is_empty()).collect();
    assert!(wrong.is_empty(), "{} scenarios differ: {wrong:#?}", wrong.len());
}

/// Where a scenario differs from its file; one whose server was late shows nothing and is played again
fn play(scenario: &Scenario) -> Vec<String> {
    let mut plays = 1;
    loop {
        let (wrong, late) = play_once(scenario);
        if wrong.is_empty() || late < LATE || plays == MOST_PLAYS {
            return wrong;
        }
        plays += 1;
    }
}

fn play_once(scenario: &Scenario) -> (Vec<String>, Duration) {
    let Scenario { script, call, seen, tolerance, .. } = scenario;
    let mock = Mock::start(script, None).expect("the server starts");
    let client = match mock.ca_pem() {
        None => Client::new(),
        Some(pem) => Client::new().with_tls(TlsConfig::roots_only(pem.as_bytes()).expect("roots")),
    };
    let calls = smol::block_on(make_calls(&client, &request_to(scenario, &mock.base_url()), call));
    // The connections that it keeps end with it.
    drop(client);
    // What comes too much, comes until the server ends.
    mock.wait_for(SEEN_WITHIN, |recorded| seen.check(&recorded.tally()).is_empty());
    let recorded = mock.shutdown();
    let mut wrong: Vec<String> = seen.check(&recorded.tally()).iter().map(ToString::to_string).collect();
    for (number, observed) in (0..).zip(&calls) {
        let mismatches = scenario.check(number, observed, *tolerance);
        wrong.extend(mismatches.iter().map(|mismatch| format!("call {number}: {mismatch}")));
    }
    (wrong, recorded.late())
}

async fn make_calls(client: &Client, request: &Request, script: &Call) -> Vec<Observed> {
    let executor = Executor::new();
    let mut ended = Vec::new();
    let mut running = Vec::new();
    for _ in 0..script.calls {
        let call = make_call(client.stream(request.clone()), script);
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

async fn make_call(mut stream: CallStream, script: &Call) -> Observed {
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
    observed(&outcome, elapsed, turn_at)
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
