//! Whatever happens, in whatever order: the call ends, and its invariants hold (INV-1 to INV-5).

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;

use super::play::{Play, ms};
use super::wire::{Answer, LAST_CHUNK, OPEN_HEAD, SPOKEN, STREAM_HEAD, chunk, event, request, response};
use crate::body::{Body, Ready, WINDOW_BYTES};
use crate::call::{Fact, State};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Ended, Event, FailureKind, IoFailure, Stage, Supply};

/// One thing that happens
#[derive(Clone, Debug)]
enum Happens {
    Connected,
    Reused,
    Sent(usize),
    /// So many bytes of the request's body are read
    Supplied(usize),
    /// It has ended
    SupplyEnded,
    /// Header fields of the attempt are made
    FieldsMade,
    /// The body cannot be read on, or no fields be made
    SupplyFailed,
    Received(usize),
    Piece(usize, usize),
    Eof(bool),
    Failed(Stage),
    Taken,
    Elapsed,
    Expired,
    Passes(u64),
    Cancel,
    ConsumerFailed,
}

/// What servers send, well formed and not
fn sent(dialect: Dialect, which: usize) -> String {
    let all = [
        STREAM_HEAD.to_owned(),
        OPEN_HEAD.to_owned(),
        chunk(dialect.opening()),
        chunk(dialect.text("Hi")),
        chunk(dialect.text("a") + &dialect.text("b") + &dialect.terminal()),
        chunk(dialect.terminal()),
        chunk(dialect.sentinel().unwrap_or_default() + ": x\n"),
        chunk(dialect.overload()),
        chunk(dialect.ping()),
        chunk(event(&json!({"type": "odd", "object": "odd"}))),
        chunk("data: {\n\n"),
        chunk(event(&json!({"id": "c1", "choices": [{"index": 1, "delta": {"content": "more"}}]}))),
        LAST_CHUNK.to_owned(),
        dialect.text("no chunk"),
        response("503 Busy", &["retry-after: 1"], "busy"),
        response("200 OK", &["content-type: application/json"], "{}"),
        "HTTP/1.1 429 x\r\ncontent-length: 50\r\n\r\npart".to_owned(),
        "HTTP/1.1 102 x\r\n\r\n".to_owned(),
        "junk\r\n".to_owned(),
    ];
    all[which % all.len()].clone()
}

fn happens() -> impl Strategy<Value = Happens> {
    let stage = prop::sample::select(&[Stage::Read, Stage::Write, Stage::Connect][..]);
    prop_oneof![
        3 => Just(Happens::Connected),
        1 => Just(Happens::Reused),
        2 => (0..200_usize).prop_map(Happens::Sent),
        1 => Just(Happens::Sent(usize::MAX)),
        // Many bytes take long to write down, so there are few such pieces.
        3 => prop::sample::select(&[1, 7, 100, 1, 7, 100, 100, WINDOW_BYTES / 2 + 1][..])
            .prop_map(Happens::Supplied),
        1 => Just(Happens::SupplyEnded),
        1 => Just(Happens::FieldsMade),
        1 => prop::bool::weighted(0.2).prop_map(|fails| match fails {
            true => Happens::SupplyFailed,
            false => Happens::SupplyEnded,
        }),
        12 => (0..19_usize).prop_map(Happens::Received),
        3 => (0..19_usize, 1..30_usize).prop_map(|(which, bytes)| Happens::Piece(which, bytes)),
        1 => any::<bool>().prop_map(Happens::Eof),
        1 => stage.prop_map(Happens::Failed),
        2 => Just(Happens::Taken),
        1 => Just(Happens::Elapsed),
        4 => Just(Happens::Expired),
        3 => (0..5_000_u64).prop_map(Happens::Passes),
        1 => Just(Happens::Cancel),
        1 => Just(Happens::ConsumerFailed),
    ]
}

/// Lets one thing happen; what a driver must not do is refused, and that is all
fn happen(play: &mut Play, dialect: Dialect, what: &Happens) {
    let link = play.link();
    let failure = |stage| IoFailure { stage, kind: FailureKind::Reset, message: "reset".to_owned() };
    let text;
    let event = match what {
        Happens::Connected => Event::Connected(link),
        Happens::Reused => Event::Reused(link),
        Happens::Sent(bytes) => Event::Sent(link, (*bytes).min(play.outgoing())),
        Happens::Supplied(bytes) => Event::Supplied(link, Supply::Bytes(&UPLOAD[..*bytes])),
        Happens::SupplyEnded => Event::Supplied(link, Supply::End),
        Happens::FieldsMade => {
            let field = (HeaderName::from_static("x-link"), HeaderValue::from(link.number()));
            Event::Supplied(link, Supply::Head(HeaderMap::from_iter([field])))
        }
        Happens::SupplyFailed => Event::Supplied(link, Supply::Failed("no".to_owned())),
        Happens::Received(which) => {
            text = sent(dialect, *which);
            Event::Received(link, text.as_bytes())
        }
        Happens::Piece(which, bytes) => {
            text = sent(dialect, *which);
            Event::Received(link, &text.as_bytes()[..text.len().min(*bytes)])
        }
        Happens::Eof(true) => Event::Eof(link, Ended::Clean),
        Happens::Eof(false) => Event::Eof(link, Ended::WithoutCloseNotify),
        Happens::Failed(stage) => Event::Failed(link, failure(*stage)),
        Happens::Taken => Event::Taken,
        Happens::Elapsed => Event::Elapsed,
        Happens::Expired => {
            if play.deadline().is_some() {
                play.expire();
            }
            return;
        }
        Happens::Passes(millis) => {
            let now = play.now() + ms(*millis);
            play.at_instant(now);
            return;
        }
        Happens::Cancel => Event::Cancel,
        Happens::ConsumerFailed => Event::Fact(Fact::ConsumerFailed("no")),
    };
    let _ = play.try_feed(event);
}

