//! The exchange under test, driven by the inputs of the model.

use std::sync::Arc;

use steadfast::call::{AttemptId, CloseMode};
use steadfast::machine::{Ended, Event, FailureKind, IoFailure, Machine, Stage, Step};
use steadfast::relay::{Closing, Code, Command, Ending, Exchange, Fact, Item, Link, Route, Routes};
use steadfast::time::Instant;

use super::terms::{Act, BEGAN, Case, Framing, Input, Seen, Takes, Told, Waits};

/// More steps than any event causes: an exchange that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 64;

/// The exchange under test
pub(super) struct Subject<'c> {
    case: &'c Case,
    exchange: Exchange,
    up: Option<AttemptId>,
    /// The connection to the provider is open
    is_open: bool,
    /// What the app has got of the present exchange
    app: Vec<u8>,
}

impl<'c> Subject<'c> {
    /// A connection that has just been accepted
    pub(super) fn new(case: &'c Case, seen: &mut Seen) -> Self {
        let route = Route::new("up", "http://up.example", case.shape).expect("a route");
        let routes = Arc::new(Routes::new(vec![route], &[]).expect("routes"));
        let exchange = Exchange::new(routes, false, 7, Instant::from_nanos(BEGAN));
        let mut subject = Self { case, exchange, up: None, is_open: false, app: Vec::new() };
        subject.feed(BEGAN, Event::Start, seen);
        subject
    }

    /// Feeds `input`
    pub(super) fn step(&mut self, now: u64, input: Input, seen: &mut Seen) {
        use Input::*;
        // Nothing happens to a provider's connection before there is one.
        let up = self.up.map_or(Link::App, Link::Up);
        let failure = |stage| IoFailure { stage, kind: FailureKind::Reset, message: String::new() };
        let version = if self.case.is_old { "HTTP/1.0" } else { "HTTP/1.1" };
        let framing = match self.case.request {
            Framing::Chunked => "Transfer-Encoding: chunked",
            Framing::Length | Framing::UntilClose => "Content-Length: 2",
        };
        let line = format!("POST /up/v1 {version}\r\n");
        let rest = format!("Host: a\r\n{framing}\r\n\r\n");
        let body = match self.case.request {
            Framing::Chunked => "2\r\n{}\r\n0\r\n\r\n",
            Framing::Length | Framing::UntilClose => "{}",
        };
        let head = match self.case.answer {
            Framing::Length => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
            Framing::Chunked => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            Framing::UntilClose => "HTTP/1.1 200 OK\r\n\r\n",
        };
        let (part, last) = (self.case.answer.part(), self.case.answer.last());
        let refusal = |status: u16| format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\nno");
        let bytes = match input {
            Ask => format!("{line}{rest}{body}"),
            AskTwice => format!("{line}{rest}{body}").repeat(2),
            AskHalf => line,
            AskRest => format!("{rest}{body}"),
            AskHead => format!("{line}{rest}"),
            AskBody => body.to_owned(),
            AskBadBody => "x\r\n".to_owned(),
            AskBad => "POST http://other/ HTTP/1.1\r\n".to_owned(),
            AskNowhere => format!("{line}{rest}{body}").replace("/up/", "/no/"),
            Interim => "HTTP/1.1 103 Early\r\n\r\n".to_owned(),
            Busy => refusal(503),
            Overloaded => refusal(529),
            Limited => refusal(429),
            Head => head.to_owned(),
            Part => part.to_owned(),
            Last => last.to_owned(),
            LastAndMore => format!("{last}X"),
            Whole => format!("{head}{part}{last}"),
            Garbage => "\0\r\n".to_owned(),
            AppTakes | AppLeaves | Cancel | Drain | Full | Connected | Reused | ConnectFails | SentPart
            | SentAll | WriteFails | Eof | Reset | Tick | Elapse => String::new(),
        };
        let event = match input {
            Ask | AskTwice | AskHalf | AskRest | AskHead | AskBody | AskBadBody | AskBad | AskNowhere => {
                Event::Received(Link::App, bytes.as_bytes())
            }
            Interim | Busy | Overloaded | Limited | Head | Part | Last | LastAndMore | Whole | Garbage => {
                Event::Received(up, bytes.as_bytes())
            }
            AppTakes => return self.write_app(now, seen),
            AppLeaves => Event::Eof(Link::App, Ended::Clean),
            Cancel => Event::Cancel,
            Drain => Event::Fact(Fact::Draining),
            Full => Event::Fact(Fact::Refused(self.up.expect("it was asked for"), Code::GatewayOverloaded)),
            Connected | Reused => {
                self.is_open = true;
                if input == Reused { Event::Reused(up) } else { Event::Connected(up) }
            }
            ConnectFails => Event::Failed(up, failure(Stage::Connect)),
            SentPart => Event::Sent(up, 1),
            SentAll => Event::Sent(up, self.exchange.outgoing(up).iter().map(|part| part.len()).sum()),
            WriteFails => Event::Failed(up, failure(Stage::Write)),
            Eof => Event::Eof(up, Ended::Clean),
            Reset => Event::Failed(up, failure(Stage::Read)),
            Elapse => Event::Elapsed,
            Tick => return self.take_steps(None, seen),
        };
        self.feed(now, event, seen);
        while self.case.takes == Takes::All && seen.reset.is_none() && !self.waiting().is_empty() {
            self.write_app(now, seen);
        }
    }

