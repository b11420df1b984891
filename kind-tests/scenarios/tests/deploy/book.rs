//! The commands of the book and the README, as they stand there.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::repository;
use crate::tools::shell;

/// What pages tell people to run, by page and in order: blocks of shell, and commands within the text.
/// A run-book is called as its alert, others by their path.
///
/// # Errors
/// When a page cannot be read, or there are too few to be true.
pub fn blocks() -> Result<BTreeMap<String, Vec<String>>> {
    let mut pages = BTreeMap::new();
    for file in shell("ls *.md docs/*.md docs/run-books/*.md", &[])?.lines() {
        let page = file.replace("docs/run-books/DependencyWatchdog", "");
        let page = page.trim_end_matches(".md").to_owned();
        pages.insert(page, blocks_of(&repository::text(file)?));
    }
    pages.retain(|_, blocks| !blocks.is_empty());
    ensure!(pages.len() > 30, "only {:?}", pages.keys());
    Ok(pages)
}

fn blocks_of(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    for (number, part) in page.split("```").enumerate() {
        if number % 2 == 1 {
            blocks.extend(part.strip_prefix("sh\n").map(str::to_owned));
            continue;
        }
        for span in part.split('`').skip(1).step_by(2) {
            if span.starts_with("kubectl ") || span.starts_with("dependency-watchdog ") {
                blocks.push(span.replace('\n', " "));
            }
        }
    }
    blocks
}

/// The commands of a block. One goes on where a line ends within quotes, in a loop or with a
/// backslash.
pub fn commands(block: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut command = String::new();
    for line in block.lines() {
        command.extend([line, "\n"]);
        let is_open = line.ends_with('\\')
            || command.matches('\'').count() % 2 == 1
            || command.contains("; do") && !line.ends_with("done");
        if !is_open {
            commands.push(std::mem::take(&mut command));
        }
    }
    commands
}

/// What a command searches for, if it does: several patterns, each of which is to find something.
pub fn patterns(command: &str) -> Vec<&str> {
    let Some((_, search)) = command.split_once("| grep ") else {
        return Vec::new();
    };
    let pattern = search.trim_start_matches("-i ");
    let end = if pattern.starts_with('\'') {
        '\''
    } else {
        '\n'
    };
    let mut quoted = pattern.trim_start_matches('\'').split(end);
    let patterns = quoted.next().unwrap_or_default().split("\\|");
    patterns.collect()
}
