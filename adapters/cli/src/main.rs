//! The program `steadfast`.
fn main() {}
