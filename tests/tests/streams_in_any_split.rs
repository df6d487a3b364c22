//! Recorded streams of real providers through the whole call, in any split of their bytes.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde::Deserialize;
use steadfast::call::{AttemptId, Call, Env, Request};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::Ended;
use steadfast::outcome::Turn;
use steadfast::time::Instant;
use steadfast_sim::{Arrival, Source, replay};
use steadfast_tests::shared;

/// Bodies up to this long are cut at every place; longer ones at so many
const EVERY_CUT_UP_TO: usize = 2_048;
const CUTS_OF_A_LONGER_ONE: usize = 64;
const RANDOM_SPLITS: u64 = 12;

#[derive(Deserialize)]
struct Streams {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    dialect: String,
    framing: String,
    status: u16,
    content_type: Option<String>,
    body_file: String,
}

/// A response in pieces
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: Box<dyn FnMut() -> usize + 'a>,
}

impl Source for Pieces<'_> {
    fn next(&mut self, _: AttemptId) -> Arrival<'_> {
        if self.rest.is_empty() {
            return Arrival::Eof(Ended::Clean);
        }
        let (piece, rest) = self.rest.split_at((self.sizes)().clamp(1, self.rest.len()));
        self.rest = rest;
        Arrival::Bytes(piece)
    }
}

/// All that a split must not change: the end, the turn, and the turn that the deltas make
fn play<'a>(dialect: Dialect, response: &'a [u8], sizes: impl FnMut() -> usize + 'a) -> String {
    let request = Request::post("http://recorded.invalid/v1").dialect(dialect).stream().build().unwrap();
    let config = RequestConfig::default().with(&Overrides::new().max_attempts(1)).unwrap();
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let call = Call::new(request, config, env, Instant::ORIGIN);
    let mut source = Pieces { rest: response, sizes: Box::new(sizes) };
    let (mut delivered, mut deltas, mut unknown) = (Turn::default(), 0, String::new());
    let outcome = replay(call, &mut source, |item| match item {
        steadfast::call::Item::Delta(delta) => {
            delivered.apply(&delta);
            deltas += 1;
        }
        steadfast::call::Item::Unknown { name, data } => unknown += &format!("{name}: {data}\n"),
        steadfast::call::Item::Bytes(_) | steadfast::call::Item::Finished(_) => {}
    })
    .expect("bounds are in force");
    let end = match &outcome.result {
        Ok(completion) => format!("{:?}", completion.ending),
        Err(error) => format!("{error} {:?}", error.billing),
    };
    let timeline = &outcome.timeline;
    let (events, notes) = (timeline.attempts[0].events, &timeline.notes);
    for (whole, pieces) in outcome.turn().choices.iter().zip(&delivered.choices) {
        assert_eq!(
            (&whole.text, &whole.reasoning),
            (&pieces.text, &pieces.reasoning),
            "the deltas make the turn"
        );
    }
    format!("{end}\n{:?}\n{deltas} deltas, {events} events, {notes:?}\n{unknown}", outcome.turn())
}

#[test]
fn no_split_of_a_recorded_stream_changes_anything() {
    let Some(path) = shared::path("conformance/streams.json") else { return };
    let folder = path.parent().unwrap().to_owned();
    let streams: Streams = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let names = BTreeMap::from([
        ("openai-chat", Dialect::OpenAiChat),
        ("openai-completion", Dialect::OpenAiCompletions),
        ("openai-responses", Dialect::OpenAiResponses),
        ("anthropic-messages", Dialect::Anthropic),
        ("gemini-generate", Dialect::Gemini),
        ("gemini-interactions", Dialect::GeminiInteractions),
        ("cohere-v2", Dialect::Cohere),
        ("ollama-ndjson", Dialect::Ollama),
    ]);
    let (mut cases, mut splits) = (0, 0);
    for case in streams.cases.iter().filter(|case| case.framing != "aws-eventstream") {
        let dialect = names[case.dialect.as_str()];
        let body = fs::read(folder.join(&case.body_file)).unwrap();
        let content_type = case.content_type.as_deref().unwrap_or("text/event-stream");
        let mut response = format!(
            "HTTP/1.1 {} Recorded\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            case.status,
            body.len()
        )
        .into_bytes();
        response.extend_from_slice(&body);
        response.extend_from_slice(b"\r\n0\r\n\r\n");
        let whole = play(dialect, &response, || usize::MAX);
        let mut check = |what: &str, split: String| {
            assert_eq!(split, whole, "{} read {what}", case.name);
            splits += 1;
        };
        check("byte by byte", play(dialect, &response, || 1));
        let step = if response.len() <= EVERY_CUT_UP_TO { 1 } else { response.len() / CUTS_OF_A_LONGER_ONE };
        for cut in (1..response.len()).step_by(step) {
            let mut sizes = [cut].into_iter();
            check(
                &format!("in two, at {cut}"),
                play(dialect, &response, move || sizes.next().unwrap_or(usize::MAX)),
            );
        }
        for seed in 0..RANDOM_SPLITS {
            let mut rng = fastrand::Rng::with_seed(seed);
            check(&format!("at random, seed {seed}"), play(dialect, &response, move || rng.usize(1..200)));
        }
        cases += 1;
    }
    println!("conformance streams through the call: {cases} cases, {splits} splits agree");
    assert!(cases >= 144, "{cases}");
}
