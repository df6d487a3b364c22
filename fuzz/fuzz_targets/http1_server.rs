//! See [`steadfast_fuzz::http1_server`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(http1_server);
