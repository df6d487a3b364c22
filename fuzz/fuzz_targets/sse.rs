//! See [`steadfast_fuzz::sse`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(sse);
