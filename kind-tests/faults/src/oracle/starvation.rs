//! How long this machine lets threads wait for a processor, as the kernel counts it.
//!
//! A timer and a request of the soak's own show when all of it stands still. That one thread of an agent, or one of the threads that
//! serve the API servers in memory, waits for seconds beside busy neighbours is known to the kernel alone.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

/// What a thread waits within this time is added up: a probe, which consists of several steps, must be complete after it
/// (probeTimeout).
const SPAN: Duration = Duration::from_secs(2);

/// The waits of all threads of some processes.
#[derive(Debug, Default)]
pub struct Starvation {
    threads: HashMap<PathBuf, Waits>,
}

impl Starvation {
    /// Looks at the threads of these processes: the longest that one of them has waited lately.
    pub fn look(&mut self, processes: impl Iterator<Item = u32>, now: Instant) -> Duration {
        let mut seen = HashMap::new();
        for thread in processes.flat_map(threads) {
            let Some(total) = waited(&thread) else { continue };
            let mut waits = self.threads.remove(&thread).unwrap_or_else(|| Waits::new(total));
            waits.take(total, now);
            seen.insert(thread, waits);
        }
        self.threads = seen;
        self.threads.values().map(Waits::lately).max().unwrap_or_default()
    }
}

fn threads(process: u32) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"));
    folder.into_iter().flatten().filter_map(|thread| Some(thread.ok()?.path())).collect()
}

/// For how long a thread has been ready to run and did not, so far. None when it has ended, or the kernel does not count.
fn waited(thread: &std::path::Path) -> Option<Duration> {
    let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(Duration::from_nanos(text.split_whitespace().nth(1)?.parse().ok()?))
}

/// What one thread has waited. The kernel counts a wait when it is over.
#[derive(Debug)]
struct Waits {
    total: Duration,
    lately: VecDeque<(Instant, Duration)>,
}

impl Waits {
    fn new(total: Duration) -> Self {
        Self { total, lately: VecDeque::new() }
    }

    fn take(&mut self, total: Duration, now: Instant) {
        self.lately.push_back((now, total.saturating_sub(self.total)));
        self.total = total;
        while self.lately.front().is_some_and(|(at, _)| now - *at >= SPAN) {
            self.lately.pop_front();
        }
    }

    fn lately(&self) -> Duration {
        self.lately.iter().map(|(_, wait)| *wait).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_added_up_for_two_seconds() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut waits = Waits::new(ms(5000));
        waits.take(ms(5000), begin);
        assert_eq!(waits.lately(), ms(0), "what was before does not count");
        waits.take(ms(5300), begin + ms(100));
        waits.take(ms(8300), begin + ms(1000));
        assert_eq!(waits.lately(), ms(3300));
        waits.take(ms(8310), begin + ms(2200));
        assert_eq!(waits.lately(), ms(3010));
        waits.take(ms(8310), begin + ms(4500));
        assert_eq!(waits.lately(), ms(0));
    }

    #[test]
    fn the_threads_of_a_process_are_found() {
        let own = std::process::id();
        let mut starvation = Starvation::default();
        starvation.look(std::iter::once(own), Instant::now());
        let found = starvation.threads.len();
        assert!(found >= 1 && starvation.look(std::iter::empty(), Instant::now()) == Duration::ZERO);
        assert!(starvation.threads.is_empty(), "processes that are no longer named are forgotten");
    }
}
