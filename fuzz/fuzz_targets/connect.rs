//! See [`steadfast_fuzz::connect`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(connect);
