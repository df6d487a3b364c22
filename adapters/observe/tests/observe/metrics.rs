//! The numbers, as a recorder gets them.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use steadfast_blocking::observe;

use super::{SECRETS, client, mock, request};

#[test]
fn a_retried_streaming_call_is_counted_and_measured() {
    let mock = mock();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        observe::describe_metrics();
        let outcome = client().with_observers(observe::metrics).send(request(&mock));
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
