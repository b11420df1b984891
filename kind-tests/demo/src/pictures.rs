//! The pictures of the README and the book that need no browser. `make pictures` writes them.

mod printed;
mod svg;
mod timeline;

use std::path::Path;

use anyhow::{Context, Result};

/// Draws the timeline of an outage, and the last screen of what an earlier run has printed, which is read from our standard input,
/// into a folder.
pub fn draw(folder: &Path) -> Result<()> {
    let text = std::io::read_to_string(std::io::stdin()).context("cannot read it")?;
    let pictures = [(timeline::FILE, timeline::draw()), (printed::FILE, printed::draw(&text)?)];
    for (name, picture) in pictures {
        let file = folder.join(name);
        std::fs::write(&file, picture).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
