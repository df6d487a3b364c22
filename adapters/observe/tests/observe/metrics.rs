//! The numbers, as a recorder gets them.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use steadfast_blocking::observe;

use steadfast_blocking::{Outcome, Request};
use tokio::runtime::Builder;

use super::{SECRETS, client, mock, request};

#[test]
fn a_retried_streaming_call_is_counted_and_measured() {
    is_counted_and_measured(|request| client().with_observers(observe::metrics).send(request));
}

#[test]
fn and_so_it_is_on_tokio() {
    is_counted_and_measured(|request| {
        let client = steadfast_tokio::Client::new().with_proxies(steadfast_tokio::Proxies::none());
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(client.with_observers(steadfast_tokio::observe::metrics).send(request))
    });
}

#[test]
fn and_on_smol() {
    is_counted_and_measured(|request| {
        let client = steadfast_smol::Client::new().with_proxies(steadfast_smol::Proxies::none());
        smol::block_on(client.with_observers(steadfast_smol::observe::metrics).send(request))
    });
}

#[test]
fn a_call_that_is_dropped_counts_as_such() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        drop(client().with_observers(observe::metrics).stream(request(&mock())));
    });
    let told = snapshotter.snapshot().into_vec();
    let calls = told.iter().filter(|(key, ..)| key.key().name() == "steadfast.calls");
    let results: Vec<&str> = calls
        .flat_map(|(key, ..)| key.key().labels().filter(|label| label.key() == "steadfast.result"))
        .map(|label| label.value())
        .collect();
    assert_eq!(results, ["dropped"]);
}

#[test]
fn a_model_without_measure_in_an_answer_is_no_label() {
    for (model, expected) in [("gpt-test-1".to_owned(), "gpt-test-1"), ("x".repeat(4096), "_OTHER")] {
        let script = super::SCRIPT.replace("gpt-test-0613", &model);
        let script = steadfast_scenario::Script::parse(&script).expect("a valid script");
        let mock = steadfast_mock::Mock::start(&script, None).expect("the server starts");
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            let outcome = client().with_observers(observe::metrics).send(request(&mock));
            assert_eq!(outcome.turn().model.as_ref(), Some(&model));
        });
        let told = snapshotter.snapshot().into_vec();
        let labels = told.iter().flat_map(|(key, ..)| key.key().labels());
        let named = labels.filter(|label| label.key() == "gen_ai.response.model");
        let named: Vec<&str> = named.map(|label| label.value()).collect();
        assert_eq!(named, [expected; 3], "of the duration, and of the tokens of both kinds");
    }
}

/// Sends the request, on this thread, and looks at the numbers
fn is_counted_and_measured(send: impl FnOnce(Request) -> Outcome) {
    let mock = mock();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        observe::describe_metrics();
        let outcome = send(request(&mock));
        assert_eq!(outcome.turn().text(), "Hi");
    });
    let mut told = String::new();
    let mut numbers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (key, _, about, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        assert!(about.is_some(), "{} is described", key.name());
        let labels: BTreeMap<&str, &str> = key.labels().map(|label| (label.key(), label.value())).collect();
        told.push_str(&format!("{} {labels:?} {value:?}\n", key.name()));
        assert_eq!(labels["gen_ai.operation.name"], "chat");
        assert_eq!(labels["gen_ai.provider.name"], "openai");
        assert_eq!(labels["gen_ai.request.model"], "gpt-test");
        assert_eq!(labels["server.port"], mock.addr().port().to_string());
        let own = ["steadfast.reason", "steadfast.result", "error.type", "gen_ai.token.type"];
        let own: Vec<&str> = own.iter().filter_map(|name| labels.get(name).copied()).collect();
        let values = match value {
            DebugValue::Counter(count) => vec![count as f64],
            DebugValue::Histogram(values) => values.into_iter().map(f64::from).collect(),
            DebugValue::Gauge(_) => panic!("there are no gauges"),
        };
        numbers.insert(format!("{} {}", key.name(), own.join(" ")).trim_end().to_owned(), values);
    }
    println!("{told}");
    for (name, count) in [
        ("steadfast.calls completed", 1.0),
        ("steadfast.attempts status 503", 1.0),
        ("steadfast.attempts sentinel", 1.0),
        ("steadfast.waits 503", 1.0),
        ("gen_ai.client.token.usage input", 11.0),
        ("gen_ai.client.token.usage output", 2.0),
    ] {
        assert_eq!(numbers.get(name), Some(&vec![count]), "{name}");
    }
    assert_eq!(numbers["steadfast.attempt.time_to_first_byte"].len(), 2);
    assert_eq!(numbers["steadfast.attempt.largest_gap"].len(), 1);
    let (wait, whole) =
        (numbers["steadfast.wait.duration 503"][0], numbers["gen_ai.client.operation.duration"][0]);
    let first = numbers["gen_ai.client.operation.time_to_first_chunk"][0];
    assert!(0.02 <= wait && wait <= first && first <= whole, "{wait} {first} {whole}");
    for secret in SECRETS {
        assert!(!told.contains(secret), "{secret}");
    }
}
