//! A span for each call, attempt and wait, and events for what happens within them.

use steadfast::call::{Observation, Observer, Request};
use steadfast::outcome::{AttemptRecord, Billing, Ending, Outcome};
use steadfast::time::Instant;
use tracing::field::{Empty, debug, display};
use tracing::{Level, Span, event, span};

use crate::names::{Names, Spent, error_type};

/// An observer that opens a span for the call, and one within for each attempt and each wait
///
/// The call's span is a child of the one that is current where the call begins. `None` where nobody
/// listens to it.
///
/// | span | level | what it tells |
/// |---|---|---|
/// | `call` | info | the operation, the provider, the model, the server; at its end usage, finish reasons, status, error |
/// | `attempt` | info | its number, status, error, bytes and deltas |
/// | `wait` | info | for how long it is to be, why, and what the server asked for |
///
/// Within an attempt there are events of level debug for its phases, first byte, first delta and
/// terminal state, and one of level warn for a bound that was reached. A span is shown by
/// OpenTelemetry under `otel.name`.
pub fn spans(request: &Request) -> Option<Box<dyn Observer>> {
    let Names { operation, provider, model, address, port } = Names::of(request);
    let name = model.as_ref().map_or_else(|| operation.to_owned(), |model| format!("{operation} {model}"));
    let call = span!(
        Level::INFO,
        "call",
        "otel.name" = name,
        "otel.kind" = "client",
        "otel.status_code" = Empty,
        "gen_ai.operation.name" = operation,
        "gen_ai.provider.name" = provider,
        "gen_ai.request.model" = model,
        "gen_ai.response.id" = Empty,
        "gen_ai.response.model" = Empty,
        "gen_ai.response.finish_reasons" = Empty,
        "gen_ai.usage.input_tokens" = Empty,
        "gen_ai.usage.output_tokens" = Empty,
        "gen_ai.usage.cache_read.input_tokens" = Empty,
        "gen_ai.usage.cache_creation.input_tokens" = Empty,
        "gen_ai.usage.reasoning.output_tokens" = Empty,
        "gen_ai.response.time_to_first_chunk" = Empty,
        "server.address" = address,
        "server.port" = port,
        "http.response.status_code" = Empty,
        "error.type" = Empty,
        "steadfast.result" = Empty,
        "steadfast.attempts" = Empty,
        "steadfast.billing" = Empty,
    );
    (!call.is_disabled())
        .then(|| Box::new(Spans { call, inner: Span::none(), began: None, is_over: false }) as _)
}

/// The spans of one call
struct Spans {
    call: Span,
    /// The present attempt, or the wait after it
    inner: Span,
    /// When the call did
    began: Option<Instant>,
    is_over: bool,
}

impl Observer for Spans {
    fn observe(&mut self, at: Instant, seen: &Observation<'_>) {
        let began = *self.began.get_or_insert(at);
        let inner = &self.inner;
        match *seen {
            Observation::AttemptBegan { attempt } => {
                self.inner = span!(
                    parent: &self.call,
                    Level::INFO,
                    "attempt",
                    "steadfast.attempt" = attempt,
                    "http.request.resend_count" = (attempt > 1).then(|| attempt - 1),
                    "http.response.status_code" = Empty,
                    "error.type" = Empty,
                    "otel.status_code" = Empty,
                    "steadfast.reason" = Empty,
                    "steadfast.connection.reused" = Empty,
                    "steadfast.bytes_sent" = Empty,
                    "steadfast.bytes_received" = Empty,
                    "steadfast.deltas" = Empty,
                    "steadfast.largest_gap" = Empty,
                );
            }
            Observation::PhaseBegan { kind, .. } => {
                event!(parent: inner, Level::DEBUG, "steadfast.phase" = kind.name(), "phase began");
            }
            Observation::PhaseEnded(span) => event!(
                parent: inner,
                Level::DEBUG,
                "steadfast.phase" = span.kind.name(),
                "steadfast.seconds" = (span.ended - span.began).as_secs_f64(),
                "steadfast.reason" = %span.reason,
                "phase ended"
            ),
            Observation::FirstByte { .. } => event!(parent: inner, Level::DEBUG, "first byte"),
            Observation::Head { status, .. } => {
                inner.record("http.response.status_code", status);
            }
            Observation::FirstDelta { .. } => {
                self.call.record("gen_ai.response.time_to_first_chunk", (at - began).as_secs_f64());
                event!(parent: inner, Level::DEBUG, "first delta");
            }
            Observation::Terminal { reason, .. } => {
                event!(parent: inner, Level::DEBUG, "steadfast.reason" = %reason, "answer whole");
            }
            Observation::Breached(timeout) => event!(
                parent: if inner.is_none() { &self.call } else { inner },
                Level::WARN,
                "steadfast.phase" = timeout.phase.name(),
                "steadfast.setting" = timeout.setting,
                "steadfast.seconds" = timeout.elapsed.as_secs_f64(),
                "steadfast.limit" = timeout.limit.as_secs_f64(),
                "bound reached"
            ),
            Observation::AttemptEnded(record) => self.attempt_ended(record),
            Observation::Pausing { pause, failure, retry_after, .. } => {
                self.inner = span!(
                    parent: &self.call,
                    Level::INFO,
                    "wait",
                    "steadfast.seconds" = pause.as_secs_f64(),
                    "steadfast.reason" = error_type(failure),
                    "steadfast.retry_after" = retry_after.map(|asked| asked.as_secs_f64()),
                );
            }
            Observation::Over(outcome) => self.over(outcome),
            _ => {}
        }
    }
}

