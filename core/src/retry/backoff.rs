//! How long to wait before the next attempt: exponential backoff with full jitter.

use std::time::Duration;

use fastrand::Rng;

/// The curve of the pauses between attempts (rule RTY-3)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest pause after the first attempt; it doubles with each further one
    pub base: Duration,
    /// What the doubling stops at
    pub cap: Duration,
}

impl Backoff {
    /// The longest pause after the first attempt, by default
    pub const BASE: Duration = Duration::from_secs(1);
    /// The longest pause after any attempt, by default
    pub const CAP: Duration = Duration::from_secs(60);

    /// The pause after attempt number `attempt`, from 1, has failed
    ///
    /// `floor` is what the server asked for, and `left` what remains of the total deadline. Without
    /// a floor the pause is U(0,1) * min(base * 2^(attempt - 1), cap). With one it is the floor and,
    /// on top, U(0,1) * min(that backoff, half of what is left after the floor): a server's word is
    /// never cut short, and the callers it told the same do not come back together.
    ///
    /// One number is drawn from `rng`, whatever the result. `None` where the pause would not end
    /// before the deadline (rule RTY-4), and for a floor of [`Duration::MAX`], which is too long.
    pub fn pause(
        &self,
        rng: &mut Rng,
        attempt: u32,
        floor: Option<Duration>,
        left: Option<Duration>,
    ) -> Option<Duration> {
        let random = if planted!(PauseDrawnFromAddress) {
            (std::ptr::from_ref(rng).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        } else {
            rng.u64(..)
        };
        let left = left.unwrap_or(Duration::MAX);
        let backoff = self.ceiling(attempt);
        let pause = match floor {
            None => scale(backoff, random),
            Some(floor) if planted!(RetryAfterIsCeiling) => scale(backoff.min(floor), random),
            Some(floor) => {
                let ceiling = backoff.min(left.saturating_sub(floor) / 2);
                floor.saturating_add(scale(ceiling, random))
            }
        };
        (pause < left || planted!(PauseSleptPastDeadline)).then_some(pause)
    }

    fn ceiling(&self, attempt: u32) -> Duration {
        let doublings = if planted!(BackoffOneStepAhead) { attempt } else { attempt.saturating_sub(1) };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Self::BASE, cap: Self::CAP }
    }
}

/// `ceiling` * `random` / 2^64, in whole numbers, so that every platform has the same result
fn scale(ceiling: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
    let scaled = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { base: Backoff::BASE, cap: Backoff::CAP };

    fn pauses(attempt: u32, floor: Option<Duration>, left: Option<Duration>) -> Vec<Option<Duration>> {
        (0..1000).map(|seed| BACKOFF.pause(&mut Rng::with_seed(seed), attempt, floor, left)).collect()
    }

    fn distinct(pauses: &[Duration]) -> usize {
        let mut sorted = pauses.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len()
    }

    #[test]
    fn j20_backoff_has_full_jitter() {
        for (attempt, ceiling) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (33, 60), (u32::MAX, 60)] {
            let ceiling = Duration::from_secs(ceiling);
            let pauses: Vec<Duration> = pauses(attempt, None, None).into_iter().map(Option::unwrap).collect();
            assert!(pauses.iter().all(|pause| *pause < ceiling));
            assert_eq!(distinct(&pauses), 1000);
            let mean = pauses.iter().sum::<Duration>().as_secs_f64() / 1000.0 / ceiling.as_secs_f64();
            assert!((0.47..0.53).contains(&mean), "the mean of U(0,1) is a half, not {mean}");
        }
    }

    #[test]
    fn j01_jitter_only_lengthens_what_the_server_asked_for() {
        let floor = Duration::from_secs(7);
        let pauses: Vec<Duration> =
            pauses(3, Some(floor), Some(Duration::from_secs(900))).into_iter().map(Option::unwrap).collect();
        assert!(pauses.iter().all(|pause| *pause >= floor && *pause < floor + Duration::from_secs(4)));
        assert_eq!(distinct(&pauses), 1000);
    }

    #[test]
    fn jitter_on_a_floor_takes_half_of_the_budget_left_at_most() {
        let (floor, left) = (Duration::from_secs(7), Duration::from_secs(8));
        let pauses: Vec<Duration> =
            pauses(6, Some(floor), Some(left)).into_iter().map(Option::unwrap).collect();
        assert!(pauses.iter().all(|pause| *pause >= floor && *pause < Duration::from_millis(7500)));
        assert!(pauses.iter().any(|pause| *pause > Duration::from_millis(7490)));
    }

    #[test]
    fn j07_a_pause_must_end_before_the_deadline() {
        let second = Duration::from_secs(1);
        let mut rng = Rng::with_seed(7);
        assert_eq!(BACKOFF.pause(&mut rng, 1, Some(Duration::from_secs(45)), Some(second * 28)), None);
        assert_eq!(BACKOFF.pause(&mut rng, 1, Some(second), Some(second)), None);
        assert_eq!(BACKOFF.pause(&mut rng, 1, None, Some(Duration::ZERO)), None);
        assert_eq!(BACKOFF.pause(&mut rng, 1, Some(Duration::MAX), None), None);
        let fitting = pauses(1, None, Some(second / 2));
        assert!(fitting.iter().flatten().all(|pause| *pause < second / 2));
        let share = fitting.iter().flatten().count();
        assert!((450..550).contains(&share), "half of U(0,1) s ends within 0.5 s, not {share} of 1000");
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses() {
        let run = |left| {
            let mut rng = Rng::with_seed(42);
            [1, 2, 3].map(|attempt| BACKOFF.pause(&mut rng, attempt, None, left))
        };
        let unbounded = run(None);
        assert_eq!(unbounded, run(None));
        assert_eq!(run(Some(Duration::ZERO)), [None; 3]);
        // A pause that does not fit draws its number all the same.
        let mut rng = Rng::with_seed(42);
        assert_eq!(BACKOFF.pause(&mut rng, 1, None, Some(Duration::ZERO)), None);
        assert_eq!(BACKOFF.pause(&mut rng, 2, None, None), unbounded[1]);
    }
}
