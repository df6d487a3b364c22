//! The models that answers name, as far as metrics tell them apart.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The most models of answers that metrics tell apart in one process, but for those that were asked for
///
/// Each is a series of its own for as long as the process lives, and it is the provider who names them.
pub const MAX_MODELS: usize = 128;

/// The longest name of a model in an answer that metrics take for a label, in bytes
pub const MAX_MODEL_BYTES: usize = 128;

/// What stands for all others, as in the conventions
const OTHER: &str = "_OTHER";

/// The models that answers have named
pub(crate) struct Models(Mutex<BTreeSet<String>>);

impl Models {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// What to call a model that an answer names
    pub(crate) fn label<'a>(&self, model: &'a str) -> &'a str {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(model) {
            return model;
        }
        if known.len() >= MAX_MODELS || model.len() > MAX_MODEL_BYTES {
            return OTHER;
        }
        known.insert(model.to_owned());
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_names_a_new_model_each_time_makes_no_endless_series() {
        let models = Models::new();
        let name = |number: usize| format!("model-{number}");
        for number in 0..MAX_MODELS {
            assert_eq!(models.label(&name(number)), name(number));
        }
        for number in MAX_MODELS..3 * MAX_MODELS {
            assert_eq!(models.label(&name(number)), OTHER);
        }
        assert_eq!(models.label(&name(0)), name(0), "what was told before still is");
    }

    #[test]
    fn a_name_without_measure_is_none() {
        let models = Models::new();
        let [longest, longer] = [MAX_MODEL_BYTES, MAX_MODEL_BYTES + 1].map(|length| "x".repeat(length));
        assert_eq!([models.label(&longest), models.label(&longer)], [&longest, OTHER]);
    }
}
