//! The commands of the book and the README, as they stand there.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::repository;

/// The folders of the pages.
const FOLDERS: [&str; 3] = [".", "docs", "docs/run-books"];
/// What begins the name of an alert's run-book.
const RUN_BOOK: &str = "DependencyWatchdog";
/// Programs whose commands may stand within the text.
const PROGRAMS: [&str; 2] = ["kubectl", "dependency-watchdog"];

/// What pages tell people to run, by page and in order: blocks of shell, and commands within the text.
/// A run-book is called as its alert, others by their path.
///
/// # Errors
/// When a page cannot be read, or there are too few to be true.
pub fn blocks() -> Result<BTreeMap<String, Vec<String>>> {
    let mut pages = BTreeMap::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(repository::path(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(page) = name.strip_suffix(".md") else {
                continue;
            };
            let page = match page.strip_prefix(RUN_BOOK) {
                Some(alert) => alert.to_owned(),
                None => format!("{folder}/{page}").replacen("./", "", 1),
            };
            let text = repository::text(&format!("{folder}/{name}"))?;
            pages.insert(page, blocks_of(&text));
        }
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
            let words: Vec<_> = span.split_whitespace().collect();
            if words.len() > 1 && PROGRAMS.contains(&words[0]) {
                blocks.push(words.join(" "));
            }
        }
    }
    blocks
}

/// The commands of a block. One goes on where a line ends within quotes, in a loop or with a
/// backslash.
pub fn commands(block: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    for line in block.lines() {
        let command = commands.last_mut().into_iter();
        command.for_each(|command| command.extend([line, "\n"]));
        let command = commands.last().map_or("", |command| command.trim());
        let is_open = command.ends_with('\\')
            || command.matches('\'').count() % 2 == 1
            || command.contains("; do") && !command.ends_with("done");
        if !is_open {
            commands.push(String::new());
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// A command, or where it searches for several patterns, one for each: each is to find something.
pub fn searches(command: &str) -> Vec<String> {
    let Some((before, search)) = command.split_once("| grep ") else {
        return vec![command.to_owned()];
    };
    let (flag, pattern) = match search.strip_prefix("-i ") {
        Some(pattern) => ("-i ", pattern),
        None => ("", search),
    };
    let quoted = pattern.strip_prefix('\'');
    let end = if quoted.is_some() { '\'' } else { '\n' };
    let patterns = quoted.unwrap_or(pattern).split(end).next();
    let patterns = patterns.unwrap_or_default().split("\\|");
    let search = |pattern: &str| format!("{before}| grep {flag}'{pattern}'");
    patterns.map(search).collect()
}
