//! See [`steadfast_fuzz::retry_after`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(retry_after);
