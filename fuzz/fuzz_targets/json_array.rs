//! See [`steadfast_fuzz::json_array`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(json_array);
