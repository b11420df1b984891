//! Parts of sentences.

/// Plural suffix of a counted noun.
pub const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Cuts off what is beyond so many bytes.
pub fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push_str("...");
    }
    text
}

/// Formats seconds in at most two units, as in `1h 5m`.
pub fn time_span(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let shown = [0, 59, 60, 3599, 3600, 86_399, 90_000].map(time_span);
        assert_eq!(
            shown,
            ["0s", "59s", "1m 0s", "59m 59s", "1h 0m", "23h 59m", "1d 1h"]
        );
    }
}
