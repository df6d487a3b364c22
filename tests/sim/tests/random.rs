//! Random runs: nothing is broken, everything is met, and the same seed gives the same steps.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use steadfast::call::Shape;
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;
use steadfast::outcome::ErrorKind;
use steadfast::time::Instant;
use steadfast::trace::{Finish, Trace};
use steadfast_sim::random::{
    CallPlan, Cancel, Choices, ContentType, Coverage, Cut, Digest, End, Exchange, Failure, Head, Invariant,
    Piece, Plan, Simulator, Violation, plans, tapes,
};

/// The digest of the first 300 seeds: on every platform, in debug and release builds
///
/// It changes with the generator, and with whatever the core does otherwise than before.
const DIGEST: &str = "7aca1cf10d154d73";

fn digest(seeds: std::ops::RangeInclusive<u64>) -> Digest {
    let mut simulator = Simulator::new().digesting();
    for seed in seeds {
        simulator.run(seed).unwrap_or_else(|violation| panic!("{}", told(seed, &violation)));
    }
    simulator.digest().expect("it was asked for")
}

/// What broke, how it is played again, and the shortest run that breaks as well
fn told(seed: u64, violation: &Violation) -> String {
    let found = Simulator::explain(seed).map(|found| found.to_string());
    format!("{violation}\nreplay: steadfast sim --replay {seed}\n{}", found.unwrap_or_default())
}

/// However the seeds lie: these runs share none
#[test]
fn nothing_is_broken_and_every_row_is_met() {
    for first in [1, 1_000_000, u64::MAX - Coverage::MIN_RUNS] {
        let mut simulator = Simulator::new();
        for seed in (first..).take(Coverage::MIN_RUNS as usize) {
            if let Err(violation) = simulator.run(seed) {
                panic!("{}", told(seed, &violation));
            }
        }
        let missing = simulator.coverage().missing();
        assert!(missing.is_empty(), "never met from seed {first} on: {missing:?}");
        let totals = simulator.totals();
        println!("sim: {} runs, {} calls, {} steps, no violation", totals.runs, totals.calls, totals.steps);
        assert!(totals.time > Duration::from_secs(3_600));
    }
}

#[test]
fn the_same_seeds_give_the_same_steps() {
    let first = digest(1..=300);
    assert_eq!(first, digest(1..=300));
    assert_ne!(first, digest(2..=301));
    assert_eq!(first.to_string(), DIGEST);
}

