//! A span for a tool loop, and one for each tool that it runs.

use std::collections::BTreeMap;

use steadfast::call::Request;
use steadfast::chat::{LoopEnd, LoopObservation, LoopObserver, LoopWork, ToolEnd, ToolRecord};
use steadfast::outcome::ToolKind;
use tracing::field::Empty;
use tracing::{Level, Span, span};

use crate::names::Names;

/// An observer that opens a span for a run of a tool loop, and one within for each tool that it runs
///
/// The run's span is a child of the one that is current where the run begins. The calls of the model are
/// within it, where [`spans`](crate::spans()) shows those; what a tool does is within the tool's span. `None`
/// where nobody listens. Arguments and results are never told.
///
/// | span | level | what it tells |
/// |---|---|---|
/// | `invoke_agent` | info | the provider, the model; at its end how often the model was called, tokens, and why it ended |
/// | `execute_tool` | info | the tool's name, the provider's id of the call; at its end what went wrong, if anything did |
pub fn tool_spans(request: &Request) -> Option<Box<dyn LoopObserver>> {
    let Names { provider, model, address, port, .. } = Names::of(request);
    let run = span!(
        Level::INFO,
        "invoke_agent",
        "otel.name" = "invoke_agent",
        "otel.kind" = "internal",
        "otel.status_code" = Empty,
        "gen_ai.operation.name" = "invoke_agent",
        "gen_ai.provider.name" = provider,
        "gen_ai.request.model" = model,
        "gen_ai.usage.input_tokens" = Empty,
        "gen_ai.usage.output_tokens" = Empty,
        "server.address" = address,
        "server.port" = port,
        "error.type" = Empty,
        "steadfast.result" = Empty,
        "steadfast.turns" = Empty,
    );
    (!run.is_disabled()).then(|| Box::new(ToolSpans { run, tools: BTreeMap::new(), is_over: false }) as _)
}

/// The spans of one run
struct ToolSpans {
    run: Span,
    /// Those of the tools that run now, by position in the answer
    tools: BTreeMap<usize, Span>,
    is_over: bool,
}

impl LoopObserver for ToolSpans {
    fn observe(&mut self, seen: &LoopObservation<'_>) {
        match *seen {
            LoopObservation::ToolBegan { turn, position, call } => {
                let kind = match call.kind {
                    ToolKind::Function | ToolKind::Custom => "function",
                    ToolKind::Server => "extension",
                };
                let tool = span!(
                    parent: &self.run,
                    Level::INFO,
                    "execute_tool",
                    "otel.name" = format!("execute_tool {}", call.name),
                    "otel.kind" = "internal",
                    "otel.status_code" = Empty,
                    "gen_ai.operation.name" = "execute_tool",
                    "gen_ai.tool.name" = call.name,
                    "gen_ai.tool.call.id" = (!call.id.is_empty()).then_some(&*call.id),
                    "gen_ai.tool.type" = kind,
                    "error.type" = Empty,
                    "steadfast.turn" = turn,
                    "steadfast.seconds" = Empty,
                );
                self.tools.insert(position, tool);
            }
            LoopObservation::ToolEnded { position, record } => {
                if let Some(tool) = self.tools.remove(&position) {
                    ended(&tool, record);
                }
            }
            LoopObservation::Over { end, turns, cost } => {
                self.is_over = true;
                self.tools.clear();
                let tokens = cost.tokens;
                let input =
                    tokens.input.saturating_add(tokens.cached_input).saturating_add(tokens.cache_write);
                self.run.record("gen_ai.usage.input_tokens", input);
                self.run.record("gen_ai.usage.output_tokens", tokens.output.saturating_add(tokens.reasoning));
                self.run.record("steadfast.turns", turns);
                self.run.record("steadfast.result", end.name());
                if end == LoopEnd::Answered {
                    self.run.record("otel.status_code", "OK");
                } else {
                    failed(&self.run, end.name());
                }
            }
            _ => {}
        }
    }

    fn around(&mut self, work: LoopWork, act: &mut dyn FnMut()) {
        let tool = if let LoopWork::Tool { position } = work { self.tools.get(&position) } else { None };
        tool.unwrap_or(&self.run).in_scope(act);
    }
}

/// A run that is dropped is over, though nobody is told how it ended
impl Drop for ToolSpans {
    fn drop(&mut self) {
        if !self.is_over {
            for span in self.tools.values().chain([&self.run]) {
                failed(span, ToolEnd::Dropped.name());
            }
        }
    }
}

fn ended(tool: &Span, record: &ToolRecord) {
    tool.record("steadfast.seconds", record.elapsed.as_secs_f64());
    if record.end == ToolEnd::Returned {
        tool.record("otel.status_code", "OK");
    } else {
        failed(tool, record.end.name());
    }
}

fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}
