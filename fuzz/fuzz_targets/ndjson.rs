//! See [`steadfast_fuzz::ndjson`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(ndjson);
