//! See [`steadfast_fuzz::simulated_calls`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(simulated_calls);
