//! Plans, drawn at random.

use std::time::Duration;

use steadfast::call::{Retries, Shape};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::{CertificateFault, Ended, FailureKind, ProxyRefusal, Stage};
use steadfast::retry::RetryBudgetSettings;
use steadfast::time::Bound;

use super::choices::Choices;
use super::plan::{
    CallPlan, Cancel, Client, Connect, ContentType, Cut, End, Exchange, Framing, Head, MadeFields, Piece,
    Plan, Problem, RetryAfter, Streamed,
};
use super::rare;

/// The most calls of one drawn plan
pub const MAX_CALLS: u32 = 3;

/// The most exchanges of one drawn plan
const MAX_EXCHANGES: u32 = 5;

/// The most pieces of one drawn stream
const MAX_PIECES: u32 = 9;

/// Statuses, the usual ones several times
const STATUSES: [u16; 33] = [
    200, 200, 200, 200, 200, 200, 200, 200, 429, 503, 500, 429, 503, 529, 400, 408, 425, 502, 504, 520, 524,
    401, 403, 404, 409, 413, 422, 501, 204, 304, 301, 201, 407,
];

const GARBAGE: [&str; 6] = ["soon", "-1", "1e3", "NaN", "inf", ""];

impl Plan {
    /// A plan, drawn from `choices`
    ///
    /// Times lie close to the bounds, so that many things happen at the same instant.
    pub fn draw(choices: &mut Choices<'_>) -> Self {
        let mut plan = Self::empty();
        plan.redraw(choices);
        plan
    }

    /// A plan of no call
    pub(crate) fn empty() -> Self {
        Self {
            config: RequestConfig::default(),
            seed: 0,
            unix_seconds: 0,
            budget: None,
            calls: Vec::new(),
            exchanges: Vec::new(),
        }
    }

    /// As [`Plan::draw`], in the memory of a plan that is over
    pub(crate) fn redraw(&mut self, choices: &mut Choices<'_>) {
        self.seed = u64::from(choices.below(u32::MAX));
        self.unix_seconds = 1_700_000_000 + u64::from(choices.below(100_000_000));
        self.calls.clear();
        if choices.one_in(rare::ONE_IN) {
            return self.redraw_rare(choices);
        }
        self.config = config(choices);
        let times = Times::new(&self.config);
        let calls = 1 + choices.weighted(&[4, 2, 1]) as u32;
        for _ in 0..calls.min(MAX_CALLS) {
            self.calls.push(call(choices, &times));
        }
        let exchanges = 1 + choices.below(MAX_EXCHANGES) as usize;
        self.exchanges.truncate(exchanges);
        self.exchanges.resize_with(exchanges, Exchange::new);
        for exchange in &mut self.exchanges {
            redraw_exchange(exchange, choices, &times);
        }
        for call in &mut self.calls {
            if choices.one_in(6) {
                stream_body(call, choices, &times);
            }
            call.made = if choices.one_in(8) { Some(made(choices, &times)) } else { None };
            call.forwarded = choices.one_in(8);
        }
        self.budget = if choices.one_in(6) { Some(budget(choices)) } else { None };
    }
}

fn config(choices: &mut Choices<'_>) -> RequestConfig {
    let none = f64::INFINITY;
    let overrides = Overrides::new()
        .connect_timeout(choices.pick(&[10.0, 1.0, 2.0, 5.0, none]))
        .request_timeout(choices.pick(&[600.0, 8.0, 3.0, 20.0, none]))
        .stream_idle_timeout(choices.pick(&[120.0, 4.0, 1.0, 2.5, none]))
        .total_deadline(choices.pick(&[900.0, 20.0, 6.0, 60.0, none]))
        .max_attempts(choices.pick(&[3, 1, 2, 4]))
        .stream_deadline(choices.pick(&[none, none, none, 15.0, 5.0]))
        .content_idle_timeout(choices.pick(&[none, none, none, 9.0, 3.0]))
        .first_content_timeout(choices.pick(&[none, none, none, 7.0, 2.0]))
        .after_sentinel(choices.pick(&[0.5, 0.001, 2.0, none]))
        .after_marker(choices.pick(&[2.0, 0.0, 0.25, 5.0]))
        .max_retry_after(choices.pick(&[none, none, 5.0, 30.0]));
    let overrides = match choices.weighted(&[12, 1, 1, 2]) {
        1 => overrides.max_event_bytes(400),
        2 => overrides.max_head_bytes(300),
        3 => overrides.max_body_bytes(2_000),
        _ => overrides,
    };
    RequestConfig::default().with(&overrides).expect("bounds that can be had")
}

