//! Every scenario under virtual time, with exact times, read in any pieces.

use std::time::Duration;

use steadfast_scenario::{Consumer, Scenario, Step, all, find};
use steadfast_sim::{Played, Sim, Split, Traces, request};

fn check(scenario: &Scenario, split: Split) -> Vec<String> {
    let mut wrong = Vec::new();
    let traces = Traces::default();
    let mut sim = Sim::new(&scenario.script).split(split).traces(&traces);
    for call in 0..scenario.call.calls {
        let played: Played = sim.play(request(scenario), &scenario.call);
        let observed = played.observed();
        wrong.extend(scenario.check(call, &observed, Duration::ZERO).iter().map(ToString::to_string));
        let turn = played.outcome.turn();
        for (ours, delivered) in turn.choices.iter().zip(&played.turn_of_deltas.choices) {
            if scenario.call.shape == steadfast_scenario::Shape::Stream && ours.text != delivered.text {
                wrong.push(format!("the deltas make {:?}, the turn says {:?}", delivered.text, ours.text));
            }
        }
    }
    wrong.extend(scenario.seen.check(&sim.tally()).iter().map(ToString::to_string));
    wrong.extend(traces.differences(scenario.call.calls));
    wrong
}

#[test]
fn every_scenario_ends_as_its_file_says() {
    let mut wrong = Vec::new();
    for scenario in all() {
        wrong.extend(
            check(scenario, Split::UpTo(16 * 1024)).iter().map(|what| format!("{}: {what}", scenario.name())),
        );
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_split_of_the_bytes_changes_an_end() {
    let mut wrong = Vec::new();
    // The first has the same bytes over and over; in the second a look at the socket is one read.
    const LEFT_OUT: [&str; 2] = ["slow-consumer", "consumer-back-after-deadline"];
    for scenario in all().iter().filter(|scenario| !LEFT_OUT.contains(&scenario.name())) {
        for seed in 0..20 {
            let split = Split::Random(fastrand::Rng::with_seed(seed), 40);
            wrong.extend(
                check(scenario, split).iter().map(|what| format!("{}, seed {seed}: {what}", scenario.name())),
            );
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn equal_plays_leave_equal_traces() {
    for scenario in all().iter().filter(|scenario| scenario.name() != "slow-consumer") {
        let [first, second] = [(); 2].map(|()| {
            let traces = Traces::default();
            let split = Split::Random(fastrand::Rng::with_seed(5), 40);
            let mut sim = Sim::new(&scenario.script).split(split).traces(&traces);
            for _ in 0..scenario.call.calls {
                sim.play(request(scenario), &scenario.call);
            }
            traces.all()
        });
        assert_eq!(first, second, "{}", scenario.name());
        assert_eq!(first.len(), scenario.call.calls as usize);
    }
}

#[test]
fn the_server_goes_on_while_the_consumer_is_away() {
    let mut scenario = find("stream-mute-after-delta").expect("a scenario of that name").clone();
    let steps = &mut scenario.script.connections[0].steps;
    assert_eq!(steps.pop(), Some(Step::AwaitClose));
    let wait = |seconds| Step::Pause(Duration::from_secs(seconds));
    steps.extend([wait(1), wait(1), Step::Send(b"0\r\n\r\n".to_vec()), Step::AwaitClose]);
    // Back after two seconds, when the answer has already ended in the socket
    scenario.call.consumer = Some(Consumer { pause: Duration::from_secs(2), every: 1 });
    let played = Sim::new(&scenario.script).play(request(&scenario), &scenario.call);
    assert_eq!(played.outcome.timeline.elapsed(), Duration::from_secs(2));
}
