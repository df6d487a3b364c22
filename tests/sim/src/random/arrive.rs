//! What comes over the connection in use.

use steadfast::call::{AttemptId, Fact};
use steadfast::machine::{Ended, Event, FailureKind, Machine, ProxyRefusal, Stage};

use super::coverage::{Coverage, Fault};
use super::driver::{Driver, Stop};
use super::invariants::Violation;
use super::met::{came, head_met, met};
use super::plan::{End, Exchange};
use super::same_steps::Twins;
use super::server::{Arrival, Link, reset};
use super::truth::Place;
use super::watch::Told;
use super::wire::parsed_head;
use super::world::World;

impl World {
    /// Tells of what has come over the connection in use
    pub(super) fn arrive(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        arrival: Arrival,
    ) -> Result<Stop, Violation> {
        let now = driver.now;
        let Some(link) = &self.server.link else { return Ok(Stop::Held) };
        let id = link.id;
        let exchange = &driver.plan.exchanges[link.exchange];
        let wire = &self.server.wire;
        let truth = &mut self.watch.truth;
        let coverage = &mut self.coverage;
        let event = match arrival {
            Arrival::Open => {
                if now > link.asked_at() {
                    coverage.fault(Fault::SlowConnect);
                }
                truth.place = Place::Waiting;
                truth.facts = link.facts;
                opened(coverage, link, exchange, truth.forwarded);
                Event::Connected(id)
            }
            Arrival::Reused => {
                truth.place = Place::Waiting;
                opened(coverage, link, exchange, truth.forwarded);
                truth.reused = true;
                Event::Reused(id)
            }
            Arrival::NotOpen(failure) => {
                coverage.fault(Fault::ConnectFails);
                truth.not_connected(failure.stage);
                truth.hopeless = matches!(
                    failure.kind,
                    FailureKind::Certificate(_) | FailureKind::Proxy(ProxyRefusal::Status(403))
                );
                Event::Failed(id, failure)
            }
            Arrival::LeftOver => {
                coverage.fault(Fault::UnaskedBytes);
                if truth.reused && truth.sent == 0 {
                    truth.unasked = true;
                } else {
                    truth.polluted = true;
                    truth.received += Link::surplus().len() as u64;
                }
                return self.tell(driver, twins, Told::Link, Event::Received(id, Link::surplus()));
            }
            Arrival::Bytes(count) => return self.bytes_came(driver, twins, id, count),
            Arrival::Head => {
                coverage.fault(Fault::Facts);
                truth.head_came(now);
                self.watch.heard = true;
                head_met(coverage, driver.plan, link.exchange, truth.forwarded);
                let head = parsed_head(exchange, driver.asked(), wire.is_coded());
                return self.tell(driver, twins, Told::Link, Event::Fact(Fact::Head(id, head)));
            }
            Arrival::BodyEnd => {
                truth.message_ended(now, &wire.marks);
                return self.tell(driver, twins, Told::Link, Event::Fact(Fact::End(id)));
            }
            Arrival::Eof(ended) => {
                coverage.fault(match (wire.end.1, ended) {
                    (End::FinTwice, _) => Fault::FinTwice,
                    (_, Ended::Clean) => Fault::Fin,
                    _ => Fault::FinWithoutCloseNotify,
                });
                truth.eof(now, ended, &wire.marks, wire.is_whole, wire.body_start);
                let twice = wire.end.1 == End::FinTwice;
                let stop = self.tell(driver, twins, Told::Link, Event::Eof(id, ended))?;
                if !twice || !matches!(stop, Stop::Wait(_)) {
                    return Ok(stop);
                }
                if self.watch.live != Some(id) {
                    self.watch.stale += 1;
                }
                return self.tell(driver, twins, Told::Nothing, Event::Eof(id, ended));
            }
            Arrival::Reset => {
                coverage.fault(Fault::Reset);
                truth.failed(now, &wire.marks);
                Event::Failed(id, reset(Stage::Read))
            }
            Arrival::Took(bytes) => {
                if (bytes as u64) < truth.whole {
                    coverage.fault(Fault::ShortWrites);
                }
                let is_left = link.reads_no_more(exchange);
                self.watch.takes(id, twins.first.outgoing(id), bytes)?;
                if is_left && !self.watch.truth.is_request_whole() {
                    coverage.fault(Fault::UnreadRequest);
                }
                Event::Sent(id, bytes)
            }
            Arrival::WriteBroke => {
                coverage.fault(Fault::WriteBreaks);
                truth.write_failed = true;
                Event::Failed(id, reset(Stage::Write))
            }
        };
        self.tell(driver, twins, Told::Link, event)
    }

    /// Bytes of the wire: of HTTP, or of a body that the transport has parsed
    fn bytes_came(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        id: AttemptId,
        count: u32,
    ) -> Result<Stop, Violation> {
        let (mut checks, server) = self.apart();
        let Some(link) = &server.link else { return Ok(Stop::Held) };
        let wire = &server.wire;
        let truth = &mut checks.watch.truth;
        let from = truth.fed as usize;
        let bytes = &wire.bytes[from..from + count as usize];
        if truth.reused && truth.sent == 0 {
            truth.unasked = true;
            checks.coverage.fault(Fault::UnaskedBytes);
        } else {
            if !truth.is_request_whole() && from == 0 {
                checks.coverage.fault(Fault::EarlyAnswer);
            }
            if count == 1 && driver.client.read_bytes > 0 {
                checks.coverage.fault(Fault::SplitReads);
            }
            let forwarded = truth.forwarded;
            truth.came(driver.now, count, &wire.marks, |mark| {
                met(checks.coverage, driver.plan, link.exchange, forwarded, mark);
            });
            let exchange = &driver.plan.exchanges[link.exchange];
            came(checks.coverage, exchange, wire, driver.asked(), from as u32..from as u32 + count);
        }
        let event = if link.facts { Event::Fact(Fact::Body(id, bytes)) } else { Event::Received(id, bytes) };
        let stop = checks.feed(driver, twins, Told::Link, &event, server)?;
        self.act(driver)?;
        Ok(stop)
    }
}

/// What a connection is to the coverage, once it is open
fn opened(coverage: &mut Coverage, link: &Link, exchange: &Exchange, forwarded: bool) {
    if forwarded {
        coverage.fault(Fault::Forwarded);
    }
    if link.reads_no_more(exchange) {
        coverage.fault(Fault::UnreadRequest);
    }
}
