//! Plurals in sentences.

/// Plural suffix of a counted noun.
pub const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
