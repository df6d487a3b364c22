//! Plans for proptest.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use super::choices::Choices;
use super::plan::Plan;

/// The longest tape of a plan; past its end everything is the simplest
pub const MAX_TAPE: usize = 400;

/// Tapes of plans, which shrink to shorter ones and to zeros
pub fn tapes() -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 0..=MAX_TAPE)
}

/// Plans that shrink as the tape does from which they are drawn
///
/// ```
/// use proptest::prelude::*;
/// use steadfast_sim::random::{Simulator, plans};
///
/// proptest!(ProptestConfig::with_cases(20), |(plan in plans())| {
///     prop_assert_eq!(Simulator::new().play(&plan), Ok(()));
/// });
/// ```
pub fn plans() -> impl Strategy<Value = Plan> {
    tapes().prop_map(|tape| Plan::draw(&mut Choices::from_tape(&tape)))
}