    fn waiting(&self) -> Vec<u8> {
        self.exchange.outgoing(Link::App).concat()
    }

    fn write_app(&mut self, now: u64, seen: &mut Seen) {
        let waiting = self.waiting();
        self.app.extend_from_slice(&waiting);
        self.feed(now, Event::Sent(Link::App, waiting.len()), seen);
    }

    fn feed(&mut self, now: u64, event: Event<'_, Exchange>, seen: &mut Seen) {
        self.take_steps(Some((now, event)), seen);
    }

    fn take_steps(&mut self, event: Option<(u64, Event<'_, Exchange>)>, seen: &mut Seen) {
        let Self { exchange, case, up, is_open, app } = self;
        let drain = match event {
            Some((now, event)) => exchange.handle(Instant::from_nanos(now), event),
            None => Ok(exchange.drain()),
        };
        let mut drain = match drain {
            Ok(drain) => drain,
            Err(misuse) => return seen.other.push(misuse.to_string()),
        };
        for _ in 0..MAX_STEPS {
            match drain.next() {
                Step::Do(Command::Connect { id, reuse, .. }) => {
                    (*up, *is_open) = (Some(id), false);
                    seen.commands.push(Act::Connect(reuse));
                }
                Step::Do(Command::Close(id, mode)) if Some(id) == *up => {
                    seen.commands.push(if mode == CloseMode::Abort { Act::Abort } else { Act::Keep });
                }
                Step::Do(Command::Finish) => seen.commands.push(Act::Finish),
                Step::Do(command) => seen.other.push(format!("{command:?}")),
                Step::Deliver(Item::Pass { to, before, bytes }) => {
                    let all = [before, bytes].concat();
                    let took = match case.takes {
                        Takes::All => all.len(),
                        Takes::One => 1,
                        Takes::Nothing => 0,
                    };
                    if to == Link::App {
                        app.extend_from_slice(&all[..took]);
                    }
                    drain.took(took);
                }
                Step::Deliver(Item::Over(exchanged)) => {
                    seen.over.push(Told { ending: ending(exchanged.ending), sends: exchanged.sends });
                    seen.app.push_str(&written(app));
                    app.clear();
                }
                Step::Deliver(Item::Tap(tap)) => seen.other.push(format!("{tap:?}")),
                Step::Done(closing) => {
                    seen.reset = Some(closing == Closing::Reset);
                    seen.wait = None;
                    return;
                }
                Step::Wait(wait) => {
                    let mut waits = Waits { deadline: None, app: (false, false), up: None };
                    waits.deadline = wait.deadline.map(|(at, timer)| (at.as_nanos(), timer));
                    for interest in wait.io {
                        match interest.link {
                            Link::App => waits.app = (interest.read, interest.write),
                            Link::Up(_) => waits.up = Some((interest.read, interest.write)),
                        }
                    }
                    seen.wait = Some(waits);
                    return;
                }
            }
        }
        seen.other.push(format!("more than {MAX_STEPS} steps"));
    }

    /// What the app has got of the present exchange
    pub(super) fn app(&self) -> String {
        written(&self.app)
    }
}

fn ending(ending: Ending) -> String {
    match ending {
        Ending::Limit(timer) => format!("limit {}", timer.name()),
        Ending::Refused(code) => format!("refused {}", code.name()),
        Ending::Passed | Ending::Served | Ending::Broken | Ending::AppLeft | Ending::Stopped => {
            ending.name().to_owned()
        }
    }
}

/// An answer, as [`Seen::app`] has it
fn written(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return String::new();
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return "~".to_owned() };
    let status = head.split(' ').nth(1).unwrap_or_default();
    let close = if head.to_ascii_lowercase().contains("\r\nconnection: close") { " close" } else { "" };
    if !head.contains("\r\nx-request-id: ") {
        return format!("[{status}{close}]{body}");
    }
    let code = body.split(r#""code":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("none");
    format!("[{status} {code}{close}]")
}
