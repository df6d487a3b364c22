//! `steadfast demo`: every scenario on real sockets, and how the results are told.

use serde_json::Value;

use crate::support::{Ran, finish, run, spawn, steadfast};

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect("one JSON object")
}

#[test]
fn every_scenario_ends_as_it_must() {
    let ran = run(&mut steadfast(&["demo", "--json", "--driver", "all"]));
    let results = json(&ran);
    let scenarios = results["scenarios"].as_array().expect("a list");
    let differing: Vec<&Value> = scenarios.iter().filter(|scenario| scenario["ok"] != true).collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert_eq!((ran.code, ran.stderr.as_str(), &results["ok"]), (Some(0), "", &Value::Bool(true)));
    assert_eq!(ran.stdout.lines().count(), 1);

    const DRIVERS: [&str; 4] = ["sim", "tokio", "smol", "blocking"];
    let known = steadfast_scenario::all();
    assert_eq!(scenarios.len(), known.len() * DRIVERS.len());
    assert!(known.len() >= 95);
    assert!(results["elapsed"].as_f64().is_some_and(|elapsed| elapsed < 60.0), "{}", results["elapsed"]);
    for (played, known) in scenarios.chunks(DRIVERS.len()).zip(known) {
        for (played, driver) in played.iter().zip(DRIVERS) {
            assert_eq!((&played["name"], &played["driver"]), (&known.name().into(), &driver.into()));
            let calls = played["calls"].as_array().expect("a list");
            assert_eq!(calls.len(), known.call.calls as usize, "{}", known.name());
            for call in calls {
                assert!(call["timeline"]["attempts"].is_array(), "{call}");
            }
        }
    }
}

#[test]
fn drivers_are_compared_side_by_side() {
    let ran =
        run(&mut steadfast(&["demo", "--only", "unary-mute", "--driver", "blocking", "--driver", "sim"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["scenario", "sim", "blocking"]);
    assert_eq!((lines[1][..2].to_vec(), lines[1].len()), (vec!["unary-mute", "0.300"], 3));
    assert!(lines[1][2].starts_with("0.3"), "{:?}", lines[1]);
    assert_eq!(lines[3].join(" "), "sim 1 of 1 scenarios ended as they must");
    assert_eq!(lines[4].join(" "), "blocking 1 of 1 scenarios ended as they must");
}

#[test]
fn the_table_shows_what_happened_and_the_waterfall_when() {
    let ran = run(&mut steadfast(&["demo", "--only", "unary-mute", "--only", "status-503-one-attempt"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(
        cells(lines[0]),
        ["scenario", "the server", "expected", "got", "elapsed", "attempts", "billing"]
    );
    let mute = cells(lines[1]);
    assert!(mute[5].starts_with("0.3") && mute[5].ends_with(" s, bound 0.300"), "{mute:?}");
    let rest: Vec<&str> = mute.iter().map(String::as_str).filter(|cell| *cell != mute[5]).collect();
    let timeout = "timeout request";
    assert_eq!(
        rest,
        ["ok", "unary-mute", "reads the request, never answers", timeout, timeout, "1", "maybe_billed"]
    );
    assert_eq!(
        cells(lines[2])[1..5],
        ["status-503-one-attempt", "503, and one attempt allowed", "status 503", "status 503"]
    );
    assert_eq!(lines[4], "unary-mute: reads the request, never answers -> timeout request");
    assert!(lines[6].contains("|") && lines[6].ends_with("request_timeout reached"), "{}", lines[6]);
    let last = lines[lines.len() - 1];
    assert!(last.starts_with("2 of 2 scenarios ended as they must, in 0."), "{last}");
    assert!(!ran.stdout.contains('\u{1b}'), "colour in a pipe");
}

#[test]
fn the_list_names_every_scenario_and_plays_none() {
    let ran = run(&mut steadfast(&["demo", "--list"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<&str> = steadfast_scenario::all().iter().map(|scenario| scenario.name()).collect();
    assert_eq!(names, known);
    assert!(ran.stdout.contains("  reads the request, never answers\n"));
}

#[test]
fn nobody_has_to_read_the_results() {
    for arguments in [&["demo", "--list"][..], &["demo", "--only", "unary-happy"]] {
        let mut child = spawn(&mut steadfast(arguments));
        drop(child.stdout.take());
        let ran = finish(child);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    }
}
