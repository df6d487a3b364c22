//! When to try again, and after how long.
