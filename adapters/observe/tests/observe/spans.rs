//! The spans, printed as a tree.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use steadfast_blocking::observe;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::{SECRETS, client, mock, request};

#[test]
fn a_retried_streaming_call_is_shown_as_spans() {
    let (mock, tree) = (mock(), Tree::default());
    let subscriber = tracing_subscriber::registry().with(tree.clone());
    tracing::subscriber::with_default(subscriber, || {
        let around = tracing::info_span!("around");
        let _inside = around.enter();
        let outcome = client().with_observers(observe::spans).send(request(&mock));
        assert_eq!(outcome.turn().text(), "Hi");
    });
    let printed = tree.print();
    println!("{printed}");

    let spans = tree.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name).collect();
    assert_eq!(names, ["around", "call", "attempt", "wait", "attempt"]);
    let parents: Vec<Option<&str>> = spans.iter().map(|span| span.parent).collect();
    assert_eq!(parents, [None, Some("around"), Some("call"), Some("call"), Some("call")]);
    assert!(spans.iter().all(|span| span.is_closed), "{printed}");

    let call = &spans[1].fields;
    for (name, value) in [
        ("otel.name", "chat gpt-test"),
        ("otel.kind", "client"),
        ("otel.status_code", "OK"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-test"),
        ("gen_ai.response.id", "c-1"),
        ("gen_ai.response.model", "gpt-test-0613"),
        ("gen_ai.response.finish_reasons", "[\"stop\"]"),
        ("gen_ai.usage.input_tokens", "11"),
        ("gen_ai.usage.output_tokens", "2"),
        ("gen_ai.usage.cache_read.input_tokens", "4"),
        ("gen_ai.usage.reasoning.output_tokens", "1"),
        ("server.address", "127.0.0.1"),
        ("server.port", &mock.addr().port().to_string()),
        ("http.response.status_code", "200"),
        ("steadfast.result", "completed"),
        ("steadfast.attempts", "2"),
    ] {
        assert_eq!(call.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(call.get("error.type"), None);
    let first: f64 = call["gen_ai.response.time_to_first_chunk"].parse().unwrap();
    assert!(first >= 0.02, "the pause is within it: {first}");

    let attempts: Vec<[Option<&str>; 3]> = [&spans[2].fields, &spans[4].fields]
        .map(|fields| {
            ["steadfast.attempt", "http.response.status_code", "steadfast.reason"]
                .map(|name| fields.get(name).map(String::as_str))
        })
        .to_vec();
    assert_eq!(attempts[0], [Some("1"), Some("503"), Some("status 503")]);
    assert_eq!(attempts[1], [Some("2"), Some("200"), Some("sentinel")]);
    assert_eq!(spans[4].fields.get("http.request.resend_count").map(String::as_str), Some("1"));
    assert_eq!(spans[3].fields.get("steadfast.reason").map(String::as_str), Some("503"));
    assert_eq!(spans[3].fields.get("steadfast.retry_after").map(String::as_str), Some("0.02"));
    let seconds: f64 = spans[3].fields["steadfast.seconds"].parse().unwrap();
    assert!(seconds >= 0.02, "{seconds}");
    for event in ["first byte", "first delta", "answer whole"] {
        assert!(spans[4].events.iter().any(|told| told == event), "{event}");
    }
    for secret in SECRETS {
        assert!(!printed.contains(secret), "{secret}");
    }
}

#[test]
fn a_call_that_is_dropped_says_so() {
    let (mock, tree) = (mock(), Tree::default());
    let subscriber = tracing_subscriber::registry().with(tree.clone());
    tracing::subscriber::with_default(subscriber, || {
        drop(client().with_observers(observe::spans).stream(request(&mock)));
    });
    let spans = tree.spans();
    assert_eq!(spans[0].fields.get("error.type").map(String::as_str), Some("dropped"));
    assert!(spans.iter().all(|span| span.is_closed), "{}", tree.print());
}

/// Keeps what it is told, in order
#[derive(Clone, Default)]
pub(crate) struct Tree(Arc<Mutex<Vec<(Id, Seen)>>>);

#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) parent: Option<&'static str>,
    depth: usize,
    pub(crate) fields: BTreeMap<&'static str, String>,
    events: Vec<String>,
    pub(crate) is_closed: bool,
}

impl Tree {
    pub(crate) fn spans(&self) -> Vec<Seen> {
        self.0.lock().unwrap().iter().map(|(_, seen)| seen.clone()).collect()
    }

    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for Seen { name, depth, fields, events, .. } in self.spans() {
            let indent = "  ".repeat(depth);
            writeln!(out, "{indent}{name}").unwrap();
            for (name, value) in fields {
                writeln!(out, "{indent}  {name} = {value}").unwrap();
            }
            for event in events {
                writeln!(out, "{indent}  · {event}").unwrap();
            }
        }
        out
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut spans = self.0.lock().unwrap();
        // The registry uses the numbers of spans that are closed again.
        let (_, seen) = spans.iter_mut().rev().find(|(known, _)| known == id).unwrap();
        change(seen);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tree {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|parent| parent.name());
        let mut seen =
            Seen { name: span.name(), parent, depth: span.scope().skip(1).count(), ..Seen::default() };
        attributes.record(&mut Fields(&mut seen.fields));
        self.0.lock().unwrap().push((id.clone(), seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |seen| values.record(&mut Fields(&mut seen.fields)));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let message = fields.remove("message").unwrap_or_default();
        self.change(&span.id(), |seen| seen.events.push(message));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |seen| seen.is_closed = true);
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
