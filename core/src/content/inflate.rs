//! DEFLATE (RFC 1951), perhaps in its zlib wrapper (RFC 1950), over miniz_oxide.
//!
//! This is the layer under flate2, which is not used itself: at a fault its stream drops up to a
//! window of bytes that were decoded before it, how many depends on how the input was split.

use std::ops::Range;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// How far back a copy may reach (RFC 1951 2)
const WINDOW_BYTES: usize = 32 << 10;

/// Inflates one stream of data after another
pub(super) struct Inflater {
    state: Box<DecompressorOxide>,
    /// The bytes decoded last, in a ring
    window: Box<[u8]>,
    /// Where in the window the next byte goes
    at: usize,
    /// The stream has filled the window once: before that, what lies behind `at` is not its own
    filled: bool,
    /// What of the window has not been taken
    ready: Range<usize>,
    flags: u32,
}

/// Where inflating stopped
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the end of the input
    Input,
    /// At the end of the window, which must be taken first
    Window,
    /// At the end of the data
    End,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self {
            state: Box::default(),
            window: vec![0; WINDOW_BYTES].into_boxed_slice(),
            at: 0,
            filled: false,
            ready: 0..0,
            flags: TINFL_FLAG_HAS_MORE_INPUT,
        }
    }

    #[cfg(test)]
    pub(super) fn heap_bytes() -> usize {
        size_of::<DecompressorOxide>() + WINDOW_BYTES
    }

    /// Makes ready for another stream of data, once nothing is ready of the one before
    pub(super) fn restart(&mut self, zlib: bool) {
        self.state.init();
        (self.at, self.filled, self.ready) = (0, false, 0..0);
        self.flags = TINFL_FLAG_HAS_MORE_INPUT | if zlib { TINFL_FLAG_PARSE_ZLIB_HEADER } else { 0 };
    }

    /// What was inflated and not taken
    pub(super) fn ready(&self) -> &[u8] {
        &self.window[self.ready.clone()]
    }

    /// Moves what is ready to `output`, as far as it goes; returns how many bytes
    pub(super) fn take(&mut self, output: &mut [u8]) -> usize {
        let count = self.ready.len().min(output.len());
        output[..count].copy_from_slice(&self.ready()[..count]);
        self.ready.start += count;
        count
    }

    /// Inflates on, once nothing is ready; returns how many bytes of `input` were used, and where it
    /// stopped, or what is wrong
    ///
    /// There may be bytes ready after a fault as well.
    pub(super) fn run(&mut self, input: &[u8]) -> (usize, Result<Stop, &'static str>) {
        debug_assert!(self.ready.is_empty(), "what is ready is taken first");
        if self.at == self.window.len() {
            (self.at, self.filled) = (0, true);
        }
        // With it, a copy from before the beginning of the data is a fault.
        let first_round = if self.filled { 0 } else { TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF };
        let (status, used, written) =
            decompress(&mut self.state, input, &mut self.window, self.at, self.flags | first_round);
        self.ready = self.at..self.at + written;
        self.at += written;
        let stop = match status {
            TINFLStatus::NeedsMoreInput => Ok(Stop::Input),
            TINFLStatus::HasMoreOutput => Ok(Stop::Window),
            TINFLStatus::Done => Ok(Stop::End),
            TINFLStatus::Adler32Mismatch => Err("the checksum does not fit the data"),
            TINFLStatus::Failed | TINFLStatus::FailedCannotMakeProgress | TINFLStatus::BadParam | _ => {
                Err("not valid deflate data")
            }
        };
        (used, stop)
    }
}
