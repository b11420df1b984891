//! Chance, out of the printed seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The random numbers of one actor: what it draws depends on the seed and its name alone, not on what others do meanwhile.
#[derive(Debug)]
pub struct Rng(StdRng);

impl Rng {
    pub fn new(seed: u64, actor: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, actor).hash(&mut hasher);
        Self(StdRng::seed_from_u64(hasher.finish()))
    }

    /// One of these.
    pub fn number(&mut self, range: RangeInclusive<i64>) -> i64 {
        self.0.random_range(range)
    }

    /// A span between these, in seconds.
    pub fn seconds(&mut self, from: f64, to: f64) -> Duration {
        Duration::from_secs_f64(self.0.random_range(from..=to))
    }

    /// Whether it happens, with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.0.random_range(0..from.len())]
    }

    /// One of them, the more often the larger its weight.
    pub fn weighted<T: Copy>(&mut self, from: &[(u32, T)]) -> T {
        let total: u32 = from.iter().map(|(weight, _)| weight).sum();
        let mut point = self.0.random_range(0..total);
        for (weight, item) in from {
            match point.checked_sub(*weight) {
                Some(rest) => point = rest,
                None => return *item,
            }
        }
        from[0].1
    }

    /// Some of them, each with this probability.
    pub fn some<T: Clone>(&mut self, from: &[T], probability: f64) -> Vec<T> {
        from.iter().filter(|_| self.0.random_bool(probability)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_actor_draw_the_same() {
        let draws = |seed, actor: &str| {
            let mut rng = Rng::new(seed, actor);
            (0..20).map(|_| rng.number(0..=1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, "a"), draws(1, "a"));
        assert_ne!(draws(1, "a"), draws(2, "a"));
        assert_ne!(draws(1, "a"), draws(1, "b"));
    }

    #[test]
    fn weights_count() {
        let mut rng = Rng::new(1, "x");
        let draws: Vec<char> = (0..1000).map(|_| rng.weighted(&[(9, 'a'), (1, 'b'), (0, 'c')])).collect();
        let count = |wanted| draws.iter().filter(|drawn| **drawn == wanted).count();
        assert!((50..200).contains(&count('b')) && count('c') == 0, "{} {}", count('b'), count('c'));
    }
}
