//! How many connections the system lets the relay have open.

/// What is open beside connections: the listener, the standard streams, the runtime's own, the database, and
/// connections that are about to be refused
#[cfg(unix)]
const OTHERS: u64 = 64;

/// How many connections of apps may be open: `max_apps`, or as many as leave room for `max_connections` to
/// providers, of which half the room at most is kept for these
///
/// Raises the limit on open descriptors as far as the system lets it, and says where that is not enough.
/// Many systems start a program with room for 1024, for those that still use `select`.
#[cfg(unix)]
pub(super) fn room_for_apps(max_connections: Option<usize>, max_apps: Option<usize>) -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised =
        current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let Some(allowed) = (if raised { maximum } else { current }) else { return max_apps };
    let room = usize::try_from(allowed.saturating_sub(OTHERS)).unwrap_or(usize::MAX);
    let for_apps = room.saturating_sub(max_connections.unwrap_or(usize::MAX)).max(room / 2);
    if max_apps.is_some_and(|most| for_apps < most) {
        crate::message::say(format_args!(
            "the system allows {allowed} open files: connections of apps past {for_apps} are refused; raise `ulimit -n`"
        ));
    }
    Some(max_apps.unwrap_or(usize::MAX).min(for_apps))
}

/// There is no such limit
#[cfg(windows)]
pub(super) fn room_for_apps(_: Option<usize>, max_apps: Option<usize>) -> Option<usize> {
    max_apps
}
