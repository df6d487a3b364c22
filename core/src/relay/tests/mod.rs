//! The exchange, told what an app and a provider do.

mod keys;
mod limits;
mod passing;
mod progress;
mod resends;
mod rig;
mod splits;
