//! What calls were told and what they did: as their traces, and as a digest of these.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast::trace::Recorder;

/// What is kept of all calls
#[derive(Debug, Default)]
pub(crate) struct Log(Option<Arc<Mutex<Kept>>>);

#[derive(Debug, Default)]
struct Kept {
    digest: Digest,
    /// The trace of each call, where they are wanted
    traces: Option<Vec<Vec<u8>>>,
}

impl Log {
    /// A log of a digest alone
    pub(crate) fn digesting() -> Self {
        Self(Some(Arc::default()))
    }

    /// A log of a digest and of every trace
    pub(crate) fn of_traces() -> Self {
        Self(Some(Arc::new(Mutex::new(Kept { traces: Some(Vec::new()), ..Kept::default() }))))
    }

    /// A recorder for one more call; `None` where nothing is kept
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        let kept = self.0.as_ref()?;
        let mut locked = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let call = locked.traces.as_mut().map_or(0, |traces| {
            traces.push(Vec::new());
            traces.len() - 1
        });
        Some(Recorder::new(Line { kept: Arc::clone(kept), call }))
    }

    pub(crate) fn digest(&self) -> Option<Digest> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).digest)
    }

    /// The traces so far, in the order in which their calls were made
    pub(crate) fn traces(&self) -> Vec<Vec<u8>> {
        let Some(kept) = &self.0 else { return Vec::new() };
        kept.lock().unwrap_or_else(PoisonError::into_inner).traces.clone().unwrap_or_default()
    }
}

/// Takes the lines of one call
struct Line {
    kept: Arc<Mutex<Kept>>,
    call: usize,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.digest.bytes(bytes);
        if let Some(trace) = kept.traces.as_mut().and_then(|traces| traces.get_mut(self.call)) {
            trace.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A number that stands for the text of all traces: the same on every platform
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }
}

impl Digest {
    pub(crate) fn number(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// The number
    pub fn value(self) -> u64 {
        self.0
    }
}

/// Sixteen hexadecimal digits
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
