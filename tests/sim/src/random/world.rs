//! A run: its calls, one after the other, in virtual time.

use std::time::Duration;

use steadfast::call::{Call, Command, Fact, State, Timer};
use steadfast::machine::{Event, Wait};
use steadfast::outcome::Outcome;
use steadfast::retry::RetryBudget;
use steadfast::time::Instant;

use super::coverage::{Coverage, Fault, Paths};
use super::driver::{Driver, Stop};
use super::invariants::{Invariant, Violation};
use super::log::Log;
use super::plan::{Cancel, Plan};
use super::requests::Requests;
use super::same_steps::Twins;
use super::server::{Arrival, Server};
use super::watch::{Told, Watch};

/// The most events of one call; more means that it does not come to an end
pub const MAX_EVENTS_PER_CALL: u32 = 20_000;

/// Plays plans, in memory that is used again
pub(crate) struct World {
    pub(super) server: Server,
    pub(super) watch: Watch,
    pub(super) paths: Paths,
    requests: Requests,
    pub(super) commands: Vec<Command>,
    /// What the calls of the present plan share for their retries, where they share it
    pub(super) budget: Option<RetryBudget>,
    pub(crate) coverage: Coverage,
    pub(crate) log: Log,
    /// Steps that machines took
    pub(crate) steps: u64,
    pub(crate) calls: u64,
    /// The outcomes of all calls with their numbers, in the order of their ends, where they are wanted
    pub(crate) outcomes: Option<Vec<(usize, Outcome)>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            server: Server::default(),
            watch: Watch::new(),
            paths: Paths::new(),
            requests: Requests::default(),
            commands: Vec::new(),
            budget: None,
            coverage: Coverage::default(),
            log: Log::default(),
            steps: 0,
            calls: 0,
            outcomes: None,
        }
    }

    /// Plays all calls of `plan`; returns how much time that took in the world
    pub(crate) fn play(&mut self, plan: &Plan) -> Result<Duration, Violation> {
        let mut now = Instant::ORIGIN;
        self.server.clear();
        self.commands.clear();
        self.budget = plan.budget.map(RetryBudget::new);
        let mut first = 0;
        while let Some(call) = plan.calls.get(first) {
            now = now + call.idle;
            let beside = plan.calls[first + 1..].iter().take_while(|call| call.beside).count();
            let next = first + 1 + beside;
            now = if beside == 0 {
                self.alone(plan, first, now)?
            } else {
                self.together(plan, first..next, now)?
            };
            first = next;
        }
        Ok(now.since_origin())
    }

    fn alone(&mut self, plan: &Plan, number: usize, began: Instant) -> Result<Instant, Violation> {
        let (mut driver, mut twins) = self.begin(plan, number, began);
        self.drive(&mut driver, &mut twins, None)?;
        Ok(driver.now)
    }

    /// Makes a call, which is told nothing yet
    pub(super) fn begin<'p>(&mut self, plan: &'p Plan, number: usize, began: Instant) -> (Driver<'p>, Twins) {
        let (request, outgoing) = self.requests.get(&plan.calls[number]);
        let mut twins = Twins::new(plan, number, request, began);
        if let Some(recorder) = self.log.recorder() {
            twins.first.record(recorder).expect("the call has not begun");
        }
        self.watch.begin(plan, number, began, outgoing);
        self.pay_in(began);
        self.calls += 1;
        let client = &plan.calls[number].client;
        let driver = Driver {
            plan,
            number,
            client,
            now: began,
            began,
            state: State::Idle,
            events: 0,
            jumps: 0,
            items: 0,
            points: 0,
            twin_drops: Twins::drops(plan, client.drops),
            away_until: None,
            cancelled: false,
            failed: false,
            closed: None,
            refused: None,
            stop: Stop::Before,
            looked: None,
        };
        (driver, twins)
    }

    /// Drives a call to its end, or until it would act later than at `until`; returns whether it is over
    pub(super) fn drive(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        until: Option<Instant>,
    ) -> Result<bool, Violation> {
        let mut looked = driver.looked.take();
        let mut stop = std::mem::replace(&mut driver.stop, Stop::Held);
        if matches!(stop, Stop::Before) {
            stop = if driver.client.cancel == Cancel::AtEvent(0) {
                driver.cancelled = true;
                self.coverage.fault(Fault::CancelAtEvent);
                self.tell(driver, twins, Told::Cancel, Event::Cancel)?
            } else {
                self.tell(driver, twins, Told::Start, Event::Start)?
            };
        }
        while driver.events < MAX_EVENTS_PER_CALL {
            if matches!(stop, Stop::Done) {
                self.after_the_end(driver, twins)?;
                return Ok(true);
            }
            if until.is_some_and(|until| driver.now > until) {
                (driver.stop, driver.looked) = (stop, looked);
                return Ok(false);
            }
            driver.events += 1;
            let client = driver.client;
            if let Some((at, pause)) = client.suspended
                && driver.events == at
            {
                self.coverage.fault(Fault::Suspended);
                driver.now = driver.now + pause;
                continue;
            }
            if driver.cancel_due() {
                driver.cancelled = true;
                let by_time = matches!(client.cancel, Cancel::After(_));
                self.coverage.fault(if by_time { Fault::CancelAfter } else { Fault::CancelAtEvent });
                stop = self.tell(driver, twins, Told::Cancel, Event::Cancel)?;
                continue;
            }
            if client.fails_at > 0 && driver.items >= client.fails_at && !driver.failed {
                driver.failed = true;
                self.coverage.fault(Fault::ConsumerFails);
                let event = Event::Fact(Fact::ConsumerFailed("no"));
                stop = self.tell(driver, twins, Told::ConsumerFailed, event)?;
                continue;
            }
            let away = driver.away_until.filter(|until| *until > driver.now);
            if away.is_none() {
                driver.away_until = None;
            }
            let wait = match stop {
                Stop::Done | Stop::Before => continue,
                Stop::Held => {
                    match away {
                        Some(until) => self.jump(driver, [Some(until), None, driver.cancel_at()])?,
                        None => stop = self.resume(driver, twins)?,
                    }
                    continue;
                }
                Stop::Wait(wait) => wait,
            };
            if let Some(id) = driver.closed.take_if(|_| client.stale) {
                stop = self.tell_stale(driver, twins, id)?;
                continue;
            }
            if let Some(id) = driver.refused.take() {
                stop = self.refuse_retry(driver, twins, id)?;
                continue;
            }
            let due = wait.deadline.filter(|(at, _)| *at <= driver.now).map(|(_, timer)| timer);
            if due.is_none() {
                looked = None;
            }
            if let (Some(until), true) = (away, wait.taken) {
                if due.is_some() && client.watched {
                    stop = self.elapsed(driver, twins, due)?;
                } else {
                    let deadline = wait.deadline.map(|(at, _)| at).filter(|_| client.watched);
                    self.jump(driver, [Some(until), deadline, driver.cancel_at()])?;
                    stop = Stop::Wait(wait);
                }
                continue;
            }
            stop = if wait.taken {
                self.tell(driver, twins, Told::Taken, Event::Taken)?
            } else if due.is_some() && looked == due {
                looked = None;
                self.elapsed(driver, twins, due)?
            } else if let Some(arrival) = self.look(driver, &twins.first, &wait) {
                looked = due;
                self.arrive(driver, twins, arrival)?
            } else if let Some(supply) = self.supply_due(driver, &wait) {
                looked = due;
                self.supply(driver, twins, supply)?
            } else if due.is_some() {
                looked = None;
                self.elapsed(driver, twins, due)?
            } else {
                let reads = wait.io.is_some_and(|io| io.read);
                let next = [wait.deadline.map(|(at, _)| at), self.next_at(driver, reads), driver.cancel_at()];
                if next.iter().all(Option::is_none) {
                    // Without bounds, and with a peer that is mute, a call waits for ever, as it was told to.
                    driver.cancelled = true;
                    self.tell(driver, twins, Told::Cancel, Event::Cancel)?
                } else {
                    self.jump(driver, next)?;
                    Stop::Wait(wait)
                }
            };
        }
        Err(self.watch.violation(Invariant::Ends, format!("no end after {MAX_EVENTS_PER_CALL} events")))
    }

    /// Lets time pass until the earliest of these, and a little longer where the driver is late
    fn jump(&mut self, driver: &mut Driver<'_>, next: [Option<Instant>; 3]) -> Result<(), Violation> {
        let next = next.into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next > driver.now) else {
            return Err(self.watch.violation(Invariant::Progress, format!("time stands still: {next:?}")));
        };
        if next - driver.now >= LONG {
            self.coverage.fault(Fault::Pause);
        }
        driver.now = next;
        driver.jumps += 1;
        if let Some((every, by)) = driver.client.late
            && driver.jumps.is_multiple_of(every.max(1))
        {
            self.coverage.fault(Fault::Late);
            driver.now = driver.now + by;
        }
        Ok(())
    }

    fn look(&mut self, driver: &Driver<'_>, call: &Call, wait: &Wait<Call>) -> Option<Arrival> {
        let outgoing = self.outgoing(call, wait);
        let reads = wait.io.is_some_and(|io| io.read);
        let sizes = (driver.client.read_bytes, driver.client.write_bytes);
        self.server.arrived(driver.now, driver.plan, reads, outgoing, sizes, self.watch.truth.fed)
    }

    /// Reports an expiry, which must change something or move the deadline on
    fn elapsed(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        timer: Option<Timer>,
    ) -> Result<Stop, Violation> {
        let before = (driver.state, self.watch.live);
        let stop = self.tell(driver, twins, Told::Elapsed(timer), Event::Elapsed)?;
        if let Stop::Wait(after) = &stop {
            let moved = after.deadline.is_none_or(|(at, _)| at > driver.now);
            let changed = before != (driver.state, self.watch.live);
            self.watch.ensure(moved || changed, Invariant::Progress, || {
                format!("{timer:?} has come, and the call waits until {:?}", after.deadline)
            })?;
        }
        Ok(stop)
    }

    /// Does what was asked for
    pub(super) fn act(&mut self, driver: &mut Driver<'_>) -> Result<(), Violation> {
        let Self { commands, server, watch, coverage, budget, .. } = self;
        if commands.is_empty() {
            return Ok(());
        }
        for command in commands.drain(..) {
            match command {
                Command::Connect(id) => {
                    server.connect(id, driver.now, driver.plan, driver.number, coverage);
                }
                Command::Retry(id) => {
                    let is_there = budget.as_mut().is_none_or(|budget| budget.withdraw(driver.now));
                    driver.refused = (!is_there).then_some(id);
                }
                Command::Close(id, mode) => {
                    driver.closed = Some(id);
                    let is_clean = server.close(driver.now, mode, watch.fed_at_close, coverage);
                    watch.ensure(is_clean, Invariant::Stranger, || {
                        format!("{id:?} may be used again, though its message has not ended")
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// A silence that a person would notice
const LONG: Duration = Duration::from_millis(100);
