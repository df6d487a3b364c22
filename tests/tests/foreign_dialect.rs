//! A dialect of another crate, by the public API alone, drives a whole call.

use std::time::Duration;

use serde::Deserialize;
use steadfast::call::{Call, Command, Env, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::dialect::choices::Choices;
use steadfast::dialect::findings::{Finding, Findings};
use steadfast::dialect::identity::Identity;
use steadfast::dialect::json::{self, JsonStr, Member};
use steadfast::dialect::tools::Fragment;
use steadfast::dialect::{Decode, Decoder, Definition, Dialect, Malformed, Progress, finish, usage};
use steadfast::framing::Framing;
use steadfast::machine::{Ended, Event, Machine, Step};
use steadfast::outcome::{Completion, Delta, Ending, ErrorKind, Outcome};
use steadfast::time::Instant;

/// More steps than a call takes: one that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 1_000;

static MAGPIE: Definition = Definition {
    name: "magpie",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::Custom(Box::new(Magpie::default())),
};

#[derive(Debug, Default)]
struct Magpie {
    choices: Choices,
    identity: Identity,
    ended: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    id: JsonStr<'a>,
    say: JsonStr<'a>,
    shiny: Option<&'a serde_json::value::RawValue>,
    call: Member<CallOut<'a>>,
    stop: JsonStr<'a>,
    error: Option<&'a serde_json::value::RawValue>,
    count: Option<&'a serde_json::value::RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallOut<'a> {
    #[serde(borrow)]
    name: JsonStr<'a>,
    arguments: Option<&'a serde_json::value::RawValue>,
}

impl Decode for Magpie {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let line = json::read::<Line<'_>>(data)?;
        if json::says_something(line.error) {
            let error = steadfast::dialect::provider_error::from_raw(data).unwrap_or_default();
            findings.push(Finding::Error(error));
            return Ok(());
        }
        self.identity.push(data, line.id, JsonStr::default(), findings);
        let open = self.choices.open(0, findings)?;
        findings.push_piece(data, line.say, |text| Finding::Text { choice: 0, text })?;
        let CallOut { name, arguments } = line.call.object()?;
        open.tools.take(data, findings, 0, Fragment { name, arguments, ..Fragment::default() })?;
        self.ended |= finish::push(findings, data, 0, line.stop, JsonStr::default());
        if let Some(usage) = line.count.and_then(|raw| usage::read(raw.get())) {
            findings.push_usage(data, usage);
        }
        if json::says_something(line.shiny) {
            findings.push(Finding::Unknown);
        }
        Ok(())
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        self.event("message", body, findings)?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }
}

/// Plays one response to a call, and returns what was delivered, text and raw events, and the outcome
fn play(response: &str) -> (String, Outcome) {
    let request = Request::post("http://localhost/")
        .json(&serde_json::json!({}))
        .dialect(Dialect::Custom(&MAGPIE))
        .stream()
        .build()
        .unwrap();
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let mut text = String::new();
    let mut now = Instant::ORIGIN;
    let mut event = Event::Start;
    let mut response = response.as_bytes();
    let mut steps = 0..MAX_STEPS;
    loop {
        let mut connected = None;
        let mut drain = call.handle(now, event).unwrap();
        let wait = loop {
            assert!(steps.next().is_some(), "the call goes round in circles");
            match drain.next() {
                Step::Do(Command::Connect(id)) => connected = Some(id),
                Step::Do(Command::Close(..) | Command::Retry(_)) => {}
                Step::Deliver(Item::Delta(Delta::Text { text: piece, .. })) => text.push_str(piece),
                Step::Deliver(Item::Unknown { data, .. }) => text.push_str(data),
                Step::Deliver(_) => {}
                Step::Wait(wait) => break wait,
                Step::Done(outcome) => return (text, outcome),
            }
        };
        drop(drain);
        now = now + Duration::from_millis(1);
        event = match (connected, wait.io) {
            (Some(id), _) => Event::Connected(id),
            _ if wait.taken => Event::Taken,
            (None, Some(io)) if io.write => {
                Event::Sent(io.link, call.outgoing(io.link).iter().map(|part| part.len()).sum())
            }
            (None, Some(io)) if !response.is_empty() => {
                Event::Received(io.link, std::mem::take(&mut response))
            }
            (None, Some(io)) => Event::Eof(io.link, Ended::Clean),
            (None, None) => {
                now = wait.deadline.unwrap().0;
                Event::Elapsed
            }
        };
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

#[test]
fn its_answer_completes_a_call() {
    let (text, outcome) = play(&format!(
        "{HEAD}data: {{\"id\":\"m1\",\"say\":\"H\\u00e9\"}}\n\ndata: : ping\n\n\
         data: {{\"say\":\"!\",\"call\":{{\"name\":\"f\",\"arguments\":{{\"x\":1}}}}}}\n\n\
         data: {{\"stop\":\"end_turn\",\"count\":{{\"input_tokens\":5,\"output_tokens\":2}}}}\n\n"
    ));
    assert_eq!((&*text, outcome.word()), ("Hé!", "completed"));
    let turn = outcome.turn();
    let call = &turn.choices[0].tool_calls[0];
    assert_eq!((turn.text(), &*call.name, &*call.arguments), ("Hé!", "f", r#"{"x":1}"#));
    assert_eq!(turn.usage.as_ref().unwrap().output_tokens, Some(2));
    assert!(outcome.is_whole(call));
    assert_eq!(turn.id.as_deref(), Some("m1"));
}

#[test]
fn what_it_has_no_place_for_reaches_the_caller() {
    let shiny = r#"{"say":"H","shiny":[1]}"#;
    let (delivered, outcome) = play(&format!("{HEAD}data: {shiny}\n\ndata: {{\"stop\":\"end_turn\"}}\n\n"));
    assert_eq!((delivered, outcome.turn().text()), (format!("H{shiny}"), "H"));
}

#[test]
fn its_whole_answer_completes_a_call() {
    let head = HEAD.replace("text/event-stream", "application/json");
    let (text, outcome) = play(&format!("{head}{{\"say\":\"Hi\"}}"));
    assert_eq!((&*text, outcome.turn().text(), outcome.word()), ("Hi", "Hi", "completed"));
}

#[test]
fn its_failures_are_told_as_ours_are() {
    let kind = |body: &str| {
        let (text, outcome) = play(&format!("{HEAD}data: {{\"say\":\"H\"}}\n\n{body}"));
        assert_eq!((&*text, outcome.turn().text()), ("H", "H"));
        outcome.result.map_err(|error| error.kind)
    };
    let stopped = kind("data: {\"stop\":\"length\"}\n\n").unwrap();
    assert_eq!(stopped.ending, Ending::Incomplete("length".to_owned()));
    assert_matches(kind(""), |kind| matches!(kind, ErrorKind::Truncated(_)));
    assert_matches(
        kind("data: {\"error\":{\"message\":\"no\"}}\n\n"),
        |kind| matches!(kind, ErrorKind::InBand(error) if error.message == "no"),
    );
    for malformed in ["data: {\"say\"\n\n", "data: {\"call\":\"f\"}\n\n", "data: {\"say\":[\"f\"]}\n\n"] {
        assert_matches(kind(malformed), |kind| matches!(kind, ErrorKind::Protocol(_)));
    }
}

fn assert_matches(result: Result<Completion, ErrorKind>, matches: impl Fn(&ErrorKind) -> bool) {
    let kind = result.unwrap_err();
    assert!(matches(&kind), "{kind:?}");
}

#[test]
fn it_is_named_and_compared_by_its_name() {
    let dialect = Dialect::Custom(&MAGPIE);
    assert_eq!((dialect.name(), dialect.has_sentinel()), ("magpie", true));
    assert_eq!(format!("{dialect:?}"), "magpie");
    assert_eq!(serde_json::to_string(&dialect).unwrap(), "\"magpie\"");
    // What the name stands for is known to the other crate alone.
    assert!(serde_json::from_str::<Dialect>("\"magpie\"").is_err());
    assert_ne!(dialect, Dialect::OpenAiChat);
    assert_eq!(dialect.framing(Some("application/json")), None);
}
