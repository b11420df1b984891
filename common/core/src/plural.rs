//! Counts in sentences.

/// What follows a word that is counted: an `s`, unless there is one.
pub const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
