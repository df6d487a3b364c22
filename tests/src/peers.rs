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

/// A file of the official SDKs that `tests/run` installs; where it is missing that is a skip, or with CI set a
/// failure
pub fn sdk(path: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let file = cache.join("steadfast-peers/sdks").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "with CI set there has to be {}", file.display());
    println!("skipped: 1 (no official SDKs: tests/run installs them)");
    None
}
