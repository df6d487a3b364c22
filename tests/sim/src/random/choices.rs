//! The numbers that a plan is drawn from.

use fastrand::Rng;

/// A tape of numbers: drawn from a seed as they are asked for, or given
///
/// Each number says which of several possibilities is taken, and zero is always the simplest. Past
/// the end of a given tape there are only zeros, so a shorter tape, or one of smaller numbers, is a
/// simpler plan: that is how a failing one shrinks.
#[derive(Clone, Debug)]
pub struct Choices<'t> {
    source: Source<'t>,
    /// What was drawn, where that is asked for
    tape: Option<Vec<u32>>,
}

#[derive(Clone, Debug)]
enum Source<'t> {
    Seed(Rng),
    Tape(std::slice::Iter<'t, u32>),
}

impl Choices<'static> {
    /// Numbers drawn from `seed`
    pub fn from_seed(seed: u64) -> Self {
        Self { source: Source::Seed(Rng::with_seed(seed)), tape: None }
    }
}

impl<'t> Choices<'t> {
    /// The numbers of `tape`, then zeros
    pub fn from_tape(tape: &'t [u32]) -> Self {
        Self { source: Source::Tape(tape.iter()), tape: None }
    }

    /// The same, with what is drawn kept for [`Choices::into_tape`]
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.tape = Some(Vec::new());
        self
    }

    /// What was drawn since [`Choices::recorded`]; empty without it
    pub fn into_tape(self) -> Vec<u32> {
        self.tape.unwrap_or_default()
    }

    /// A number below `count`, or zero where that is zero
    #[inline]
    pub fn below(&mut self, count: u32) -> u32 {
        let count = count.max(1);
        let drawn = match &mut self.source {
            Source::Seed(rng) => rng.u32(0..count),
            Source::Tape(tape) => tape.next().copied().unwrap_or(0) % count,
        };
        if let Some(tape) = &mut self.tape {
            tape.push(drawn);
        }
        drawn
    }

    /// Whether something happens that does so once in `times`
    #[inline]
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) + 1 == times
    }

    /// One of these, the first of which is the simplest
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// The place of one of these weights, each as likely as it is heavy
    ///
    /// # Panics
    ///
    /// If all are zero.
    #[inline]
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (place, weight) in weights.iter().enumerate() {
            if at < *weight {
                return place;
            }
            at -= weight;
        }
        panic!("weights that are all zero");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_tape_draws_the_same_again() {
        let draw = |choices: &mut Choices<'_>| {
            (choices.below(7), choices.one_in(3), choices.pick(&[1, 2, 3]), choices.weighted(&[5, 1, 4]))
        };
        for seed in 0..100 {
            let mut choices = Choices::from_seed(seed).recorded();
            let drawn = draw(&mut choices);
            let tape = choices.into_tape();
            assert_eq!(tape.len(), 4);
            assert_eq!(draw(&mut Choices::from_tape(&tape)), drawn);
        }
    }

    #[test]
    fn past_its_end_a_tape_holds_the_simplest_of_everything() {
        let mut choices = Choices::from_tape(&[]);
        assert_eq!(choices.below(9), 0);
        assert!(!choices.one_in(2));
        assert_eq!(choices.pick(&["first", "second"]), "first");
        assert_eq!(choices.weighted(&[1, 9]), 0);
    }
}
