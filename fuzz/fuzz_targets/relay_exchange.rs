//! See [`steadfast_fuzz::relay_exchange`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(relay_exchange);
