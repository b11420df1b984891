//! Ends what a test process has started, however the test process itself ends.
//!
//! A panic runs destructors, SIGKILL, Ctrl-C and `exit` run none. So one small shell process stands
//! beside the test process and reads from a pipe which process groups and folders belong to it.
//! When the pipe closes, because the test process is gone, it kills the groups and removes the
//! folders. It has a process group of its own: Ctrl-C in a terminal does not reach it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result};
use parking_lot::Mutex;

const SCRIPT: &str = r#"
registered=
while read -r what value; do
  case $what in
    register) registered="$registered $value" ;;
    release) rest=; for group in $registered; do [ "$group" = "$value" ] || rest="$rest $group"; done; registered=$rest ;;
    folder) set -- "$@" "$value" ;;
  esac
done
for group in $registered; do kill -s KILL -- "-$group" 2>/dev/null; done
for folder; do rm -rf -- "$folder"; done
"#;

static PIPE: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
    let shell = Command::new("sh")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let pipe = shell.ok().and_then(|shell| shell.stdin);
    Mutex::new(pipe.expect("there is a shell"))
});

fn tell(line: &str) -> Result<()> {
    writeln!(PIPE.lock(), "{line}").context("the reaper is gone")
}

/// From now on this process group is killed when the test process ends.
pub fn register(group: i32) -> Result<()> {
    tell(&format!("register {group}"))
}

/// This process group has ended.
pub fn release(group: i32) {
    // Without a reaper there is nothing to be released from.
    let _ = tell(&format!("release {group}"));
}

/// A new folder, in memory where the machine has a memory file system; it goes with the test
/// process.
pub fn folder(name: &str) -> Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    let prefix = format!("dependency-watchdog-{name}-");
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix(&prefix);
    let folder = folder.tempdir_in(memory).or_else(|_| folder.tempdir())?;
    let folder = folder.keep();
    tell(&format!("folder {}", folder.display()))?;
    Ok(folder)
}
