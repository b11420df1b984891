//! Exponential backoff.

use std::time::Duration;

/// Delay after `failures` in a row: `first` after the first, doubling up to `longest`.
pub fn doubling(first: Duration, failures: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_however_many_failures() {
        let waits = [0, 1, 2, 3, 4, u32::MAX].map(|failures| {
            doubling(Duration::from_secs(1), failures, Duration::from_secs(5)).as_secs()
        });
        assert_eq!(waits, [1, 1, 2, 4, 5, 5]);
    }
}
