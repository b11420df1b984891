//! What a program has written to its log.

use std::path::Path;

use serde_json::Value;

/// The lines of a log that are JSON and contain `needle`.
pub fn lines(path: &Path, needle: &str) -> Vec<Value> {
    tail(path, usize::MAX, needle)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The last lines of a file that contain `needle`.
pub fn tail(path: &Path, lines: usize, needle: &str) -> String {
    let text = std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let found: Vec<&str> = text.lines().filter(|line| line.contains(needle)).collect();
    found[found.len().saturating_sub(lines)..].join("\n")
}
