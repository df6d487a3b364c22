//! What the app and the providers do in one run, drawn from a tape.

use std::time::Duration;

use steadfast::relay::{Code, Limits, Retries};
use steadfast::time::Bound;

use super::messages::{Answer, Framing, Goes, Request};
use crate::random::Choices;

/// One run: a connection of an app, and all that it meets
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) requests: Vec<Sent>,
    /// What each connection asked for comes to, in their order; a sound one behind these
    pub(super) connects: Vec<Connect>,
    /// What is answered to each request that goes out, in their order; a sound one behind these
    pub(super) answers: Vec<Answered>,
    /// The bounds of each route
    pub(super) limits: [Limits; 2],
    pub(super) takes: Takes,
    /// The app leaves behind so many of its bytes, and how
    pub(super) leaves: Option<(usize, Leaves)>,
    /// The app leaves so long after the start
    pub(super) leaves_after: Option<Duration>,
    /// At this step the relay is told something
    pub(super) interrupt: Option<(u32, Interrupt)>,
    pub(super) has_taps: bool,
    /// The most bytes of one read
    pub(super) max_read: usize,
    /// One in so many steps drops its drain; none where it is zero
    pub(super) drops: u32,
    /// One in so many deadlines is noticed late; none where it is zero
    pub(super) late: u32,
    /// How long the relay's own pages take
    pub(super) serves_after: Duration,
}

/// A request, and how the app sends it
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) request: Request,
    /// Without waiting for the answer before it
    pub(super) is_pipelined: bool,
    pub(super) delay: Duration,
    /// Pauses behind this many of its bytes
    pub(super) pause: Option<(usize, Duration)>,
    /// No more of it than so many bytes is ever sent
    pub(super) half: Option<usize>,
}

/// How the app leaves
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Fin,
    Reset,
}

/// How the app takes what is for it
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    All,
    /// So many bytes, and so long until the next
    Slowly(usize, Duration),
    /// No more behind so many bytes
    Stalls(usize),
    /// A while behind so many bytes
    Pauses(usize, Duration),
}

/// What becomes of a connection that is asked for
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connect {
    /// A new one, so long after; or one that was left, where there is one
    Opens(Duration),
    /// One that an earlier exchange left, which ends behind so many bytes
    Stale(usize),
    /// It fails so long after
    Fails(Duration),
    /// Nothing is heard of it
    Hangs,
    /// It may not be opened
    Refused(Code),
}

/// An answer, and how the provider sends it
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) when: When,
    pub(super) delay: Duration,
    /// It comes in pieces of so many bytes, so long apart
    pub(super) trickle: Option<(usize, Duration)>,
    /// No more of it than so many bytes is sent
    pub(super) cut: Option<usize>,
    /// What comes behind it
    pub(super) surplus: usize,
    pub(super) end: End,
    /// It reads no more of the request than so many bytes
    pub(super) reads: Option<usize>,
    /// Writing fails behind so many bytes
    pub(super) breaks: Option<usize>,
}

/// When an answer begins
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Once the request is whole
    Whole,
    /// Once its first byte came
    Early,
    /// Before anything came
    Unasked,
}

/// What a provider does with the connection behind its answer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Keeps,
    Fin,
    /// A FIN over TLS with nothing that says so
    Unauthenticated,
    Reset,
}

/// What the relay is told from outside
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Draining,
    Cancel,
    Routes,
}

/// The most requests of one app
const MAX_REQUESTS: u32 = 4;

