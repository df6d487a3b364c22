//! What a recorded body means: the call machine, driven over bytes without any IO
//!
//! With a socket's bytes in place of the recorded ones, and a clock, this is a driver.

use std::error::Error;
use std::time::Duration;

use steadfast::call::{Call, Command, Env, Fact, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::http1::ResponseHead;
use steadfast::machine::{Event, Machine, Step};
use steadfast::outcome::Outcome;
use steadfast::time::Instant;

fn decode(dialect: Dialect, head: ResponseHead, body: &[u8]) -> Result<Outcome, Box<dyn Error>> {
    let request = Request::post("http://recorded.invalid/").dialect(dialect).stream().build()?;
    let env = Env { seed: 0, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let Step::Do(Command::Connect(id)) = call.handle(Instant::ORIGIN, Event::Start)?.next() else {
        return Err("a call begins with a connection".into());
    };
    let facts = [Fact::Head(id, head), Fact::Body(id, body), Fact::End(id)].map(Event::Fact);
    for event in [Event::Connected(id)].into_iter().chain(facts) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let mut drain = call.handle(Instant::ORIGIN, event)?;
            loop {
                match drain.next() {
                    Step::Do(_) => {}
                    Step::Deliver(Item::Delta(delta)) => println!("{delta:?}"),
                    Step::Deliver(_) => {}
                    Step::Wait(wait) => break next = wait.taken.then_some(Event::Taken),
                    Step::Done(outcome) => return Ok(outcome),
                }
            }
        }
    }
    Err("a body that has ended ends its call".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let outcome = decode(Dialect::OpenAiChat, head(), BODY)?;
    println!("{}: {}", outcome.word(), outcome.turn().text());
    Ok(())
}

fn head() -> ResponseHead {
    ResponseHead {
        version: http::Version::HTTP_11,
        status: http::StatusCode::OK,
        reason: Default::default(),
        headers: Default::default(),
    }
}

const BODY: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

#[test]
fn the_whole_body_and_a_cut_one() {
    let outcome = decode(Dialect::OpenAiChat, head(), BODY).unwrap();
    assert_eq!((outcome.word(), outcome.turn().text()), ("completed", "Hello"));
    let outcome = decode(Dialect::OpenAiChat, head(), &BODY[..70]).unwrap();
    assert_eq!((outcome.word(), outcome.turn().text()), ("error", "Hel"));
}
