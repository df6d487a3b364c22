//! See [`steadfast_fuzz::content`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(content);
