//! Who acts by chance, out of the printed seed, until the round is over.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio::time::timeout;

/// The random numbers of one actor: what it draws depends on the seed and its name alone, not on
/// what others do meanwhile.
pub fn rng(seed: u64, actor: &str) -> StdRng {
    let mut hasher = DefaultHasher::new();
    (seed, actor).hash(&mut hasher);
    StdRng::seed_from_u64(hasher.finish())
}

/// Who acts.
pub struct Actor {
    pub rng: StdRng,
    over: watch::Receiver<bool>,
}

impl Actor {
    pub fn new(seed: u64, name: &str, over: watch::Receiver<bool>) -> Self {
        Self {
            rng: rng(seed, name),
            over,
        }
    }

    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Whether it happens, with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    /// A span between these, in seconds.
    pub fn seconds(&mut self, range: RangeInclusive<f64>) -> Duration {
        Duration::from_secs_f64(self.rng.random_range(range))
    }

    /// One of them.
    pub fn pick<T>(&mut self, from: impl IntoIterator<Item = T>) -> T {
        from.into_iter()
            .choose(&mut self.rng)
            .expect("there is a choice")
    }

    /// Waits, but no longer than until the round is over.
    pub async fn pause(&mut self, time: Duration) {
        timeout(time, self.over.wait_for(|over| *over)).await.ok();
    }

    /// The same for a span between these, in seconds.
    pub async fn wait(&mut self, range: RangeInclusive<f64>) {
        let time = self.seconds(range);
        self.pause(time).await;
    }
}
