//! Calls recorded in memory, and whether each replays (INV-9).

use std::sync::{Arc, Mutex, PoisonError};

use steadfast::call::Request;
use steadfast::trace::{Finish, Memory, Recorder, Trace};

/// Records calls in memory; its clones are one
///
/// A call that was made under any driver, on sockets or under virtual time, is a pure function of what
/// the driver told it. So a new call that is told the same takes the same steps, byte for byte.
///
/// ```
/// use steadfast_scenario::find;
/// use steadfast_sim::{Sim, Traces, request};
///
/// let scenario = find("status-503-then-200").expect("a scenario of that name");
/// let traces = Traces::default();
/// Sim::new(&scenario.script).traces(&traces).play(request(scenario), &scenario.call);
/// assert_eq!(traces.differences(1), Vec::<String>::new());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Traces(Arc<Mutex<Vec<Memory>>>);

impl Traces {
    /// The most bytes of one trace, past which a call is recorded no further
    pub const MAX_BYTES: u64 = 1 << 20;

    /// A recorder for one more call
    pub fn recorder(&self) -> Recorder {
        let memory = Memory::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory.clone());
        Recorder::new(memory).max_bytes(Self::MAX_BYTES)
    }

    /// What gives a client of any adapter a recorder for each of its calls
    pub fn recorders(&self) -> impl Fn(&Request) -> Option<Recorder> + Send + Sync + 'static {
        let traces = self.clone();
        move |_| Some(traces.recorder())
    }

    /// The traces, in the order in which their calls were made
    pub fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Memory::bytes).collect()
    }

    /// Where the traces of calls that are over do not replay, and whether there are as many as `calls`
    pub fn differences(&self, calls: u32) -> Vec<String> {
        let traces = self.all();
        let differences = (0..).zip(&traces).filter_map(|(number, trace)| {
            let found = difference(trace)?;
            Some(format!("trace {number}: {found}"))
        });
        let mut differences: Vec<String> = differences.collect();
        if traces.len() != calls as usize {
            differences.push(format!("{} traces of {calls} calls", traces.len()));
        }
        differences
    }
}

fn difference(trace: &[u8]) -> Option<String> {
    let trace = match Trace::read(trace) {
        Ok(trace) => trace,
        Err(error) => return Some(error.to_string()),
    };
    let replay = trace.replay(|_, _| {});
    match (replay.difference, trace.finish()) {
        (Some(difference), _) => Some(format!("{difference:?}")),
        (None, Finish::Whole | Finish::Truncated) => None,
        (None, Finish::Cut) => Some("it was cut".to_owned()),
    }
}
