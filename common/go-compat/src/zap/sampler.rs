//! Leaves out most of many equal lines, so that a storm of them neither fills a disk nor hides the
//! rest.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many equal lines of one second are written (zap's production setting, rule 9).
const FIRST: u64 = 100;

/// After those, every hundredth is written.
const THEREAFTER: u64 = 100;

/// The most different lines counted within a second; any further ones are written. zap counts in as
/// many slots.
const COUNTED: usize = 4096;

/// Counts the lines of the current second by what is equal in them: level and message.
#[derive(Default)]
pub struct Sampler {
    second: i64,
    seen: HashMap<u64, u64>,
}

impl Sampler {
    /// Whether this line of that second (since 1970) is to be written.
    pub fn admits(&mut self, second: i64, line: impl Hash) -> bool {
        if second != self.second {
            self.second = second;
            self.seen.clear();
        }
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let line = hasher.finish();
        if self.seen.len() >= COUNTED && !self.seen.contains_key(&line) {
            return true;
        }
        let count = self.seen.entry(line).or_default();
        *count += 1;
        *count <= FIRST || (*count - FIRST).is_multiple_of(THEREAFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(sampler: &mut Sampler, second: i64, line: (&str, &str), lines: u64) -> usize {
        (0..lines).filter(|_| sampler.admits(second, line)).count()
    }

    #[test]
    fn the_first_hundred_and_then_every_hundredth_equal_line_of_a_second_pass() {
        let mut sampler = Sampler::default();
        assert_eq!(admitted(&mut sampler, 1, ("info", "a"), 100), 100);
        assert_eq!(admitted(&mut sampler, 1, ("info", "a"), 99), 0);
        assert_eq!(admitted(&mut sampler, 1, ("info", "a"), 1), 1);
        assert_eq!(admitted(&mut sampler, 1, ("info", "a"), 1000), 10);
    }

    #[test]
    fn other_messages_other_levels_and_the_next_second_count_for_themselves() {
        let mut sampler = Sampler::default();
        assert_eq!(admitted(&mut sampler, 1, ("info", "a"), 150), 100);
        assert_eq!(admitted(&mut sampler, 1, ("info", "b"), 50), 50);
        assert_eq!(admitted(&mut sampler, 1, ("error", "a"), 50), 50);
        assert_eq!(admitted(&mut sampler, 2, ("info", "a"), 50), 50);
    }

    #[test]
    fn what_it_counts_is_bounded() {
        let mut sampler = Sampler::default();
        let admitted = (0..10_000).filter(|n| sampler.admits(1, n)).count();
        assert_eq!((admitted, sampler.seen.len()), (10_000, COUNTED));
    }
}
