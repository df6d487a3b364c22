//! `steadfast call`: one prompt, one answer, one exit code.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use steadfast::call::Item;
use steadfast::outcome::Delta;
use steadfast_tokio::{CallStream, Client, Outcome, RequestConfig};
use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use crate::args::CallArgs;
use crate::embedded::Embedded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::read_all;
use crate::interrupt::{Listen, on_interrupt};
use crate::live::Live;
use crate::message::{failure, say, say_as_is};
use crate::output::{is_read, print_json};
use crate::progress::Progress;
use crate::provider::Want;
use crate::record::{recorder, report as report_recording};
use crate::request::{Answering, Asked};
use crate::usage::UsageError;

/// How often the live line is drawn again while nothing happens
const TICK: Duration = Duration::from_millis(100);

/// The most bytes of a prompt on stdin: 16 MiB
const MAX_PROMPT_BYTES: usize = 16 << 20;

/// What the embedded provider answers
const EMBEDDED_ANSWER: &str = "Hello! This answer comes from the provider that is embedded in steadfast: a \
    script, not a model. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name a server by \
    --base-url, and a model will answer in its place.";

/// Runs the command
pub(crate) fn run(args: &CallArgs) -> Result<Exit, Failure> {
    let client = args.connect.applied_to(Client::new());
    let client = client.with_config(&args.overrides()?).map_err(UsageError::from)?;
    let mut asked = Asked::choose(args, |name| std::env::var(name).ok())?;
    let prompt = prompt(args)?;
    let mut embedded = None;
    if asked.answering == Answering::Embedded {
        say(format_args!(
            "no key and no --base-url: the embedded provider answers, in the form of {}",
            asked.profile.name
        ));
        asked = asked.at(embedded.insert(Embedded::start(EMBEDDED_ANSWER)?).base_url());
    }
    let want = if args.no_stream { Want::Whole } else { Want::Stream };
    let request = asked.request(args.model.as_deref(), &prompt, want)?;
    let interrupted = Arc::new(Notify::new());
    let interrupt = Arc::clone(&interrupted);
    on_interrupt(Listen::Interrupt, move || interrupt.notify_one())?;
    let recorder = args.record.as_deref().map(|path| recorder(path, args.record_bodies)).transpose()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (outcome, printed) = runtime.block_on(async {
        let stream = match recorder {
            Some(recorder) => client.record(request, recorder),
            None => client.stream(request),
        };
        converse(stream, &client.config().config(), &interrupted, args.json).await
    });
    report(&outcome, printed, args)
}

/// What to ask: the argument, or what stdin has, without the end of its last line
fn prompt(args: &CallArgs) -> Result<String, UsageError> {
    let text = match args.prompt.as_deref() {
        Some("-") => from_stdin()?,
        Some(prompt) => prompt.to_owned(),
        None if io::stdin().is_terminal() => return Err(UsageError::NoPrompt),
        None => from_stdin()?,
    };
    if text.trim().is_empty() { Err(UsageError::NoPrompt) } else { Ok(text) }
}

fn from_stdin() -> Result<String, UsageError> {
    let unreadable = |error: String| UsageError::Unreadable { path: "the prompt on stdin".to_owned(), error };
    let bytes =
        read_all(io::stdin().lock(), MAX_PROMPT_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8".to_owned()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// Takes the answer as it comes and prints it, unless it is to be `silent`
///
/// With the outcome comes what stdout said to the answer: a reader that is gone ends the call.
pub(crate) async fn converse(
    mut stream: CallStream,
    config: &RequestConfig,
    interrupted: &Notify,
    silent: bool,
) -> (Outcome, io::Result<()>) {
    let mut live = Live::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut printed = Ok(());
    let mut streamed = false;
    let mut take = |live: &mut Live, item: Item<'_>| match item {
        Item::Delta(Delta::Text { choice: 0, text } | Delta::Refusal { choice: 0, text }) if !silent => {
            streamed = true;
            live.print(text)
        }
        Item::Delta(_) | Item::Bytes(_) | Item::Unknown { .. } | Item::Finished(_) => Ok(()),
    };
    loop {
        tokio::select! {
            biased;
            () = interrupted.notified() => stream.cancel(),
            item = stream.next_with(|item| take(&mut live, item)) => match item {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    printed = Err(error);
                    stream.cancel();
                    break;
                }
                None => break,
            },
            _ = ticks.tick(), if live.is_shown() => {}
        }
        live.show(Progress::of(stream.progress(), stream.now(), config));
    }
    // What is left of a call that was given up
    while stream.next_with(|_| ()).await.is_some() {}
    if let Some(recording) = stream.recording() {
        report_recording(recording);
    }
    let outcome = stream.outcome().await;
    if printed.is_ok() && !silent {
        printed = finish(&mut live, &outcome, streamed);
    }
    (outcome, printed)
}

/// Prints the answer that came in one piece, and ends the last row
fn finish(live: &mut Live, outcome: &Outcome, streamed: bool) -> io::Result<()> {
    if !streamed && let Some(choice) = outcome.turn().choices.first() {
        live.print(&choice.text)?;
        live.print(&choice.refusal)?;
    }
    live.end_row()
}

fn report(outcome: &Outcome, printed: io::Result<()>, args: &CallArgs) -> Result<Exit, Failure> {
    if args.timeline {
        say_as_is(&outcome.timeline);
    }
    let printed = if args.json { print_json(outcome) } else { printed };
    if is_read(printed)?
        && let Some(failure) = failure(outcome)
    {
        say(failure);
    }
    Ok(outcome.into())
}
