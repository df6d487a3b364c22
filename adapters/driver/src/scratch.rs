//! The read buffers that all calls on a thread share, so that an idle one holds none.

use std::cell::RefCell;

/// The size of one read, in bytes
pub const SCRATCH_BYTES: usize = 16 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// The most buffers that a thread keeps for later: plain and cipher bytes of a call within a call
const MAX_SPARE: usize = 4;

/// Calls `with` with a buffer of [`SCRATCH_BYTES`]
///
/// The buffer is taken and put back, not borrowed: a callback may drive another call meanwhile.
pub(crate) fn with<R>(with: impl FnOnce(&mut [u8]) -> R) -> R {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    let mut buffer = spare.unwrap_or_else(|| vec![0; SCRATCH_BYTES].into_boxed_slice());
    let result = with(&mut buffer);
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < MAX_SPARE {
            spare.push(buffer);
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_nest_and_are_reused() {
        let first = with(|outer| {
            let inner = with(|inner| inner.as_ptr());
            assert_ne!(outer.as_ptr(), inner);
            outer.as_ptr()
        });
        assert_eq!(with(|again| again.as_ptr()), first);
    }
}
