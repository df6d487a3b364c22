//! Counters and histograms of calls, attempts, waits and bounds.

use metrics::{Label, Unit, counter, describe_counter, describe_histogram, histogram};
use steadfast::call::{Observation, Observer, Request};
use steadfast::outcome::Outcome;
use steadfast::time::Instant;

use crate::models::Models;
use crate::names::{Names, Spent, error_type};

/// An observer that counts and measures; it costs little where no recorder of metrics is installed
///
/// | metric | kind | of what | its own labels |
/// |---|---|---|---|
/// | `gen_ai.client.operation.duration` | histogram, s | a call, whole | `gen_ai.response.model`, `error.type` |
/// | `gen_ai.client.operation.time_to_first_chunk` | histogram, s | the call's start to its first delta | |
/// | `gen_ai.client.token.usage` | histogram | tokens of a call | `gen_ai.token.type`: `input` or `output` |
/// | `steadfast.calls` | counter | calls that ended, or were `dropped` | `steadfast.result`, and `error.type` |
/// | `steadfast.attempts` | counter | attempts that ended | `steadfast.reason` |
/// | `steadfast.attempt.time_to_first_byte` | histogram, s | an attempt's start to its first byte | |
/// | `steadfast.attempt.largest_gap` | histogram, s | the longest silence within a stream | |
/// | `steadfast.waits` | counter | pauses before another attempt | `error.type`: that of the failure before |
/// | `steadfast.wait.duration` | histogram, s | such a pause, as planned | the same |
/// | `steadfast.breaches` | counter | bounds that were reached | `steadfast.phase` |
///
/// All have the labels `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.request.model`,
/// `server.address` and `server.port`. Of the models that answers name, other than those asked for, the
/// process tells [`MAX_MODELS`](crate::MAX_MODELS) apart, with names of up to
/// [`MAX_MODEL_BYTES`](crate::MAX_MODEL_BYTES); the rest is `_OTHER`.
pub fn metrics(request: &Request) -> Option<Box<dyn Observer>> {
    let Names { operation, provider, model, address, port } = Names::of(request);
    let mut labels = vec![
        Label::from_static_parts("gen_ai.operation.name", operation),
        Label::from_static_parts("gen_ai.provider.name", provider),
        Label::new("server.address", address),
        Label::new("server.port", port.to_string()),
    ];
    labels.extend(model.clone().map(|model| Label::new("gen_ai.request.model", model)));
    let attempt_began = Instant::ORIGIN;
    Some(Box::new(Numbers { labels, asked_for: model, began: None, attempt_began, is_over: false }))
}

/// Tells the recorder of metrics what each one is, and its unit; once, after it is installed
pub fn describe_metrics() {
    let seconds = Unit::Seconds;
    describe_histogram!("gen_ai.client.operation.duration", seconds, "How long a call took");
    describe_histogram!(
        "gen_ai.client.operation.time_to_first_chunk",
        seconds,
        "From the start of a call to the first piece of its answer"
    );
    describe_histogram!("gen_ai.client.token.usage", Unit::Count, "Tokens of a call");
    describe_counter!("steadfast.calls", Unit::Count, "Calls that ended");
    describe_counter!("steadfast.attempts", Unit::Count, "Attempts that ended");
    describe_histogram!(
        "steadfast.attempt.time_to_first_byte",
        seconds,
        "From the start of an attempt to the first byte of its response"
    );
    describe_histogram!("steadfast.attempt.largest_gap", seconds, "The longest silence within a stream");
    describe_counter!("steadfast.waits", Unit::Count, "Pauses before another attempt");
    describe_histogram!("steadfast.wait.duration", seconds, "A pause before another attempt");
    describe_counter!("steadfast.breaches", Unit::Count, "Bounds that were reached");
}

/// As recorders of metrics are, of the whole process
static MODELS: Models = Models::new();

/// The numbers of one call
struct Numbers {
    labels: Vec<Label>,
    /// The model that the request names
    asked_for: Option<String>,
    /// When the call did
    began: Option<Instant>,
    attempt_began: Instant,
    is_over: bool,
}

/// A call that is dropped is over, though nobody is told its outcome
impl Drop for Numbers {
    fn drop(&mut self) {
        if !self.is_over {
            let result = ("steadfast.result", "dropped".to_owned());
            counter!("steadfast.calls", self.with([result])).increment(1);
        }
    }
}

impl Observer for Numbers {
    fn observe(&mut self, at: Instant, seen: &Observation<'_>) {
        let began = *self.began.get_or_insert(at);
        match *seen {
            Observation::AttemptBegan { .. } => self.attempt_began = at,
            Observation::FirstByte { .. } => {
                let waited = (at - self.attempt_began).as_secs_f64();
                histogram!("steadfast.attempt.time_to_first_byte", self.labels.clone()).record(waited);
            }
            Observation::FirstDelta { .. } => {
                let waited = (at - began).as_secs_f64();
                let name = "gen_ai.client.operation.time_to_first_chunk";
                histogram!(name, self.labels.clone()).record(waited);
            }
            Observation::Breached(timeout) => {
                let labels = self.with([("steadfast.phase", timeout.phase.name().to_owned())]);
                counter!("steadfast.breaches", labels).increment(1);
            }
            Observation::AttemptEnded(record) => {
                let labels = self.with([("steadfast.reason", record.reason.to_string())]);
                counter!("steadfast.attempts", labels).increment(1);
                if record.events > 0 {
                    let gap = record.largest_gap.as_secs_f64();
                    histogram!("steadfast.attempt.largest_gap", self.labels.clone()).record(gap);
                }
            }
            Observation::Pausing { pause, failure, .. } => {
                let labels = self.with([("error.type", error_type(failure))]);
                counter!("steadfast.waits", labels.clone()).increment(1);
                histogram!("steadfast.wait.duration", labels).record(pause.as_secs_f64());
            }
            Observation::Over(outcome) => self.over(outcome),
            Observation::PhaseBegan { .. }
            | Observation::Head { .. }
            | Observation::Terminal { .. }
            | Observation::PhaseEnded(_)
            | _ => {}
        }
    }
}

impl Numbers {
    fn over(&mut self, outcome: &Outcome) {
        self.is_over = true;
        let error = outcome.result.as_ref().err().map(|error| ("error.type", error_type(&error.kind)));
        let result = ("steadfast.result", outcome.word().to_owned());
        counter!("steadfast.calls", self.with([result].into_iter().chain(error.clone()))).increment(1);
        let turn = outcome.turn();
        let label = |model: &String| match &self.asked_for {
            Some(asked_for) if asked_for == model => model.clone(),
            Some(_) | None => MODELS.label(model).to_owned(),
        };
        let model = turn.model.as_ref().map(|model| ("gen_ai.response.model", label(model)));
        histogram!("gen_ai.client.operation.duration", self.with(error.into_iter().chain(model.clone())))
            .record(outcome.timeline.elapsed().as_secs_f64());
        let Some(Spent { input, output, .. }) = Spent::of(turn) else { return };
        for (kind, tokens) in [("input", input), ("output", output)] {
            let kind = [("gen_ai.token.type", kind.to_owned())].into_iter().chain(model.clone());
            histogram!("gen_ai.client.token.usage", self.with(kind)).record(tokens as f64);
        }
    }

    fn with(&self, more: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Label> {
        let more = more.into_iter().map(|(name, value)| Label::new(name, value));
        self.labels.iter().cloned().chain(more).collect()
    }
}
