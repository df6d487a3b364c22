//! Happy Eyeballs, version 2 (RFC 8305): which of a host's addresses to try, and when.

use std::net::SocketAddr;
use std::time::Duration;

use crate::machine::{FailureKind, IoFailure, Stage};
use crate::time::Instant;

/// How long an attempt has for itself before the next one joins it
///
/// RFC 8305 section 5 recommends this value, and no less than 100 ms and no more than 2 s.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The most addresses of one host that are tried, and so the most attempts at one time
///
/// At [`ATTEMPT_DELAY`] the last of them begins within 4 s.
pub const MAX_ADDRESSES: usize = 16;

/// Connects to the first of a host's addresses that answers
///
/// The families alternate, beginning with that of the first address: resolvers sort by RFC 6724,
/// so the first is the likelier one. An address that fails lets the next one start at once. The
/// driver drops every other attempt at the first success.
///
/// ```
/// use std::time::Duration;
/// use steadfast::connect::{HappyEyeballs, Next};
/// use steadfast::time::Instant;
///
/// let ipv6 = "[2001:db8::1]:443".parse().unwrap();
/// let ipv4 = "203.0.113.5:443".parse().unwrap();
/// let mut race = HappyEyeballs::new([ipv6, ipv4]);
///
/// let start = Instant::ORIGIN;
/// assert_eq!(race.next(start), Next::Connect(ipv6));
/// let due = start + Duration::from_millis(250);
/// assert_eq!(race.next(start), Next::Wait(Some(due)));
/// assert_eq!(race.next(due), Next::Connect(ipv4));
/// assert_eq!(race.next(due), Next::Wait(None));
/// ```
#[derive(Clone, Debug)]
pub struct HappyEyeballs {
    addresses: Vec<SocketAddr>,
    /// How many of them have been started
    started: usize,
    /// How many of those have not failed
    running: usize,
    /// When the next one may start; `None` means at once
    due: Option<Instant>,
    /// The failure that tells most so far
    failure: Option<IoFailure>,
}

/// What to do next
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start to connect to this address, without waiting for it
    Connect(SocketAddr),
    /// Wait for any attempt, but no longer than until then; `None` means for as long as it takes
    Wait(Option<Instant>),
    /// Every address has failed; this failure tells most
    Failed(IoFailure),
}

impl HappyEyeballs {
    /// A race between `addresses`, in the order in which a resolver gave them
    ///
    /// Repeated ones, and those past [`MAX_ADDRESSES`], are left out.
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let addresses = interleaved(addresses);
        Self { addresses, started: 0, running: 0, due: None, failure: None }
    }

    /// What to do at `now`; ask again until it is to wait
    pub fn next(&mut self, now: Instant) -> Next {
        let Some(&address) = self.addresses.get(self.started) else {
            return match &self.failure {
                Some(failure) if self.running == 0 => Next::Failed(self.told(failure)),
                None if self.addresses.is_empty() => Next::Failed(no_address()),
                Some(_) | None => Next::Wait(None),
            };
        };
        if self.due.is_some_and(|due| now < due) {
            return Next::Wait(self.due);
        }
        self.started += 1;
        self.running += 1;
        self.due = Some(now + ATTEMPT_DELAY);
        Next::Connect(address)
    }

    /// An attempt has failed: the next one may start at once
    pub fn failed(&mut self, address: SocketAddr, failure: IoFailure) {
        self.running = self.running.saturating_sub(1);
        self.due = None;
        if self.failure.as_ref().is_none_or(|told| weight(failure.kind) > weight(told.kind)) {
            let message = format!("{address}: {}", failure.message);
            self.failure = Some(IoFailure { message, ..failure });
        }
    }

    /// The failure for all of them
    fn told(&self, failure: &IoFailure) -> IoFailure {
        let message = match self.addresses.len() {
            1 => failure.message.clone(),
            count => format!("{} (and {} more of the host's addresses failed)", failure.message, count - 1),
        };
        IoFailure { message, ..failure.clone() }
    }
}

/// How much a failure tells: that a host answered tells more than that there is no way to it
///
/// Of equals the first one counts, as it was at the preferred address.
fn weight(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Unreachable | FailureKind::NotFound => 0,
        FailureKind::Other => 1,
        FailureKind::Refused
        | FailureKind::Reset
        | FailureKind::Certificate(_)
        | FailureKind::ClientCertificate(_)
        | FailureKind::Tls
        | FailureKind::Proxy(_) => 2,
    }
}

fn no_address() -> IoFailure {
    IoFailure {
        stage: Stage::Resolve,
        kind: FailureKind::NotFound,
        message: "the name has no address".to_owned(),
    }
}