impl Plan {
    /// Draws one; a tape of zeros is one request that goes well
    pub(super) fn draw(choices: &mut Choices<'_>) -> Self {
        let limits = [draw_limits(choices), draw_limits(choices)];
        let requests = (0..=choices.below(MAX_REQUESTS)).map(|_| draw_sent(choices)).collect();
        let connects = (0..choices.below(7)).map(|_| draw_connect(choices)).collect();
        let answers = (0..choices.below(7)).map(|_| draw_answered(choices)).collect();
        let takes = match choices.weighted(&[6, 1, 1, 1]) {
            0 => Takes::All,
            1 => Takes::Slowly(1 + size(choices, 300), moment(choices)),
            2 => Takes::Stalls(size(choices, 1_200)),
            _ => Takes::Pauses(size(choices, 1_200), moment(choices)),
        };
        let how = |choices: &mut Choices<'_>| choices.pick(&[Leaves::Fin, Leaves::Reset]);
        let max_read = choices.pick(&[4_096, 1_024, 100, 7, 1]);
        let (mut requests, mut answers): (Vec<Sent>, Vec<Answered>) = (requests, answers);
        if max_read < MIN_READ_OF_LONG {
            requests.iter_mut().for_each(|sent| sent.request.payload.truncate(MAX_OF_SHORT_READS));
            answers.iter_mut().for_each(|answered| answered.answer.shorten(MAX_OF_SHORT_READS));
        }
        Self {
            limits,
            requests,
            connects,
            answers,
            takes,
            leaves: choices.one_in(6).then(|| (size(choices, 1_500), how(choices))),
            leaves_after: choices.one_in(8).then(|| moment(choices)),
            interrupt: choices.one_in(5).then(|| {
                let all = [Interrupt::Draining, Interrupt::Cancel, Interrupt::Routes];
                (choices.below(80), choices.pick(&all))
            }),
            has_taps: choices.one_in(3),
            max_read,
            drops: choices.pick(&[0, 0, 20, 4]),
            late: choices.pick(&[0, 0, 4]),
            serves_after: choices.pick(&[Duration::ZERO, Duration::from_secs(1)]),
        }
    }
}

/// Bodies that come in shorter reads are short, so that a run takes no more steps than another
const MIN_READ_OF_LONG: usize = 50;
const MAX_OF_SHORT_READS: usize = 400;

/// Longer ones are rarer
fn size(choices: &mut Choices<'_>, most: u32) -> usize {
    let most = choices.pick(&[most / 30, most / 5, most]);
    choices.below(most + 1) as usize
}

fn moment(choices: &mut Choices<'_>) -> Duration {
    let most = choices.pick(&[10, 1_000, 10_000, 120_000]);
    Duration::from_millis(u64::from(choices.below(most)))
}

fn soon(choices: &mut Choices<'_>) -> Duration {
    if choices.one_in(3) { moment(choices) } else { Duration::ZERO }
}

fn draw_limits(choices: &mut Choices<'_>) -> Limits {
    let mut bound = |defaults: u32, most: u32| {
        let seconds = if choices.one_in(2) { 1 + choices.below(most) } else { defaults };
        Bound::Limited(Duration::from_secs(u64::from(seconds)))
    };
    Limits {
        connect: bound(10, 20),
        first_byte: bound(610, 60),
        silence: bound(900, 60),
        total: bound(3_600, 100),
        retries: Retries {
            connects: choices.pick(&[1, 0, 2]),
            overloads: choices.pick(&[2, 0, 1]),
            max_body_bytes: choices.pick(&[4 * 1024 * 1024, 0, 60, 1_000]),
            ..Retries::default()
        },
    }
}

fn payload(choices: &mut Choices<'_>) -> Vec<u8> {
    let most = choices.pick(&[20, 20, 300, 3_000, 20_000]);
    let length = choices.below(most) as usize;
    let first = choices.below(26) as usize;
    // Letters, so that no framing can be mistaken for them.
    (0..length).map(|at| b'a' + ((first + at + at / 26) % 26) as u8).collect()
}

