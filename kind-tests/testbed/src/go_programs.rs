//! Programs that are built from Go modules, once per version, by the script `build` in a folder
//! beside this crate.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The folder with the programs, which are built first if this user's cache has none.
///
/// # Errors
/// When they cannot be built, for lack of Go, say.
pub fn built(folder: &str) -> Result<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let build = beside.join(folder).join("build");
    let output = Command::new(&build).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", build.display()))?;
    ensure!(output.status.success(), "{} failed", build.display());
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
