//! The steps of a call, each checked before the next one is taken.

use steadfast::call::{Call, Command, Fact};
use steadfast::machine::{Event, Machine, Step};
use steadfast::outcome::Outcome;

use super::coverage::{Coverage, Fault, Paths};
use super::driver::{Driver, Stop};
use super::invariants::{Invariant, Violation};
use super::same_steps::{Twins, again};
use super::server::Server;
use super::watch::{Told, Watch};
use super::world::World;

/// What steps are held against, and where they are counted: the world but for its servers, of whose bytes
/// an event is made
pub(super) struct Checks<'w> {
    pub(super) watch: &'w mut Watch,
    pub(super) coverage: &'w mut Coverage,
    paths: &'w Paths,
    commands: &'w mut Vec<Command>,
    steps: &'w mut u64,
    outcomes: &'w mut Option<Vec<(usize, Outcome)>>,
}

impl World {
    /// The checks, and the servers apart from them
    pub(super) fn apart(&mut self) -> (Checks<'_>, &Server) {
        let Self { server, watch, paths, commands, coverage, steps, outcomes, .. } = self;
        (Checks { watch, coverage, paths, commands, steps, outcomes }, server)
    }

    /// Tells a call something, and does what it asks for
    pub(super) fn tell(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        told: Told,
        event: Event<'_, Call>,
    ) -> Result<Stop, Violation> {
        let (mut checks, server) = self.apart();
        let stop = checks.feed(driver, twins, told, &event, server)?;
        self.act(driver)?;
        Ok(stop)
    }

    /// Goes on with steps that were left
    pub(super) fn resume(&mut self, driver: &mut Driver<'_>, twins: &mut Twins) -> Result<Stop, Violation> {
        let (mut checks, server) = self.apart();
        let stop = checks.steps(driver, twins, None, server)?;
        self.act(driver)?;
        Ok(stop)
    }
}

impl Checks<'_> {
    /// Tells a call something, and takes the steps that follow
    pub(super) fn feed(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        told: Told,
        event: &Event<'_, Call>,
        server: &Server,
    ) -> Result<Stop, Violation> {
        self.watch.told(driver.now, told);
        if let Event::Received(_, bytes) | Event::Fact(Fact::Body(_, bytes)) = event {
            self.watch.largest_read = self.watch.largest_read.max(bytes.len());
        }
        self.steps(driver, twins, Some(event), server)
    }

    /// Takes steps, after `event` or after those that were left, until the call waits or ends, the consumer
    /// goes away, or the drain is dropped
    fn steps(
        &mut self,
        driver: &mut Driver<'_>,
        Twins { first, second }: &mut Twins,
        event: Option<&Event<'_, Call>>,
        server: &Server,
    ) -> Result<Stop, Violation> {
        let (drain, twin) = match event {
            None => (first.drain(), Ok(second.drain())),
            Some(event) => match first.handle(driver.now, again(event)) {
                Ok(drain) => (drain, second.handle(driver.now, again(event))),
                Err(misuse) => return Err(self.watch.violation(Invariant::Contract, misuse.to_string())),
            },
        };
        let (mut drain, mut twin) = (drain, self.watch.is_told_as_well(twin)?);
        // A drain may be dropped before its first step, too.
        let mut stop = None;
        if event.is_some() && driver.drops() {
            self.coverage.fault(Fault::DroppedDrain);
            stop = Some(Stop::Held);
        }
        while stop.is_none() {
            if driver.drops_twin() {
                drop(twin);
                twin = second.drain();
            }
            *self.steps += 1;
            let step = drain.next();
            self.watch.takes_the_same(&step, &mut twin)?;
            stop = match step {
                Step::Do(command) => {
                    self.asks_for(driver, &command, server)?;
                    self.commands.push(command);
                    None
                }
                Step::Deliver(item) => {
                    self.watch.delivers(&item)?;
                    driver.took(&item);
                    let is_away = driver.away_until.is_some() && !driver.client.watched;
                    (driver.client.fails_at > 0 || is_away).then_some(Stop::Held)
                }
                Step::Wait(wait) => Some(Stop::Wait(wait)),
                Step::Done(outcome) => {
                    driver.away_until = None;
                    self.watch.settled(&outcome, &server.wire)?;
                    if let Some(outcomes) = self.outcomes {
                        outcomes.push((driver.number, outcome));
                    }
                    Some(Stop::Done)
                }
            };
            self.passes(driver, drain.machine())?;
            if stop.is_none() && driver.drops() {
                self.coverage.fault(Fault::DroppedDrain);
                stop = Some(Stop::Held);
            }
        }
        drop(drain);
        self.stops(driver, first, server, stop.unwrap_or(Stop::Held))
    }

    /// A connection is asked for, or closed
    fn asks_for(&mut self, driver: &Driver<'_>, command: &Command, server: &Server) -> Result<(), Violation> {
        match command {
            Command::Connect(id) => {
                let exchange = &driver.plan.exchanges[server.next_exchange(driver.plan)];
                self.watch.connects(*id, exchange, server.next_instance())
            }
            Command::Retry(id) => self.watch.announces(*id),
            Command::Close(id, mode) => self.watch.closes(*id, mode, &server.wire),
        }
    }

    /// After each step: what the call holds, and the way it came
    fn passes(&mut self, driver: &mut Driver<'_>, call: &Call) -> Result<(), Violation> {
        self.watch.holds(&call.held(), self.coverage)?;
        let state = call.state();
        if state == driver.state {
            return Ok(());
        }
        match self.paths.edge(driver.state, state) {
            Some(edge) => self.coverage.transition(edge),
            None => self.watch.ensure(self.paths.can(driver.state, state), Invariant::Contract, || {
                format!("from {:?} there is no way to {state:?}", driver.state)
            })?,
        }
        driver.state = state;
        Ok(())
    }

    /// Where the steps came to a stop: what the call waits for, or what it keeps of a drain that was dropped
    fn stops(
        &mut self,
        driver: &mut Driver<'_>,
        call: &Call,
        server: &Server,
        stop: Stop,
    ) -> Result<Stop, Violation> {
        if matches!(stop, Stop::Held) {
            self.passes(driver, call)?;
        }
        if driver.away_until.is_some() {
            let is_watched = matches!(stop, Stop::Wait(_)) && driver.client.watched;
            self.coverage.fault(if is_watched { Fault::Watched } else { Fault::Away });
        }
        if let Stop::Wait(wait) = &stop {
            self.watch.waits(wait, driver.state, &server.wire)?;
        }
        Ok(stop)
    }
}
