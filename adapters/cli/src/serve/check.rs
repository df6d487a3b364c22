//! `steadfast serve --check`: what is in force, and where each part comes from.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use steadfast_relay::{Limit, RouteId, Shape, Source, Upstream};

use super::plan::Plan;
use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{for_terminal, is_read, print, print_json};

/// Prints what would be in force
pub(super) fn run(args: &ServeArgs, plan: &Plan) -> Result<Exit, Failure> {
    let file = args.config.as_ref().map(|path| path.display().to_string());
    is_read(match args.json {
        true => print_json(&plan.json(file.as_deref())),
        false => print(&for_terminal(&plan.text(file.as_deref()))),
    })?;
    Ok(Exit::Completed)
}

impl Plan {
    /// A row for each setting, and then each upstream with a row for each of its limits
    fn text(&self, file: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        _ = writeln!(text, "{} can be put in force.", file.unwrap_or("The relay"));
        for (name, value, source) in self.settings() {
            _ = writeln!(text, "{name:<20} {:>14}  {source}", bare(&value));
        }
        let keys: Vec<_> = self.config.keys.labels().collect();
        let keys =
            if keys.is_empty() { "none: whoever reaches it may use it".to_owned() } else { keys.join(", ") };
        _ = writeln!(text, "{:<20} {keys}", "keys");
        _ = writeln!(text, "{:<20} {}", "recording", self.recording().unwrap_or("nowhere".to_owned()));
        for (name, file, source) in self.tls() {
            _ = writeln!(text, "{name:<20} {file:>14}  {source}");
        }
        for (id, upstream) in self.upstreams() {
            _ = writeln!(
                text,
                "\n/{}/…  goes to  {}/…  ({})",
                upstream.name,
                self.url(id),
                upstream.url.source
            );
            _ = writeln!(text, "  {:<16} {:>16}", "shape", shape(upstream.shape));
            _ = writeln!(text, "  {:<16} {:>16}", "key", key(upstream));
            for limit in Limit::ALL {
                let (value, source) = (upstream.limits.get(limit), upstream.limits.source(limit));
                _ = writeln!(text, "  {:<16} {value:>16}  {source}", limit.name());
            }
        }
        text
    }

    fn json(&self, file: Option<&str>) -> Value {
        let settings = self.settings().map(|(name, value, source)| (name.to_owned(), sourced(value, source)));
        let mut all: Map<String, Value> = settings.into_iter().collect();
        all.insert("file".to_owned(), json!(file));
        all.insert("keys".to_owned(), self.config.keys.labels().collect());
        all.insert("recording".to_owned(), self.recording().into());
        let tls = self.tls().map(|(name, file, source)| (name.to_owned(), sourced(file.into(), source)));
        all.extend(tls);
        let upstreams = self.upstreams().map(|(id, upstream)| {
            let limits = Limit::ALL.map(|limit| {
                let value = number(&upstream.limits.get(limit));
                (limit.name().to_owned(), sourced(value, upstream.limits.source(limit)))
            });
            json!({
                "name": upstream.name,
                "url": sourced(self.url(id).into(), &upstream.url.source),
                "shape": shape(upstream.shape),
                "key_env": upstream.key_env,
                "limits": limits.into_iter().collect::<Map<_, _>>(),
            })
        });
        all.insert("upstreams".to_owned(), upstreams.collect());
        Value::Object(all)
    }

    fn settings(&self) -> [(&'static str, Value, &Source); 6] {
        let config = &self.config;
        let cap = |most: Option<usize>| most.map_or_else(|| json!("inf"), |most| json!(most));
        [
            ("listen", config.listen.value.to_string().into(), &config.listen.source),
            ("max_connections", cap(config.max_connections.value), &config.max_connections.source),
            (
                "max_app_connections",
                cap(config.max_app_connections.value),
                &config.max_app_connections.source,
            ),
            ("drain", number(&config.drain.value.to_string()), &config.drain.source),
            ("share_port", config.share_port.value.into(), &config.share_port.source),
            ("without_keys", config.without_keys.value.into(), &config.without_keys.source),
        ]
    }

    /// The files of the certificate that apps are shown
    fn tls(&self) -> impl Iterator<Item = (&'static str, String, &Source)> {
        self.config.tls.iter().flat_map(|files| {
            [("tls.certificate", &files.certificate), ("tls.key", &files.key)]
                .map(|(name, file)| (name, file.value.display().to_string(), &file.source))
        })
    }

    /// Where calls are recorded
    fn recording(&self) -> Option<String> {
        self.config.recording.as_ref().map(|recording| recording.database.value.to_string())
    }

    fn upstreams(&self) -> impl Iterator<Item = (RouteId, &Upstream)> {
        self.routes.iter().map(|(id, _)| id).zip(&self.config.upstreams)
    }

    fn url(&self, id: RouteId) -> String {
        self.routes.get(id).upstream()
    }
}

fn sourced(value: Value, source: &Source) -> Value {
    json!({ "value": value, "source": source.to_string() })
}

/// A number or a truth value; of what is written only `inf` is no JSON
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// A value without quotes
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::OpenAi => "openai",
        Shape::Anthropic => "anthropic",
        Shape::Google => "gemini",
    }
}

fn key(upstream: &Upstream) -> String {
    upstream
        .key_env
        .as_ref()
        .map_or_else(|| "the app's own".to_owned(), |variable| format!("from {variable}"))
}
