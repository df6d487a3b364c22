//! See [`steadfast_fuzz::call_operations`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(call_operations);
