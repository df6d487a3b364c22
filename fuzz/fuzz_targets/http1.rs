//! See [`steadfast_fuzz::http1`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(http1);
