//! The files of the repository that are under test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file or folder of the repository.
pub fn path(relative: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(relative)
}

/// The text of a file of the repository.
///
/// # Errors
/// When it cannot be read.
pub fn text(relative: &str) -> Result<String> {
    std::fs::read_to_string(path(relative)).with_context(|| format!("cannot read {relative}"))
}