impl Spans {
    fn attempt_ended(&mut self, record: &AttemptRecord) {
        let attempt = std::mem::replace(&mut self.inner, Span::none());
        attempt.record("steadfast.reason", display(record.reason));
        attempt.record("steadfast.connection.reused", record.reused);
        attempt.record("steadfast.bytes_sent", record.bytes_sent);
        attempt.record("steadfast.bytes_received", record.bytes_received);
        attempt.record("steadfast.deltas", record.deltas);
        attempt.record("steadfast.largest_gap", record.largest_gap.as_secs_f64());
    }

    fn over(&mut self, outcome: &Outcome) {
        self.is_over = true;
        self.inner = Span::none();
        let (call, turn) = (&self.call, outcome.turn());
        call.record("steadfast.result", outcome.word());
        call.record("steadfast.attempts", outcome.timeline.attempt_count());
        if let Some(id) = &turn.id {
            call.record("gen_ai.response.id", id.as_str());
        }
        if let Some(model) = &turn.model {
            call.record("gen_ai.response.model", model.as_str());
        }
        let reasons: Vec<&str> =
            turn.choices.iter().filter_map(|choice| choice.finish_reason.as_deref()).collect();
        if !reasons.is_empty() {
            call.record("gen_ai.response.finish_reasons", debug(reasons));
        }
        if let Some(Spent { input, output, tokens }) = Spent::of(turn) {
            call.record("gen_ai.usage.input_tokens", input);
            call.record("gen_ai.usage.output_tokens", output);
            for (name, part) in [
                ("gen_ai.usage.cache_read.input_tokens", tokens.cached_input),
                ("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write),
                ("gen_ai.usage.reasoning.output_tokens", tokens.reasoning),
            ] {
                call.record(name, (part > 0).then_some(part));
            }
        }
        let last = outcome.timeline.attempts.last().and_then(|attempt| attempt.status);
        call.record("http.response.status_code", last);
        match &outcome.result {
            Ok(completion) => {
                let is_whole = completion.ending == Ending::Completed;
                call.record("otel.status_code", is_whole.then_some("OK"));
            }
            Err(error) => {
                call.record("error.type", error_type(&error.kind));
                call.record("otel.status_code", "ERROR");
                let billing = match error.billing {
                    Billing::NotSent => "not_sent",
                    Billing::MaybeBilled => "maybe_billed",
                    Billing::Delivered => "delivered",
                };
                call.record("steadfast.billing", billing);
            }
        }
    }
}

/// A call that is dropped is over, though nobody is told its outcome
impl Drop for Spans {
    fn drop(&mut self) {
        if !self.is_over {
            self.call.record("error.type", "dropped");
            self.call.record("otel.status_code", "ERROR");
        }
    }
}