/// What stands for the bytes of every body
static UPLOAD: [u8; WINDOW_BYTES] = [b' '; WINDOW_BYTES];

/// More than a head takes, and what frames one piece of a body
const HEAD_ROOM: usize = 1_000;

/// The body of a request: there from the start, or read as it goes out
#[derive(Clone, Copy, Debug, PartialEq)]
enum Upload {
    Whole,
    Chunked,
    Once,
    OfKnownLength,
}

impl Upload {
    const ALL: [Self; 4] = [Self::Whole, Self::Chunked, Self::Once, Self::OfKnownLength];

    fn body(self) -> Body {
        let nothing = || Ready(std::io::empty());
        match self {
            Self::Whole => Body::from("{}"),
            Self::Chunked => Body::source(move || Ok(nothing())),
            Self::Once => Body::once(nothing()),
            Self::OfKnownLength => Body::source(move || Ok(nothing())).length(101),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_call_ends_and_keeps_its_invariants(
        dialect in prop::sample::select(&SPOKEN[..]),
        stream in any::<bool>(),
        eager in any::<bool>(),
        open in any::<bool>(),
        upload in prop::sample::select(&Upload::ALL[..]),
        makes_fields in prop::bool::weighted(0.2),
        events in prop::collection::vec(happens(), 0..40),
        drops in prop::collection::vec(any::<bool>(), 0..8),
    ) {
        let overrides = Overrides::new()
            .connect_timeout(2.0)
            .request_timeout(6.0)
            .total_deadline(20.0)
            .stream_idle_timeout(4.0)
            .content_idle_timeout(9.0);
        let call = request(dialect).body(upload.body());
        let call = if makes_fields { call.attempt_headers(|_, _| Ok::<_, String>(HeaderMap::new())) } else { call };
        let call = if stream { call.stream() } else { call };
        let mut play = Play::new(call.build().unwrap(), overrides);
        play = play.interrupted(move |point| !drops.is_empty() && drops[point % drops.len()]);
        play = if eager { play.start() } else { play.slow().start() };
        if open {
            happen(&mut play, dialect, &Happens::Connected);
            happen(&mut play, dialect, &Happens::FieldsMade);
            happen(&mut play, dialect, &Happens::Sent(usize::MAX));
            happen(&mut play, dialect, &Happens::Received(0));
        }
        let mut read_on = None;
        for what in &events {
            let wanted = play.record.wait.as_ref().and_then(|wait| wait.io).map_or(0, |io| io.supply);
            happen(&mut play, dialect, what);
            prop_assert!(play.outgoing() <= WINDOW_BYTES + HEAD_ROOM, "INV-8: {} bytes are held", play.outgoing());
            // Before there is a head what is wanted is header fields.
            let is_read = matches!(what, Happens::Supplied(bytes) if *bytes <= wanted) && play.outgoing() > 0;
            if upload == Upload::Once && is_read {
                read_on.get_or_insert(play.link());
            }
        }
        // From here on nothing more comes, and the consumer is there.
        let quiet = play.now();
        play.feed(Event::Taken);
        let mut silent = play.eagerly();
        silent.end();
        // A stream past its head ends within its idle bounds; all else within the total deadline.
        let worst = ms(20_000).max(quiet + ms(9_000));
        prop_assert!(silent.ended_at().max(quiet) <= worst, "{:?} after {quiet:?}", silent.ended_at());
        let attempts = silent.outcome().timeline.attempt_count() as usize;
        // A connection found dead before anything was sent on it costs none, and only the first can be.
        prop_assert!(attempts <= 3 && silent.record.opened().len() <= attempts + 1, "INV-4");
        prop_assert!(silent.attempts_at().iter().all(|at| *at < Duration::from_secs(20)), "INV-4");
        prop_assert!(read_on.is_none_or(|read_on| read_on == silent.link()), "RTY-9: it is read again");
        prop_assert_eq!(silent.call.state(), State::Over);
    }
}
