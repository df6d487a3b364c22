//! Other people's programs, which `tests/run` installs, and a plain `cargo test` makes do without.

use std::path::PathBuf;

/// A file of a peer that `tests/peers/install` has installed, if it has
///
/// Where it has not, one line says so, and the test that asked has nothing to check. With `CI` set that
/// is a failure.
///
/// # Panics
///
/// With `CI` set, if it is missing.
pub fn path(peer: &str, file: &str) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let path = cache.map(|cache| cache.join("steadfast-peers").join(peer).join(file));
    if let Some(path) = path.filter(|path| path.exists()) {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "with CI set the peer {peer} has to be there: {file} is missing"
    );
    println!("skipped: 1 (no peer {peer}: tests/run installs it)");
    None
}
