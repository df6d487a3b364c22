//! The third-party data in `../shared`, which a stranger's clone does not have.

use std::path::{Path, PathBuf};

/// The path of `name` in the folder of shared data, if it is there
///
/// Where it is not, one line says so, and the test that asked has nothing to check. With `CI` set
/// a missing folder is a failure.
///
/// # Panics
///
/// With `CI` set, if the data is missing.
pub fn path(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs ../shared, and {} is missing", path.display());
    println!("skipped: 1 (no ../shared/{name} beside this clone)");
    None
}
