//! How many connections the system lets the relay have open.

/// What is open beside connections: the listener, the standard streams, the runtime's own
#[cfg(unix)]
const OTHERS: u64 = 64;

/// Raises the limit on open descriptors as far as the system lets it, and says where that is not enough for
/// `max_connections` to providers and as many apps
///
/// Many systems start a program with room for 1024, for those that still use `select`.
#[cfg(unix)]
pub(super) fn raise_limit(max_connections: Option<usize>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised =
        current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let Some(room) = (if raised { maximum } else { current }) else { return };
    if max_connections.is_some_and(|most| room.saturating_sub(OTHERS) / 2 < most as u64) {
        crate::message::say(format_args!(
            "the system allows {room} open files: calls past {} wait to be accepted; raise `ulimit -n`",
            room.saturating_sub(OTHERS) / 2
        ));
    }
}

/// There is no such limit
#[cfg(windows)]
pub(super) fn raise_limit(_: Option<usize>) {}