/// Times of interest: those around the bounds
struct Times([Duration; 24]);

impl Times {
    fn new(config: &RequestConfig) -> Self {
        let bounds = [
            config.connect_timeout(),
            config.request_timeout(),
            config.stream_idle_timeout(),
            config.total_deadline(),
            config.content_idle_timeout(),
            config.first_content_timeout(),
            config.stream_deadline(),
            Bound::Limited(config.after_marker()),
        ];
        let millis = Duration::from_millis;
        let mut times = [Duration::ZERO; 24];
        for (at, bound) in bounds.into_iter().enumerate() {
            let bound = bound.limit().unwrap_or(millis(1_700));
            times[3 * at] = bound;
            times[3 * at + 1] = bound.saturating_sub(millis(1));
            times[3 * at + 2] = bound / 2;
        }
        Self(times)
    }

    /// A time that something takes, most often none or little
    fn draw(&self, choices: &mut Choices<'_>) -> Duration {
        let millis = Duration::from_millis;
        match choices.weighted(&[10, 4, 2, 2]) {
            0 => Duration::ZERO,
            1 => millis(choices.pick(&[1, 10, 30, 250])),
            2 => millis(choices.below(8_000).into()),
            _ => choices.pick(&self.0),
        }
    }
}

fn call(choices: &mut Choices<'_>, times: &Times) -> CallPlan {
    let shape = choices.pick(&[Shape::Stream, Shape::Stream, Shape::Stream, Shape::Unary]);
    let dialect = Dialect::ALL[choices.below(Dialect::ALL.len() as u32) as usize];
    let is_bare = shape == Shape::Unary && choices.one_in(3);
    let shape = if is_bare && choices.one_in(2) { Shape::Raw } else { shape };
    CallPlan {
        dialect: (!is_bare).then_some(dialect),
        shape,
        retries: choices.pick(&[
            Retries::Allowed,
            Retries::Allowed,
            Retries::Allowed,
            Retries::UnlessBilled,
            Retries::Never,
        ]),
        body_bytes: choices.pick(&[2, 2, 2, 500, 0]),
        streamed: None,
        made: None,
        forwarded: false,
        idle: if choices.one_in(3) { times.draw(choices) } else { Duration::ZERO },
        beside: choices.one_in(4),
        client: client(choices, times),
    }
}

fn stream_body(call: &mut CallPlan, choices: &mut Choices<'_>, times: &Times) {
    let mut streamed = streamed(choices, times);
    if choices.one_in(16) {
        // More than a window of it, which would take long in small pieces.
        call.body_bytes = 100_000;
        call.client.write_bytes = 0;
        streamed.read_bytes = 16_384;
    }
    call.streamed = Some(streamed);
}

fn streamed(choices: &mut Choices<'_>, times: &Times) -> Streamed {
    Streamed {
        of_known_length: choices.one_in(2),
        once: choices.one_in(2),
        pause: if choices.one_in(3) { times.draw(choices) } else { Duration::ZERO },
        read_bytes: choices.pick(&[0, 0, 16_384, 40]),
        fails_at: if choices.one_in(6) { Some(choices.below(600)) } else { None },
    }
}

fn made(choices: &mut Choices<'_>, times: &Times) -> MadeFields {
    MadeFields {
        pause: if choices.one_in(2) { times.draw(choices) } else { Duration::ZERO },
        fails_at: if choices.one_in(6) { Some(1 + choices.below(2)) } else { None },
    }
}

/// One of few retries: a run has few calls
fn budget(choices: &mut Choices<'_>) -> RetryBudgetSettings {
    RetryBudgetSettings {
        percent: choices.pick(&[20, 0, 50, 100]),
        min_per_second: choices.pick(&[0, 0, 1]),
        window_seconds: choices.pick(&[10, 1, 60]).try_into().expect("none is zero"),
    }
}

