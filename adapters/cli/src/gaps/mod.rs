//! `steadfast gaps`: how long providers are silent within a stream, against the idle bound.
//!
//! | file | what is in it |
//! |---|---|
//! | `arrivals` | when bytes came, and the gaps between |
//! | `report` | what was measured, for people and for programs |

mod arrivals;
mod report;

use std::sync::Arc;
use std::time::Duration;

use steadfast::config::Overrides;
use steadfast::outcome::Phase;
use steadfast::trace::Recorder;
use steadfast_tokio::{Bodies, Client, ErrorKind, Outcome, Request};
use tokio::runtime;
use tokio::sync::Notify;

use crate::args::{CallArgs, GapsArgs};
use crate::call::converse;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::{Listen, on_interrupt};
use crate::message::say;
use crate::output::{is_read, print, print_json};
use crate::provider::{PROFILES, Profile, Provider, Want};
use crate::request::{Asked, has_key};
use crate::usage::UsageError;

use arrivals::Arrivals;
use report::{Measured, Report, Run};

/// The gap past which the idle bound's default is too near to what is healthy
pub(crate) const MOST: Duration = Duration::from_secs(60);

/// A measured stream may be silent for so long, in seconds, unless a setting says otherwise: a gap past
/// the idle bound is to be seen, not cut off
const IDLE_SECONDS: f64 = 600.0;

/// A measured stream may last so long, in seconds, unless a setting says otherwise
const DEADLINE_SECONDS: f64 = 1800.0;

/// What makes a model think for a while before it answers
const PROMPT: &str = "How many trailing zeros does 2026! have in base 12? Think it through step by step, check the \
                      result in a second way, and only then answer, in two sentences.";

/// Runs the command
pub(crate) fn run(args: &GapsArgs) -> Result<Exit, Failure> {
    let bound = Client::new().with_config(&args.overrides()?).map_err(UsageError::from)?.config().config();
    let measured = Overrides::new()
        .max_attempts(1)
        .stream_idle_timeout(IDLE_SECONDS)
        .stream_deadline(DEADLINE_SECONDS)
        .merge(&args.overrides()?);
    let client = args.connect.applied_to(Client::new());
    let client = client.with_config(&measured).map_err(UsageError::from)?;
    let asked = asked(args, |name| std::env::var(name).ok())?;
    let interrupted = Arc::new(Notify::new());
    let interrupt = Arc::clone(&interrupted);
    on_interrupt(Listen::Interrupt, move || interrupt.notify_one())?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut report = Report::new(bound.stream_idle_timeout());
    let mut given_up = false;
    'runs: for (profile, model, request) in asked {
        for number in 1..=args.runs.get() {
            let run = Run { provider: profile.name, model: model.clone(), number };
            say(format_args!("measuring {run}"));
            let (outcome, seen) = runtime.block_on(measure(&client, request.clone(), &interrupted));
            given_up = matches!(&outcome.result, Err(error) if error.kind == ErrorKind::Cancelled);
            report.add(Measured::new(run, &outcome, seen));
            if given_up {
                break 'runs;
            }
        }
    }
    is_read(if args.json { print_json(&report) } else { print(&report.to_string()) })?;
    Ok(if given_up { Exit::Cancelled } else { report.verdict().exit() })
}

async fn measure(client: &Client, request: Request, interrupted: &Notify) -> (Outcome, arrivals::Seen) {
    let arrivals = Arrivals::default();
    // Nothing of the trace is kept, so it may be as long as the stream.
    let recorder = Recorder::new(arrivals.clone()).bodies(Bodies::Lengths).max_bytes(u64::MAX);
    let stream = client.record(request, recorder);
    let (outcome, _) = converse(stream, &client.config().config(), interrupted, true).await;
    if let Err(error) = &outcome.result
        && let ErrorKind::Timeout(timeout) = &error.kind
        && timeout.phase == Phase::StreamIdle
    {
        arrivals.ended_in_silence(timeout.elapsed);
    }
    (outcome, arrivals.seen())
}

/// Whom to ask and what: the server at the base URL, the provider named, or each whose key is set
fn asked(
    args: &GapsArgs,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(&'static Profile, String, Request)>, UsageError> {
    let is_at_a_server = args.base_url.is_some() || args.connect.is_to_socket();
    let providers: Vec<Option<Provider>> = if args.provider.is_some() || is_at_a_server {
        vec![args.provider]
    } else {
        let with_key = PROFILES.iter().filter(|profile| has_key(profile, &environment));
        with_key.map(|profile| Some(profile.provider)).collect()
    };
    if providers.is_empty() {
        let mut keys: Vec<_> = PROFILES.iter().flat_map(|profile| profile.keys).copied().collect();
        keys.dedup();
        return Err(UsageError::NothingToMeasure { keys: keys.join(", ") });
    }
    providers
        .into_iter()
        .map(|provider| {
            let call = CallArgs {
                provider,
                base_url: args.base_url.clone(),
                model: args.model.clone(),
                connect: args.connect.clone(),
                ..CallArgs::default()
            };
            let asked = Asked::choose(&call, &environment)?;
            let model = args.model.as_deref().unwrap_or(asked.profile.model).to_owned();
            // A server that only speaks a provider's API may refuse what it does not know.
            let want = if is_at_a_server { Want::Stream } else { Want::ReasoningStream };
            let prompt = args.prompt.as_deref().unwrap_or(PROMPT);
            let request = asked.request(args.model.as_deref(), prompt, want)?;
            Ok((asked.profile, model, request))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::ConnectArgs;

    fn args() -> GapsArgs {
        GapsArgs {
            provider: None,
            base_url: None,
            model: None,
            prompt: None,
            runs: std::num::NonZeroU32::MIN,
            config: Vec::new(),
            connect: ConnectArgs::default(),
            json: false,
        }
    }

    fn names(args: &GapsArgs, set: &[&str]) -> Result<Vec<&'static str>, UsageError> {
        let asked = asked(args, |name| set.contains(&name).then(|| "k".to_owned()))?;
        Ok(asked.into_iter().map(|(profile, ..)| profile.name).collect())
    }

    #[test]
    fn each_provider_whose_key_is_set_is_asked() {
        let set = ["OPENAI_API_KEY", "GOOGLE_API_KEY"];
        assert_eq!(names(&args(), &set), Ok(vec!["openai", "responses", "gemini"]));
        let one = GapsArgs { provider: Some(Provider::Gemini), ..args() };
        assert_eq!(names(&one, &set), Ok(vec!["gemini"]));
        let server = GapsArgs { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..args() };
        assert_eq!(names(&server, &set), Ok(vec!["openai"]));
    }

    #[test]
    fn with_nobody_to_ask_the_keys_are_named() {
        let error = names(&args(), &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "nobody to measure: set one of OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, \
             or name a server by --base-url"
        );
    }
}
