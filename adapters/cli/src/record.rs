//! `--record`: a call's trace in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::Path;

use steadfast_tokio::{Bodies, Recorder, Recording};

use crate::message::say;
use crate::usage::UsageError;

/// What records a call in a new file at `path`, or over the one that is there
///
/// Errors: the file cannot be written.
pub(crate) fn recorder(path: &Path, bodies: Bodies) -> Result<Recorder, UsageError> {
    let file = create(path).map_err(|error| UsageError::Unwritable {
        path: path.display().to_string(),
        error: error.to_string(),
    })?;
    Ok(Recorder::new(BufWriter::new(file)).bodies(bodies))
}

/// Says where the trace is not whole, though the call is over
pub(crate) fn report(recording: &Recording) {
    match recording {
        Recording::Whole | Recording::UnderWay => {}
        Recording::Truncated { max_bytes } => {
            say(format_args!(
                "the trace came to its bound of {max_bytes} bytes, and lacks the rest of the call"
            ));
        }
        Recording::Failed(error) => say(error),
    }
}

/// A trace holds what was said: nobody else need read it
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // The mode above is for a new file only; and a device is not ours to close to others.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}
