//! Fuzz targets: bytes into every parser of the core, and operations into its call machine.
//!
//! Each target is a function of the bytes alone, in a file of its name, and panics where what it
//! asserts does not hold. It uses the public API only. The binaries of `cargo fuzz` call these
//! functions, and so does the test that replays the corpora, which needs nothing but the compiler.
//!
//! | target | what it asserts, beside that nothing panics |
//! |---|---|
//! | [`http1()`] | any split: the same parts; as hyper, wherever both come to an end |
//! | [`http1_request()`] | any split: the same requests; one passed on is the same request, and one only |
//! | [`http1_server()`] | what hyper's server takes too is the same request; nothing is taken that it refuses |
//! | [`sse()`] | any split: the same events; as sse-core |
//! | [`ndjson()`] | any split: the same events; as its rules, applied to the whole |
//! | [`json_array()`] | any split: the same events; as serde_json, wherever that reads an array |
//! | [`content()`] | any split and any room: the same bytes; as flate2, both ways |
//! | [`dialect()`] | any split: the same call; the deltas are the turn; framings and shapes agree |
//! | [`retry_after()`] | numbers as written; dates as httpdate has them |
//! | [`connect()`] | any split: the same tunnel; no credential is shown; no host slips into the request |
//! | [`call_operations()`] | the invariants of `design.md`, with a driver that does all but keep its contract |
//! | [`relay_exchange()`] | the invariants of the relay's exchange, with a driver that keeps its contract |
//! | [`simulated_calls()`] | the invariants of the simulator, with one that keeps it |

#[cfg(feature = "libfuzzer")]
#[doc(hidden)]
pub use libfuzzer_sys;

mod call_operations;
mod connect;
mod content;
mod dialect;
mod http1;
mod http1_request;
mod http1_server;
mod json_array;
mod ndjson;
mod reads;
mod relay_exchange;
mod retry_after;
mod simulated_calls;
mod sse;

pub use call_operations::call_operations;
pub use connect::connect;
pub use content::content;
pub use dialect::dialect;
pub use http1::http1;
pub use http1_request::http1_request;
pub use http1_server::http1_server;
pub use json_array::json_array;
pub use ndjson::ndjson;
pub use relay_exchange::relay_exchange;
pub use retry_after::retry_after;
pub use simulated_calls::simulated_calls;
pub use sse::sse;

/// A fuzz target
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its binary, its corpus and its dictionary
    pub name: &'static str,
    /// Its body
    pub run: fn(&[u8]),
}

/// Every target
pub const TARGETS: [Target; 13] = [
    Target { name: "call_operations", run: call_operations },
    Target { name: "connect", run: connect },
    Target { name: "content", run: content },
    Target { name: "dialect", run: dialect },
    Target { name: "http1", run: http1 },
    Target { name: "http1_request", run: http1_request },
    Target { name: "http1_server", run: http1_server },
    Target { name: "json_array", run: json_array },
    Target { name: "ndjson", run: ndjson },
    Target { name: "relay_exchange", run: relay_exchange },
    Target { name: "retry_after", run: retry_after },
    Target { name: "simulated_calls", run: simulated_calls },
    Target { name: "sse", run: sse },
];

/// The binary of a target: libFuzzer's with the feature `libfuzzer`, otherwise one that plays files
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(feature = "libfuzzer")]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::$name(data));

        #[cfg(not(feature = "libfuzzer"))]
        fn main() -> std::io::Result<()> {
            $crate::play_files($crate::$name)
        }
    };
}

/// Plays the files that the command line names
///
/// Errors: one cannot be read.
pub fn play_files(run: fn(&[u8])) -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        println!("{}", file.display());
        run(&std::fs::read(file)?);
    }
    Ok(())
}