/// The families by turns, each in its own order (RFC 8305 section 4, First Address Family Count 1)
fn interleaved(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut families: [Vec<SocketAddr>; 2] = [Vec::new(), Vec::new()];
    let mut first_is_ipv6 = None;
    for address in addresses {
        let preferred = *first_is_ipv6.get_or_insert(address.is_ipv6());
        let family = &mut families[usize::from(address.is_ipv6() != preferred)];
        if family.len() < MAX_ADDRESSES && !family.contains(&address) {
            family.push(address);
        }
    }
    let [first, second] = families;
    let longest = first.len().max(second.len());
    let by_turns = (0..longest).flat_map(|at| [first.get(at), second.get(at)]);
    by_turns.flatten().copied().take(MAX_ADDRESSES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V6: &str = "[2001:db8::1]:443";
    const V4: &str = "203.0.113.5:443";

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn race(addresses: &[&str]) -> HappyEyeballs {
        HappyEyeballs::new(addresses.iter().map(|text| address(text)))
    }

    fn order(addresses: &[&str]) -> Vec<String> {
        interleaved(addresses.iter().map(|text| address(text))).iter().map(ToString::to_string).collect()
    }

    fn ms(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn failure(kind: FailureKind) -> IoFailure {
        IoFailure { stage: Stage::Connect, kind, message: format!("{kind:?}") }
    }

    #[test]
    fn families_alternate_and_the_first_address_leads() {
        let [a6, b6, c6, a4, b4] = ["[::a]:1", "[::b]:1", "[::c]:1", "10.0.0.1:1", "10.0.0.2:1"];
        assert_eq!(order(&[a6, b6, c6, a4, b4]), [a6, a4, b6, b4, c6]);
        assert_eq!(order(&[a4, a6, b6, b4]), [a4, a6, b4, b6]);
        assert_eq!(order(&[a4, b4, a4, b4]), [a4, b4]);
        assert_eq!(order(&[a6]), [a6]);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn no_family_crowds_out_the_other() {
        let many: Vec<String> = (1..=100).map(|n| format!("[::{n:x}]:1")).chain([V4.to_owned()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let order = order(&many);
        assert_eq!(order.len(), MAX_ADDRESSES);
        assert_eq!(order[1], V4);
    }

    #[test]
    fn the_delay_is_within_what_the_rfc_recommends() {
        assert!((Duration::from_millis(100)..=Duration::from_secs(2)).contains(&ATTEMPT_DELAY));
    }

    #[test]
    fn l04_a_second_address_joins_after_the_delay_and_a_failure_ends_it() {
        let mut race = race(&[V6, V4, "203.0.113.6:443"]);
        assert_eq!(race.next(ms(0)), Next::Connect(address(V6)));
        assert_eq!(race.next(ms(0)), Next::Wait(Some(ms(250))));
        assert_eq!(race.next(ms(249)), Next::Wait(Some(ms(250))));
        assert_eq!(race.next(ms(250)), Next::Connect(address(V4)));
        assert_eq!(race.next(ms(250)), Next::Wait(Some(ms(500))));
        race.failed(address(V4), failure(FailureKind::Refused));
        assert_eq!(race.next(ms(260)), Next::Connect(address("203.0.113.6:443")));
        assert_eq!(race.next(ms(260)), Next::Wait(None));
    }

    #[test]
    fn a_late_driver_starts_one_attempt_at_a_time() {
        let mut race = race(&[V6, V4, "[2001:db8::2]:443"]);
        assert_eq!(race.next(ms(0)), Next::Connect(address(V6)));
        assert_eq!(race.next(ms(5_000)), Next::Connect(address(V4)));
        assert_eq!(race.next(ms(5_000)), Next::Wait(Some(ms(5_250))));
    }

    #[test]
    fn failures_are_not_waited_for_and_all_of_them_end_it() {
        let mut race = race(&[V6, V4]);
        assert_eq!(race.next(ms(0)), Next::Connect(address(V6)));
        race.failed(address(V6), failure(FailureKind::Unreachable));
        assert_eq!(race.next(ms(1)), Next::Connect(address(V4)));
        assert_eq!(race.next(ms(1)), Next::Wait(None));
        race.failed(address(V4), failure(FailureKind::Refused));
        let Next::Failed(told) = race.next(ms(2)) else { panic!() };
        assert_eq!((told.stage, told.kind), (Stage::Connect, FailureKind::Refused));
        assert_eq!(told.message, "203.0.113.5:443: Refused (and 1 more of the host's addresses failed)");
    }

    #[test]
    fn the_failure_that_tells_most_is_told_and_of_equals_the_first() {
        use FailureKind::{Other, Refused, Reset, Unreachable};
        for (first, second, told) in [
            (Unreachable, Refused, Refused),
            (Refused, Unreachable, Refused),
            (Unreachable, Other, Other),
            (Reset, Refused, Reset),
        ] {
            let mut race = race(&[V6, V4]);
            race.next(ms(0));
            race.failed(address(V6), failure(first));
            race.next(ms(0));
            race.failed(address(V4), failure(second));
            assert!(matches!(race.next(ms(0)), Next::Failed(IoFailure { kind, .. }) if kind == told));
        }
    }

    #[test]
    fn one_address_alone_is_told_alone_and_none_is_a_failed_look_up() {
        let mut alone = race(&[V4]);
        alone.next(ms(0));
        alone.failed(address(V4), failure(FailureKind::Refused));
        assert!(
            matches!(alone.next(ms(0)), Next::Failed(failure) if failure.message == "203.0.113.5:443: Refused")
        );
        assert_eq!(race(&[]).next(ms(0)), Next::Failed(no_address()));
    }

    #[test]
    fn every_wait_is_for_something() {
        let mut race = race(&[V6, V4, "[::2]:1", "10.0.0.1:1"]);
        let mut now = ms(0);
        let mut connects = 0;
        loop {
            match race.next(now) {
                Next::Connect(_) => connects += 1,
                Next::Wait(Some(due)) => {
                    assert!(due > now);
                    now = due;
                }
                Next::Wait(None) => break,
                Next::Failed(failure) => panic!("{failure}"),
            }
        }
        assert_eq!((connects, now), (4, ms(750)));
    }
}
