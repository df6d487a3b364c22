//! Those who watch a run of a tool loop.

use steadfast::call::Request;
use steadfast::chat::{LoopObservation, LoopObserver, LoopWork};

use super::ToolLoop;

/// The observers of one run; the first is around the others
#[derive(Default)]
pub(super) struct Observers(Vec<Box<dyn LoopObserver>>);

impl Observers {
    /// Those that a loop has for a run that begins with this request
    pub(super) fn of(tool_loop: &ToolLoop, request: &Request) -> Self {
        Self(tool_loop.observers.iter().filter_map(|observers| observers(request)).collect())
    }

    pub(super) fn observe(&mut self, seen: &LoopObservation<'_>) {
        for observer in &mut self.0 {
            observer.observe(seen);
        }
    }

    /// Does a piece of the loop's work under what they put in force for it
    pub(super) fn around<T>(&mut self, work: LoopWork, act: impl FnOnce() -> T) -> T {
        if self.0.is_empty() {
            return act();
        }
        let (mut act, mut done) = (Some(act), None);
        nested(&mut self.0, work, &mut || done = act.take().map(|act| act()));
        done.expect("an observer does the work that it is around")
    }
}

fn nested(observers: &mut [Box<dyn LoopObserver>], work: LoopWork, act: &mut dyn FnMut()) {
    match observers.split_first_mut() {
        None => act(),
        Some((first, rest)) => first.around(work, &mut || nested(rest, work, act)),
    }
}
