//! The requests of a run, each made once.

use std::time::Duration;

use steadfast::body::{Body, Ready};
use steadfast::call::{Call, Command, Env, Request, Retries, Shape};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::machine::{Event, Machine, Step};
use steadfast::time::Instant;

use super::plan::CallPlan;

/// Where every request of a run goes
const URL: &str = "http://sim.invalid/v1/answers";

type RequestKey = (Option<Dialect>, Shape, Retries, u32, Option<(bool, bool)>);

/// A request that was made before
struct Known {
    key: RequestKey,
    request: Request,
    /// Its bytes, head and body; of a body that is read as it goes out, only the head
    bytes: u64,
}

/// Requests that were made before: a call of each kind needs one, and there are few kinds
#[derive(Default)]
pub(crate) struct Requests(Vec<Known>);

impl Requests {
    /// The request of a call, and its bytes
    pub(crate) fn get(&mut self, plan: &CallPlan) -> (Request, u64) {
        let streamed = plan.streamed.map(|streamed| (streamed.of_known_length, streamed.once));
        let key = (plan.dialect, plan.shape, plan.retries, plan.body_bytes, streamed);
        if let Some(known) = self.0.iter().find(|known| known.key == key) {
            return (known.request.clone(), known.bytes);
        }
        let builder = Request::post(URL).body(body(plan)).retries(plan.retries);
        let builder = match plan.dialect {
            Some(dialect) => builder.dialect(dialect),
            None => builder,
        };
        let builder = match plan.shape {
            Shape::Unary => builder,
            Shape::Stream => builder.stream(),
            Shape::Raw => builder.raw(),
        };
        let request = builder.build().expect("a request that can be sent");
        let bytes = outgoing(request.clone());
        self.0.push(Known { key, request: request.clone(), bytes });
        (request, bytes)
    }
}

fn body(plan: &CallPlan) -> Body {
    let Some(streamed) = plan.streamed else { return vec![b' '; plan.body_bytes as usize].into() };
    // The world supplies it.
    let body = match streamed.once {
        true => Body::once(Ready(std::io::empty())),
        false => Body::source(|| Ok(Ready(std::io::empty()))),
    };
    if streamed.of_known_length { body.length(plan.body_bytes.into()) } else { body }
}

/// How many bytes a request is, as the call sends it
fn outgoing(request: Request) -> u64 {
    let env = Env { seed: 0, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let mut id = None;
    if let Ok(mut drain) = call.handle(Instant::ORIGIN, Event::Start)
        && let Step::Do(Command::Connect(asked)) = drain.next()
    {
        id = Some(asked);
    }
    let id = id.expect("a call asks for a connection first");
    drop(call.handle(Instant::ORIGIN, Event::Connected(id)).expect("it was asked for"));
    call.outgoing(id).iter().map(|part| part.len() as u64).sum()
}
