//! x
pub enum Class {}