fn draw_sent(choices: &mut Choices<'_>) -> Sent {
    let goes = match choices.weighted(&[10, 5, 1, 1, 1]) {
        0 => Goes::Up(0),
        1 => Goes::Up(1),
        2 => Goes::Local,
        3 => Goes::Nowhere,
        _ => Goes::Malformed,
    };
    let is_head = choices.one_in(12);
    let is_old = choices.one_in(8);
    let framing = match choices.below(4) {
        _ if is_head => Framing::None,
        0 | 1 => Framing::Length,
        2 if !is_old => Framing::Chunked,
        _ => Framing::None,
    };
    let payload = if framing == Framing::None { Vec::new() } else { payload(choices) };
    let has_body = !payload.is_empty() || framing == Framing::Chunked;
    let request = Request {
        goes,
        is_head,
        is_old,
        keeps_alive: !choices.one_in(5),
        expects: has_body && !is_old && choices.one_in(5),
        framing,
        payload,
        chunk: 1 + size(choices, 600),
    };
    Sent {
        request,
        is_pipelined: choices.one_in(4),
        delay: soon(choices),
        pause: choices.one_in(4).then(|| (size(choices, 1_500), moment(choices))),
        half: choices.one_in(10).then(|| size(choices, 600)),
    }
}

fn draw_connect(choices: &mut Choices<'_>) -> Connect {
    match choices.weighted(&[8, 3, 3, 1, 1]) {
        0 => Connect::Opens(soon(choices)),
        1 => Connect::Stale(choices.pick(&[0, 1, 30, 1_000])),
        2 => Connect::Fails(soon(choices)),
        3 => Connect::Hangs,
        _ => Connect::Refused(choices.pick(&[Code::GatewayOverloaded, Code::GatewayDraining])),
    }
}

fn draw_answered(choices: &mut Choices<'_>) -> Answered {
    let status = match choices.weighted(&[8, 5, 2, 1, 1, 1]) {
        0 => 200,
        1 => 503,
        2 => 529,
        3 => 429,
        4 => 500,
        _ => 204,
    };
    let framing = match choices.below(4) {
        _ if status == 204 => Framing::None,
        0 => Framing::Length,
        1 | 2 => Framing::Chunked,
        _ => Framing::UntilClose,
    };
    let payload = if status == 204 { Vec::new() } else { payload(choices) };
    let is_broken = framing == Framing::Chunked && !payload.is_empty() && choices.one_in(10);
    let answer = Answer {
        status,
        has_interim: choices.one_in(6),
        framing,
        broken_at: is_broken.then(|| choices.below(payload.len() as u32) as usize),
        payload,
        chunk: 1 + size(choices, 600),
    };
    let end = match choices.weighted(&[8, 4, 1, 3]) {
        0 if framing != Framing::UntilClose => End::Keeps,
        1 => End::Reset,
        2 => End::Unauthenticated,
        _ => End::Fin,
    };
    // Where a proper end is all that there is to tell, one that comes early cannot be told.
    let may_be_cut = framing != Framing::UntilClose || end == End::Reset;
    Answered {
        answer,
        when: match choices.weighted(&[10, 2, 1]) {
            0 => When::Whole,
            1 => When::Early,
            _ => When::Unasked,
        },
        delay: soon(choices),
        trickle: choices.one_in(4).then(|| (1 + size(choices, 900), moment(choices))),
        cut: (may_be_cut && choices.one_in(4)).then(|| size(choices, 1_500)),
        surplus: if framing != Framing::UntilClose && choices.one_in(8) {
            1 + choices.below(50) as usize
        } else {
            0
        },
        end,
        reads: choices.one_in(10).then(|| size(choices, 1_500)),
        breaks: choices.one_in(8).then(|| size(choices, 1_500)),
    }
}

impl Answered {
    /// One that goes well
    pub(super) fn sound() -> Self {
        let answer = Answer {
            status: 200,
            has_interim: false,
            framing: Framing::Length,
            payload: b"sound".to_vec(),
            chunk: 1,
            broken_at: None,
        };
        Self {
            answer,
            when: When::Whole,
            delay: Duration::ZERO,
            trickle: None,
            cut: None,
            surplus: 0,
            end: End::Keeps,
            reads: None,
            breaks: None,
        }
    }
}
