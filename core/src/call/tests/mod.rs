//! Calls played at exact instants.
