//! `steadfast sim`: runs without a violation, the same twice, and one alone.

use serde_json::Value;

use crate::support::{Ran, run, steadfast};

fn sim(arguments: &[&str]) -> Ran {
    run(&mut steadfast(&[&["sim"], arguments].concat()))
}

#[test]
fn runs_hold_and_are_counted() {
    let ran = sim(&["--runs", "300", "--seed", "7"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("runs=300 calls="), "{}", ran.stdout);
    for part in
        [" violations=0 ", " virtual_hours=", " runs_per_s=", "\nreset  ", "\nStreaming -> Finished  "]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn the_same_seeds_give_the_same_digest() {
    let digest = |seed: &str| {
        let ran = sim(&["--runs", "50", "--seed", seed, "--digest", "--json"]);
        let result: Value = serde_json::from_str(&ran.stdout).expect("one line of JSON");
        assert_eq!((ran.code, &result["violations"], &result["runs"]), (Some(0), &0.into(), &50.into()));
        assert!(result["faults"]["reset"].as_u64() > Some(0), "{result}");
        result["digest"].as_str().expect("a digest").to_owned()
    };
    assert_eq!(digest("3"), digest("3"));
    assert_ne!(digest("3"), digest("4"));
}

#[test]
fn one_run_is_told_step_by_step() {
    for arguments in [["--replay", "5"], ["--tape", "0"]] {
        let ran = sim(&arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for part in [
            "call 1: ",
            "exchange 1: ",
            "<- Start\n",
            "-> Connect(#1)\n",
            "-> Done: ",
            "violations=0 digest=",
        ] {
            assert!(ran.stdout.contains(part), "{arguments:?}, {part}: {}", ran.stdout);
        }
    }
    let ran = sim(&["--replay", "5", "--seed", "6"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
}
