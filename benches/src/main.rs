//! Benchmarks of steadfast.
fn main() {}
