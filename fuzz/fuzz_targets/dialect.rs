//! See [`steadfast_fuzz::dialect`].
#![cfg_attr(feature = "libfuzzer", no_main)]

steadfast_fuzz::target!(dialect);