/// What is recorded of a simulated call is a trace like any other: it replays, step by step (INV-9)
#[test]
fn every_simulated_call_replays() {
    let mut calls = 0;
    for seed in 1..=300 {
        let plan = Plan::draw(&mut Choices::from_seed(seed));
        for trace in Simulator::record(&plan).traces {
            let trace = Trace::read(&trace[..]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let replay = trace.replay(|_, _| {});
            assert!(replay.is_identical(), "seed {seed}: {:?}", replay.difference);
            assert_eq!(trace.finish(), Finish::Whole, "seed {seed}");
            calls += 1;
        }
    }
    assert!(calls > 300);
}

#[test]
fn a_run_does_not_depend_on_those_before_it() {
    let mut simulator = Simulator::new();
    for seed in 1..=50 {
        simulator.run(seed).expect("it holds");
        let plan = Plan::draw(&mut Choices::from_seed(seed));
        assert_eq!(Simulator::record(&plan).digest, digest(seed..=seed), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn plans_of_proptest_hold(tape in tapes()) {
        let found = Simulator::explain_tape(tape);
        prop_assert!(found.is_none(), "{}", found.map(|found| found.to_string()).unwrap_or_default());
    }
}

/// Whoever sees a failure sees how it is played again
#[test]
fn a_failure_tells_how_it_is_played_again() {
    let plan = Plan::draw(&mut Choices::from_tape(&[7]));
    let what = "nothing of the kind".to_owned();
    let violation = Violation { invariant: Invariant::Ends, what, call: 1, at: Instant::ORIGIN };
    let failure = Failure { violation, tape: vec![7, 0, 3], plan, log: "call 1:\n".to_owned() };
    let told = failure.to_string();
    assert!(told.starts_with("INV-1 at "), "{told}");
    assert!(told.ends_with("\nthat run alone: steadfast sim --tape 7,0,3\n"), "{told}");
}

/// What fails shrinks to what it fails for: here calls that are made on a connection that is cut
#[test]
fn a_failing_plan_shrinks() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let failed = runner.run(&plans(), |plan| {
        let is_cut = plan.exchanges.iter().any(|exchange| exchange.cut.is_some());
        if is_cut { Err(TestCaseError::fail("cut")) } else { Ok(()) }
    });
    let Err(TestError::Fail(_, plan)) = failed else { panic!("no plan was cut") };
    let others = plan.exchanges.iter().flat_map(|exchange| &exchange.pieces);
    assert!(plan.calls.len() == 1 && others.count() <= 30, "{plan}");
}

/// Two calls at once have a connection each, and leave both to the third
#[test]
fn calls_at_once_share_one_pool() {
    let mut plan = Plan::draw(&mut Choices::from_tape(&[]));
    let call = CallPlan::stream(Dialect::OpenAiChat);
    let beside = CallPlan { beside: true, idle: Duration::from_secs(1), ..call.clone() };
    plan.calls = vec![call.clone(), beside, call];
    let slow = Exchange { delay: Duration::from_secs(5), ..Exchange::new() };
    plan.exchanges = vec![slow, Exchange::new(), Exchange::new()];
    let played = Simulator::record(&plan);
    assert_eq!(played.violation, None);
    let ends = played.outcomes.iter().map(|outcome| {
        let timeline = &outcome.timeline;
        (timeline.ended.since_origin().as_secs(), timeline.attempts[0].reused)
    });
    // The second has overtaken the first, and the third begins when both are over.
    assert_eq!(ends.collect::<Vec<_>>(), [(5, false), (1, false), (5, true)]);
}

/// A document in place of a stream says nothing before it is whole, and one that is too large never is
#[test]
fn a_document_that_is_too_large_says_nothing() {
    let mut plan = Plan::draw(&mut Choices::from_tape(&[]));
    plan.config = plan.config.with(&Overrides::new().max_body_bytes(2_000)).expect("a bound");
    let mut document = Exchange { head: Head::new(200), ..Exchange::new() };
    document.head.content_type = ContentType::WholeJson;
    document.pieces.push((Duration::ZERO, Piece::Flood));
    plan.exchanges = vec![document];
    for dialect in Dialect::ALL {
        plan.calls = vec![CallPlan::stream(dialect)];
        plan.calls[0].client.read_bytes = 100;
        assert_eq!(Simulator::new().play(&plan), Ok(()), "{dialect:?}\n{plan}");
    }
}

/// What was said after the caller gave up may not have been read, not even that the answer was cut short
#[test]
fn a_cancel_before_the_last_marker_was_read() {
    let mut plan = Plan::draw(&mut Choices::from_tape(&[]));
    let pieces = [Piece::Opening, Piece::Text, Piece::Text, Piece::Marker, Piece::Text, Piece::StopsEarly];
    let pieces = pieces.map(|piece| (Duration::ZERO, piece)).to_vec();
    plan.exchanges = vec![Exchange { pieces, ..Exchange::new() }];
    plan.calls = vec![CallPlan::stream(Dialect::OpenAiChat)];
    plan.calls[0].client.away = Some((1, Duration::from_millis(1)));
    let mut endings = BTreeSet::new();
    for event in 0..20 {
        plan.calls[0].client.cancel = Cancel::AtEvent(event);
        let played = Simulator::record(&plan);
        assert_eq!(played.violation, None, "event {event}");
        endings.insert(played.outcomes[0].word());
    }
    assert_eq!(endings.into_iter().collect::<Vec<_>>(), ["completed", "error", "incomplete"]);
}

/// Given up before each event in turn, from before the first to after the last
#[test]
fn a_cancel_at_every_step() {
    let mut simulator = Simulator::new();
    let busy = Exchange { head: Head::new(503), ..Exchange::new() };
    let slow = Exchange {
        delay: Duration::from_secs(1),
        trickle: Some(Duration::from_millis(1)),
        ..Exchange::new()
    };
    let cut = Exchange { cut: Some(Cut::Back(20)), end: (Duration::ZERO, End::Reset), ..Exchange::new() };
    let facts = Exchange { facts: true, ..Exchange::new() };
    for dialect in Dialect::ALL {
        for shape in [Shape::Stream, Shape::Unary] {
            let mut plan = Plan::draw(&mut Choices::from_tape(&[]));
            plan.exchanges = vec![busy.clone(), slow.clone(), facts.clone(), cut.clone()];
            plan.calls = vec![CallPlan { shape, ..CallPlan::stream(dialect) }; 2];
            let (mut cancelled, mut kept) = (0, 0);
            // Until the call is over before it would be given up.
            for event in 0..2_000 {
                for call in 0..2 {
                    plan.calls[call].client.cancel = Cancel::AtEvent(event);
                    assert_eq!(
                        simulator.play(&plan),
                        Ok(()),
                        "{dialect:?}, {shape:?}, event {event}\n{plan}"
                    );
                    let outcome = &Simulator::record(&plan).outcomes[call];
                    let is_cancelled =
                        outcome.result.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled);
                    *if is_cancelled { &mut cancelled } else { &mut kept } += 1;
                    plan.calls[call].client.cancel = Cancel::Never;
                }
                if kept > 8 {
                    break;
                }
            }
            assert!(cancelled > 8 && kept > 8, "{dialect:?}, {shape:?}: {cancelled}, {kept}");
        }
    }
}

/// At every byte of an answer, in every dialect, a reset comes to what the bytes before it say
#[test]
fn a_reset_at_every_byte() {
    let mut simulator = Simulator::new();
    for dialect in Dialect::ALL {
        let mut plan = Plan::draw(&mut Choices::from_tape(&[]));
        plan.calls = vec![CallPlan::stream(dialect)];
        let mut ends = [0, 0];
        for back in 0..900 {
            let pieces = [Piece::Opening, Piece::Text, Piece::Text, Piece::Marker, Piece::Sentinel];
            plan.exchanges = vec![Exchange {
                cut: Some(Cut::Back(back)),
                end: (Duration::ZERO, End::Reset),
                pieces: pieces.map(|piece| (Duration::ZERO, piece)).to_vec(),
                ..Exchange::new()
            }];
            assert_eq!(simulator.play(&plan), Ok(()), "{dialect:?}, {back} bytes before the end");
            let outcome = &Simulator::record(&plan).outcomes[0];
            match &outcome.result {
                Ok(_) => ends[0] += 1,
                Err(error) => {
                    assert!(matches!(error.kind, ErrorKind::Transport(_)), "{error}");
                    ends[1] += 1;
                }
            }
        }
        assert!(ends.iter().all(|count| *count > 0), "{dialect:?}: {ends:?}");
    }
}
