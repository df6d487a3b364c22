//! How many retries the calls of a client may make together (rule RTY-9).

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Instant;

/// What a [`RetryBudget`] allows; the defaults are those of Finagle and of `tower`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetSettings {
    /// How many retries a hundred calls may make
    pub percent: u32,
    /// How many retries a second are allowed besides, so that a client of few calls may retry at all
    pub min_per_second: u32,
    /// The time over which both are counted, in whole seconds
    pub window_seconds: NonZeroU32,
}

impl RetryBudgetSettings {
    /// A fifth of the calls
    pub const PERCENT: u32 = 20;

    /// Ten a second
    pub const MIN_PER_SECOND: u32 = 10;

    /// Ten seconds
    pub const WINDOW_SECONDS: NonZeroU32 = NonZeroU32::new(10).expect("it is not zero");
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self {
            percent: Self::PERCENT,
            min_per_second: Self::MIN_PER_SECOND,
            window_seconds: Self::WINDOW_SECONDS,
        }
    }
}

/// What is left for the retries of a client's calls: each call pays in, each retry takes out
///
/// So a server that fails for all is not asked three times as much by all, and one that fails for few is
/// asked again. It holds back retries only, never a call's first attempt. What was paid in or taken out is
/// forgotten after the window, a tenth of it at a time.
///
/// It is shared by the calls of a client, and no part of any: a call asks for what it needs by
/// [`Command::Retry`](crate::call::Command::Retry), and its driver asks here.
///
/// ```
/// use steadfast::retry::{RetryBudget, RetryBudgetSettings};
/// use steadfast::time::Instant;
///
/// let settings = RetryBudgetSettings { percent: 50, min_per_second: 0, ..RetryBudgetSettings::default() };
/// let mut budget = RetryBudget::new(settings);
/// let now = Instant::ORIGIN;
/// budget.deposit(now);
/// assert!(!budget.withdraw(now), "half a retry is none");
/// budget.deposit(now);
/// assert!(budget.withdraw(now));
/// assert!(!budget.withdraw(now));
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    settings: RetryBudgetSettings,
    /// Paid in, less what was taken out, in each tenth of the window; in hundredths of a retry
    slots: [i64; SLOTS],
    /// The number of the latest tenth, since the origin of time
    latest: u64,
}

const SLOTS: usize = 10;

/// Hundredths
const RETRY: i64 = 100;

impl RetryBudget {
    /// A budget into which nothing was paid yet
    pub fn new(settings: RetryBudgetSettings) -> Self {
        Self { settings, slots: [0; SLOTS], latest: 0 }
    }

    /// A call begins
    pub fn deposit(&mut self, now: Instant) {
        let amount = i64::from(self.settings.percent);
        let slot = self.slot(now);
        *slot = slot.saturating_add(amount);
    }

    /// Takes out one retry, if there is one
    pub fn withdraw(&mut self, now: Instant) -> bool {
        let RetryBudgetSettings { min_per_second, window_seconds, .. } = self.settings;
        let reserve = i64::from(min_per_second).saturating_mul(window_seconds.get().into());
        self.slot(now);
        let paid_in = self.slots.iter().fold(0, |sum: i64, slot| sum.saturating_add(*slot));
        let is_there = paid_in.saturating_add(reserve.saturating_mul(RETRY)) >= RETRY;
        if is_there {
            let slot = self.slot(now);
            *slot = slot.saturating_sub(RETRY);
        }
        is_there
    }

    /// The tenth of the window that `now` lies in; those that have left the window are emptied
    ///
    /// A time before the latest counts as the latest.
    fn slot(&mut self, now: Instant) -> &mut i64 {
        let tenth = Duration::from_secs(self.settings.window_seconds.get().into()) / SLOTS as u32;
        let number = now.since_origin().as_nanos() / tenth.as_nanos();
        let number = u64::try_from(number).unwrap_or(u64::MAX).max(self.latest);
        for passed in (self.latest + 1..=number).take(SLOTS) {
            self.slots[(passed % SLOTS as u64) as usize] = 0;
        }
        if number - self.latest >= SLOTS as u64 {
            self.slots = [0; SLOTS];
        }
        self.latest = number;
        &mut self.slots[(number % SLOTS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(millis)
    }

    fn budget(percent: u32, min_per_second: u32) -> RetryBudget {
        RetryBudget::new(RetryBudgetSettings { percent, min_per_second, ..RetryBudgetSettings::default() })
    }

    fn taken(budget: &mut RetryBudget, now: Instant) -> usize {
        (0..1_000).take_while(|_| budget.withdraw(now)).count()
    }

    #[test]
    fn a_fifth_of_the_calls_and_ten_a_second() {
        let mut budget = RetryBudget::new(RetryBudgetSettings::default());
        for _ in 0..50 {
            budget.deposit(at(0));
        }
        assert_eq!(taken(&mut budget, at(500)), 10 * 10 + 50 / 5);
        assert!(!budget.withdraw(at(9_999)));
        // What was taken out is forgotten when what was paid in is.
        assert_eq!(taken(&mut budget, at(10_500)), 100);
    }

    #[test]
    fn without_a_reserve_only_calls_pay() {
        let mut budget = budget(100, 0);
        assert!(!budget.withdraw(at(0)));
        budget.deposit(at(0));
        budget.deposit(at(5_000));
        assert_eq!(taken(&mut budget, at(9_999)), 2);
        let mut unused = self::budget(100, 0);
        unused.deposit(at(0));
        assert!(!unused.withdraw(at(10_000)), "it was paid in too long ago");
    }

    #[test]
    fn time_that_goes_back_or_far_ahead_is_no_trouble() {
        let mut budget = budget(100, 0);
        budget.deposit(at(60_000));
        budget.deposit(at(0));
        assert_eq!(taken(&mut budget, at(30_000)), 2);
        budget.deposit(Instant::from_nanos(u64::MAX));
        assert_eq!(taken(&mut budget, Instant::from_nanos(u64::MAX)), 1);
    }

    proptest! {
        /// Against every payment kept with its time
        #[test]
        fn no_more_is_taken_out_than_was_paid_in_within_the_window(
            steps in prop::collection::vec((0_u64..2_000, any::<bool>()), 0..200),
        ) {
            let mut budget = budget(30, 0);
            let (mut now, mut paid): (u64, Vec<(u64, i64)>) = (0, Vec::new());
            for (pause, is_call) in steps {
                now += pause;
                paid.retain(|(when, _)| when / 1_000 + 10 > now / 1_000);
                let sum: i64 = paid.iter().map(|(_, amount)| amount).sum();
                if is_call {
                    budget.deposit(at(now));
                    paid.push((now, 30));
                } else {
                    prop_assert_eq!(budget.withdraw(at(now)), sum >= 100);
                    if sum >= 100 {
                        paid.push((now, -100));
                    }
                }
            }
        }
    }
}
