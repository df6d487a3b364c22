//! `steadfast sim`: runs without a violation, the same twice, and one alone.

use serde_json::Value;

use crate::support::{Ran, run, steadfast};

fn sim(arguments: &[&str]) -> Ran {
    run(&mut steadfast(&[&["sim"], arguments].concat()))
}

/// So many runs from this seed meet every row
const ENOUGH: [&str; 4] = ["--runs", "3000", "--seed", "7"];

#[test]
fn runs_hold_and_are_counted() {
    let ran = sim(&ENOUGH);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let keys = |line: &str| {
        line.split(' ').map(|pair| pair.split_once('=').map(|(key, _)| key.to_owned())).collect()
    };
    let first: Option<Vec<String>> = ran.stdout.lines().next().and_then(keys);
    let expected = ["runs", "steps", "virtual_hours", "violations", "runs_per_s"];
    assert_eq!(first, Some(expected.map(str::to_owned).to_vec()), "{}", ran.stdout);
    for part in ["runs=3000 ", " violations=0 ", "\nreset  ", "\nStreaming -> Finished  "] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn the_same_seeds_give_the_same_digest() {
    let digest = |seed: &str| {
        let ran = sim(&["--runs", "50", "--seed", seed, "--digest", "--json"]);
        let result: Value = serde_json::from_str(&ran.stdout).expect("one line of JSON");
        assert_eq!((&result["violations"], &result["runs"]), (&0.into(), &50.into()));
        assert!(result["faults"]["reset"].as_u64() > Some(0), "{result}");
        result["digest"].as_str().expect("a digest").to_owned()
    };
    assert_eq!(digest("3"), digest("3"));
    assert_ne!(digest("3"), digest("4"));
}

#[test]
fn a_row_that_was_never_met_fails_any_number_of_runs() {
    let ran = sim(&["--runs", "1", "--json"]);
    let result: Value = serde_json::from_str(&ran.stdout).expect("one line of JSON");
    assert_eq!((ran.code, &result["violations"]), (Some(1), &0.into()));
    let never_met: Vec<_> = result["never_met"].as_array().expect("a list").iter().collect();
    let zeros = ["faults", "transitions"].map(|table| {
        let rows = result[table].as_object().expect("a table");
        rows.values().filter(|hits| **hits == 0).count()
    });
    assert_eq!(never_met.len(), zeros.iter().sum::<usize>());
    assert!(never_met.len() > 50, "{never_met:?}");
    let names: Vec<_> = never_met.iter().map(|name| name.as_str().expect("a name")).collect();
    let told = format!("{} rows were never met: {}\n", names.len(), names.join(", "));
    let more = " runs meet every row\n";
    assert!(ran.stderr.starts_with(&told) && ran.stderr.ends_with(more), "{}", ran.stderr);

    // Without a violation there is no run to replay, and one that is replayed is judged by itself.
    let ran = sim(&["--runs", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(!ran.stdout.contains("replay:") && ran.stderr.starts_with(&told), "{ran:?}");
    let ran = sim(&["--replay", "1"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);

    let ran = sim(&["--runs", "0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
}

#[test]
fn one_run_is_told_as_json() {
    for arguments in [["--replay", "5"], ["--tape", "0"]] {
        let ran = sim(&[&arguments[..], &["--json", "--digest"]].concat());
        let result: Value = serde_json::from_str(&ran.stdout).expect("one line of JSON");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!((&result["violation"], &result["shortest"]), (&Value::Null, &Value::Null));
        let digest = result["digest"].as_str().expect("a digest");
        assert!(
            sim(&arguments).stdout.ends_with(&format!("violations=0 digest={digest}\n")),
            "{arguments:?}"
        );
        assert!(result["outcomes"][0]["timeline"].is_object(), "{result}");
    }
}

#[test]
fn one_run_is_told_step_by_step() {
    for arguments in [["--replay", "5"], ["--tape", "0"]] {
        let ran = sim(&arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for part in [
            "call 1: ",
            "exchange 1: ",
            "\"event\":\"start\"}\n",
            "{\"step\":\"connect\",\"link\":1}\n",
            "{\"step\":\"done\",",
            "violations=0 digest=",
        ] {
            assert!(ran.stdout.contains(part), "{arguments:?}, {part}: {}", ran.stdout);
        }
    }
    let ran = sim(&["--replay", "5", "--seed", "6"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
}

#[test]
#[cfg(not(feature = "planted-faults"))]
fn a_build_without_planted_faults_says_which_has_them() {
    let ran = sim(&["--plant", "retry-after-delivery"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("--features planted-faults"), "{}", ran.stderr);
}

#[test]
#[cfg(feature = "planted-faults")]
fn planted_faults_are_found() {
    let ran = sim(&["--plant", "second-done", "--runs", "2000"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("replay: steadfast sim --plant second-done --replay "), "{}", ran.stdout);

    let ran = sim(&["--plant", "all", "--runs", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("fault  ") && ran.stdout.contains("not found"), "{}", ran.stdout);

    let ran = sim(&["--plant", "secnd-done"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("second-done"), "{}", ran.stderr);
    let ran = sim(&["--plant", "all", "--replay", "1"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
}
