//! What scripts say on a machine that lacks something.

use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::repository;
use crate::tools::system;

#[test]
fn a_script_names_what_is_missing_and_how_to_get_it() -> Result<()> {
    let programs = TempDir::new()?;
    for name in ["sh", "bash", "dirname", "id", "grep", "find"] {
        symlink(system(name, "coreutils")?, programs.path().join(name))?;
    }
    let cases = [
        (
            "kind-tests/nodes/run",
            77,
            "containerd (apt-get install containerd)",
        ),
        ("deploy/image", 1, "apt-get install buildah"),
    ];
    for (script, code, said) in cases {
        let output = Command::new(repository::path(script))
            .env("PATH", programs.path())
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code) && text.contains(said),
            "{script}: {}: {text}",
            output.status
        );
    }
    Ok(())
}