fn client(choices: &mut Choices<'_>, times: &Times) -> Client {
    let mut client = Client { looks: true, ..Client::default() };
    client.read_bytes = choices.pick(&[0, 0, 0, 0, 0, 0, 100, 100, 100, 17, 17, 5, 1]);
    if choices.one_in(4) {
        client.write_bytes = choices.pick(&[1_000, 64, 7]);
    }
    // Most calls have few of these at a time, so that each is seen with and without the others.
    match choices.weighted(&[14, 3, 3, 2, 3, 3, 1, 4, 2]) {
        1 => client.away = Some((1 + choices.below(3), times.draw(choices))),
        2 => {
            client.away = Some((1 + choices.below(3), times.draw(choices)));
            client.watched = true;
        }
        3 => client.late = Some((1 + choices.below(4), times.draw(choices))),
        4 => client.cancel = Cancel::After(times.draw(choices)),
        5 => client.cancel = Cancel::AtEvent(choices.below(24)),
        6 => client.fails_at = 1 + choices.below(5),
        7 => client.drops = choices.below(1 << 16),
        8 => {
            client.away = choices.one_in(2).then(|| (1 + choices.below(3), times.draw(choices)));
            client.watched = choices.one_in(2);
            client.late = choices.one_in(2).then(|| (1 + choices.below(4), times.draw(choices)));
            client.suspended = Some((1 + choices.below(20), times.draw(choices)));
            client.cancel = match choices.below(3) {
                0 => Cancel::Never,
                1 => Cancel::After(times.draw(choices)),
                _ => Cancel::AtEvent(1 + choices.below(30)),
            };
            client.fails_at = if choices.one_in(4) { 1 + choices.below(5) } else { 0 };
            client.drops = choices.below(1 << 16);
        }
        _ => {}
    }
    client.stale = choices.one_in(4);
    client.looks = !choices.one_in(4);
    client
}

fn redraw_exchange(exchange: &mut Exchange, choices: &mut Choices<'_>, times: &Times) {
    exchange.connect = match choices.weighted(&[20, 2, 1]) {
        0 => Connect::Opens(if choices.one_in(3) { times.draw(choices) } else { Duration::ZERO }),
        1 => {
            let (stage, kind) = choices.pick(&[
                (Stage::Connect, FailureKind::Refused),
                (Stage::Connect, FailureKind::Unreachable),
                (Stage::Resolve, FailureKind::NotFound),
                (Stage::Tls, FailureKind::Tls),
                (Stage::Tls, FailureKind::Certificate(CertificateFault::Expired)),
                (Stage::Proxy, FailureKind::Refused),
                (Stage::Proxy, FailureKind::Proxy(ProxyRefusal::Status(503))),
                (Stage::Proxy, FailureKind::Proxy(ProxyRefusal::Status(403))),
            ]);
            Connect::Fails(times.draw(choices), stage, kind)
        }
        _ => Connect::Silent,
    };
    exchange.stale = choices.one_in(4).then(|| (times.draw(choices), end(choices)));
    let is_odd = choices.one_in(6);
    exchange.reads = (is_odd && choices.one_in(2)).then(|| choices.below(160));
    exchange.write_breaks = (is_odd && choices.one_in(3)).then(|| choices.below(160));
    exchange.facts = choices.one_in(10);
    exchange.delay = times.draw(choices);
    exchange.interims = if choices.one_in(8) { 1 + choices.below(2) } else { 0 };
    exchange.head = head(choices);
    exchange.pieces.clear();
    let count = choices.below(MAX_PIECES);
    pieces(&mut exchange.pieces, count, choices, times);
    exchange.trickle = choices.one_in(48).then(|| match choices.one_in(3) {
        true => times.draw(choices),
        false => Duration::from_millis(choices.pick(&[1, 30])),
    });
    exchange.surplus = choices.one_in(10).then(|| times.draw(choices));
    // Where nothing but the connection's end ends a body, its last bytes are of interest.
    let by_eof = exchange.head.framing == Framing::Eof;
    exchange.cut = match choices.weighted(if by_eof { &[6, 2, 4] } else { &[9, 2, 1] }) {
        0 => None,
        1 => Some(Cut::At(choices.below(1 << 16) as u16)),
        _ => Some(Cut::Back(choices.below(if by_eof { 4 } else { 12 }))),
    };
    exchange.end = match exchange.cut {
        // What is cut ends somehow.
        Some(_) => (times.draw(choices), end(choices)),
        None if choices.one_in(4) || exchange.head.framing == Framing::Eof => {
            (times.draw(choices), end(choices))
        }
        None => (Duration::ZERO, End::Open),
    };
}

