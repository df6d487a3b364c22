//! Records on a disk that is full for a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{ConfigFile, Provider, Serving};
use crate::support::{run, steadfast};

/// A file system of 1 MiB in memory, which goes with the test
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where the test may not mount one
    fn mount() -> Option<Self> {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("small-disk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&folder).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(folder));
        }
        _ = std::fs::remove_dir(&folder);
        assert!(
            std::env::var_os("CI").is_none(),
            "with CI set the tests have to be allowed to mount a tmpfs"
        );
        println!("skipped: 1 (no right to mount a tmpfs)");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
        _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn calls_go_on_drops_are_told_and_recording_resumes_once_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let file = disk.0.join("calls.db");
    let provider = Provider::new();
    let text = format!("[recording]\ndatabase = {file:?}\n[upstream.openai]\nurl = {:?}\n", provider.url);
    let config = ConfigFile::new("small-disk", &text);
    let relay = Serving::start(&["--config", config.path()]);
    let other = disk.0.join("other");
    std::fs::write(&other, vec![1; 512 << 10]).expect("there is room for it");
    // Records of more than all of the disk
    let long = "x".repeat(8_000);
    for number in 0..150 {
        relay.pass(&provider, &format!("/openai/v1/{number}/{long}"));
    }
    std::fs::remove_file(&other).expect("our file");
    let calls = || run(steadfast(&["calls", "--json", "--database"]).arg(&file)).stdout;
    let mut after = 0;
    while !calls().contains("/openai/v1/after/") {
        relay.pass(&provider, &format!("/openai/v1/after/{after}"));
        after += 1;
        assert!(after < 1_000, "it never resumes");
    }
    let ended = relay.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(ended.said.contains(" parts of records were dropped: the records: "), "{}", ended.said);
    assert!(ended.said.contains("full"), "{}", ended.said);
}
