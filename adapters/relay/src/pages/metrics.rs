//! What is counted, in the text format 0.0.4 of Prometheus.
//!
//! Labels are names of routes, endings, codes and limits: nothing that an app says becomes one, so that
//! there are no more series than the configuration allows.

use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use steadfast::outcome::{Reason, SpanKind, Timeline};
use steadfast::relay::{Ending, Exchanged};

use crate::record::Recorder;
use crate::shared::Relay;

/// The bounds of the histograms' buckets, in seconds
const BUCKETS: [f64; 14] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0];

/// Counters and histograms of the calls that are over
pub(super) struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    attempts: IntCounterVec,
    resends: IntCounterVec,
    breaches: IntCounterVec,
    request_bytes: IntCounterVec,
    answer_bytes: IntCounterVec,
    first_byte: HistogramVec,
    duration: HistogramVec,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            register(
                &registry,
                IntCounterVec::new(Opts::new(format!("steadfast_relay_{name}_total"), help), labels),
            )
        };
        let histogram = |name: &str, help: &str| {
            let options = HistogramOpts::new(format!("steadfast_relay_{name}_seconds"), help);
            register(&registry, HistogramVec::new(options.buckets(BUCKETS.to_vec()), &["route"]))
        };
        Self {
            calls: counter("calls", "Calls that are over, by their end", &["route", "ending", "code"]),
            attempts: counter("attempts", "Attempts at a provider", &["route"]),
            resends: counter("resends", "Requests that were sent once more", &["route"]),
            breaches: counter("limit_breaches", "Limits that were reached", &["route", "limit"]),
            request_bytes: counter("request_bytes", "Bytes of bodies from apps", &["route"]),
            answer_bytes: counter("answer_bytes", "Bytes of bodies from providers", &["route"]),
            first_byte: histogram("first_byte", "From the start of a request to the head of its answer"),
            duration: histogram("duration", "From the start of a request to the end of its answer"),
            registry,
        }
    }

    /// A call is over
    pub(super) fn over(&self, exchanged: &Exchanged) {
        let Exchanged { timeline, ending, .. } = exchanged;
        let route = exchanged.route.as_deref().unwrap_or_default();
        let code = match *ending {
            Ending::Refused(code) => code.name(),
            Ending::Limit(limit) => limit.name(),
            Ending::Passed | Ending::Served | Ending::Broken | Ending::AppLeft | Ending::Stopped => "",
        };
        self.calls.with_label_values(&[route, ending.name(), code]).inc();
        if exchanged.route.is_none() {
            return;
        }
        let attempts = timeline.attempts.len() as u64 + u64::from(timeline.attempts_not_recorded);
        self.attempts.with_label_values(&[route]).inc_by(attempts);
        self.resends.with_label_values(&[route]).inc_by(u64::from(exchanged.sends.saturating_sub(1)));
        for span in &timeline.spans {
            if let Reason::Bound(limit) = span.reason {
                self.breaches.with_label_values(&[route, limit]).inc();
            }
        }
        self.request_bytes.with_label_values(&[route]).inc_by(exchanged.request_bytes);
        self.answer_bytes.with_label_values(&[route]).inc_by(exchanged.answer_bytes);
        if let Some(seconds) = first_byte(timeline).filter(|_| exchanged.longest_gap.is_some()) {
            self.first_byte.with_label_values(&[route]).observe(seconds);
        }
        let lasted = timeline.ended - timeline.began;
        self.duration.with_label_values(&[route]).observe(lasted.as_secs_f64());
    }

    /// The text, with what holds now
    pub(super) fn text(&self, relay: &Relay, calls: (usize, u64), recorder: Option<&Recorder>) -> String {
        let now = Registry::new();
        let gauge = |name: &str, help: &str, value: usize| {
            let gauge = register(&now, IntGauge::new(format!("steadfast_relay_{name}"), help));
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let counter = |name: &str, help: &str, value: u64| {
            register(&now, IntCounter::new(format!("steadfast_relay_{name}_total"), help)).inc_by(value);
        };
        let (apps, upstreams) = relay.open();
        gauge("app_connections", "Open connections of apps", apps);
        gauge("upstream_connections", "Connections to providers in use", upstreams);
        if let Some(most) = relay.max_connections() {
            gauge("upstream_connections_limit", "How many connections to providers may be in use", most);
        }
        gauge("draining", "1 while the relay is about to stop", usize::from(relay.is_draining()));
        gauge("live_calls", "Calls under way that the page shows", calls.0);
        counter("calls_not_shown", "Calls past what the page shows at once", calls.1);
        if let Some(recorder) = recorder {
            counter("records_dropped", "Parts of records that were lost", recorder.dropped());
            gauge("records_queued_bytes", "Bytes that wait to be recorded", recorder.queued_bytes());
            let is_troubled = usize::from(recorder.trouble().is_some());
            gauge("records_troubled", "1 where the database last took nothing", is_troubled);
        }
        let build = Opts::new("steadfast_relay_build_info", "The version that runs")
            .const_label("version", env!("CARGO_PKG_VERSION"));
        register(&now, IntGauge::with_opts(build)).set(1);
        let mut families = self.registry.gather();
        families.extend(now.gather());
        TextEncoder::new().encode_to_string(&families).unwrap_or_default()
    }
}

/// Seconds until the head of the answer came, where one did
fn first_byte(timeline: &Timeline) -> Option<f64> {
    let request = timeline.spans.iter().rev().find(|span| span.kind == SpanKind::Request)?;
    Some((request.ended - timeline.began).as_secs_f64())
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let made = made.expect("the names here are valid");
    registry.register(Box::new(made.clone())).expect("the names here differ");
    made
}
