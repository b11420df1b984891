//! Durations in Go's spelling.

use common::go_compat::duration::GoDuration;

/// What is read is what plain arithmetic says, and is read again as it is written.
pub fn check(text: &str) {
    match text.parse::<GoDuration>() {
        Ok(read) => {
            assert_eq!(read.to_string().parse(), Ok(read), "{text:?} is written as {read}");
            let (nanos, parts) = arithmetic(text);
            // Go rounds each part's fraction in a float64.
            let off = (i128::from(read.as_nanos()) - nanos).abs();
            assert!(off <= parts, "{text:?}: {} instead of {nanos}", read.as_nanos());
        }
        Err(refusal) => super::must_be_one_line(&refusal.to_string()),
    }
}

/// The nanoseconds of a text that is a duration, cut off part by part, and the number of its parts.
fn arithmetic(text: &str) -> (i128, i128) {
    let mut rest = text.trim_start_matches(['+', '-']);
    let (mut total, mut parts) = (0, 0);
    while !rest.is_empty() && rest != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').expect("a unit follows");
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unit => panic!("{unit:?} is no unit"),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().expect("digits, fewer than 39 that are not 0") };
        // 20 digits are more than a nanosecond of an hour needs.
        let fraction: String = fraction.chars().chain("0".repeat(20).chars()).take(20).collect();
        total += whole * unit + fraction.parse::<i128>().expect("20 digits") * unit / 10_i128.pow(20);
        parts += 1;
        rest = after;
    }
    (if text.starts_with('-') { -total } else { total }, parts)
}