fn end(choices: &mut Choices<'_>) -> End {
    choices.pick(&[
        End::Fin(Ended::Clean),
        End::Reset,
        End::Open,
        End::Fin(Ended::WithoutCloseNotify),
        End::FinTwice,
    ])
}

fn head(choices: &mut Choices<'_>) -> Head {
    let status = choices.pick(&STATUSES);
    let mut head = Head::new(status);
    head.framing = [Framing::Chunks, Framing::Length, Framing::Eof, Framing::BrokenChunks]
        [choices.weighted(&[8, 3, 3, 1])];
    head.content_type = [
        ContentType::Right,
        ContentType::None,
        ContentType::Plain,
        ContentType::WholeJson,
        ContentType::Html,
        ContentType::JsonArray,
    ][choices.weighted(&[20, 1, 1, 1, 1, 2])];
    head.gzip = choices.one_in(16);
    // In the middle of a busy hour, some of it comes inside a 200 as well.
    if status != 200 || choices.one_in(8) {
        head.problem =
            choices.pick(&[Problem::Overload, Problem::Overload, Problem::Invalid, Problem::Quota]);
        head.retry_after = match choices.below(14) {
            1 | 2 => RetryAfter::Seconds(choices.below(8)),
            3 => RetryAfter::Tenths(choices.below(80)),
            4 => RetryAfter::Millis(choices.below(5_000)),
            5 => RetryAfter::MillisAndSeconds(choices.below(5_000)),
            6 => RetryAfter::Date(choices.below(12)),
            7 => RetryAfter::Past,
            8 => RetryAfter::Garbage(choices.pick(&GARBAGE)),
            9 => RetryAfter::Huge,
            10 => RetryAfter::Seconds(choices.below(1_000)),
            _ => RetryAfter::None,
        };
        head.should_retry = choices.pick(&[None, None, None, Some(true), Some(false)]);
    }
    head.padding = if choices.one_in(16) { 400 } else { 0 };
    head
}

fn pieces(pieces: &mut Vec<(Duration, Piece)>, count: u32, choices: &mut Choices<'_>, times: &Times) {
    // Most answers are whole, and what goes wrong goes wrong in the midst of them.
    let is_plain = !choices.one_in(4);
    let is_long = choices.one_in(10);
    if is_plain {
        pieces.push((times.draw(choices), Piece::Opening));
    }
    for _ in 0..count {
        if is_long {
            pieces.push((times.draw(choices), Piece::Long));
            continue;
        }
        let piece = match choices.weighted(&[10, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]) {
            0 => Piece::Text,
            1 => choices.pick(&[Piece::Comment, Piece::Ping]),
            2 => Piece::Unknown,
            3 => Piece::Null,
            4 => Piece::Tool,
            5 => Piece::SecondChoice,
            6 => Piece::Usage,
            8 => Piece::Thought,
            10 => Piece::Long,
            7 => choices.pick(&[Piece::Marker, Piece::StopsEarly, Piece::Sentinel, Piece::Opening]),
            _ => fault(choices),
        };
        pieces.push((times.draw(choices), piece));
    }
    if is_plain {
        match choices.weighted(&[10, 2, 2]) {
            0 => pieces.push((times.draw(choices), Piece::Marker)),
            1 => pieces.push((times.draw(choices), Piece::StopsEarly)),
            // The sentinel alone is an end too.
            _ => {}
        }
        match choices.weighted(&[8, 2, 1, 1, 1]) {
            1 => pieces.push((times.draw(choices), Piece::Usage)),
            2 => {
                pieces.push((times.draw(choices), choices.pick(&[Piece::Comment, Piece::Ping, Piece::Null])))
            }
            3 => pieces.push((times.draw(choices), fault(choices))),
            4 => pieces.push((
                times.draw(choices),
                choices.pick(&[Piece::Text, Piece::SecondChoice, Piece::Marker]),
            )),
            _ => {}
        }
        if !choices.one_in(5) {
            pieces.push((times.draw(choices), Piece::Sentinel));
        }
    }
}

fn fault(choices: &mut Choices<'_>) -> Piece {
    choices.pick(&[
        Piece::InBand(Problem::Overload),
        Piece::InBand(Problem::Invalid),
        Piece::InBand(Problem::Quota),
        Piece::NotJson,
        Piece::Blocked,
        Piece::Flood,
    ])
}
