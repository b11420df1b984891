//! How long this machine lets threads wait for a processor, as the kernel counts it.
//!
//! A timer and a request of the soak's own show when all of it stands still. That one thread of an
//! agent, or one of the threads that serve the API servers in memory, waits for seconds beside busy
//! neighbours is known to the kernel alone.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

/// What a thread waits within this time is added up: a probe, which consists of several steps, must
/// be complete after it (probeTimeout).
const SPAN: Duration = Duration::from_secs(2);

/// When the threads of some processes were measured lately, and how long each had waited until
/// then.
#[derive(Debug, Default)]
pub struct Starvation(HashMap<PathBuf, VecDeque<(Instant, Duration)>>);

impl Starvation {
    /// Measures the threads of these processes: the longest that one of them has waited lately.
    pub fn measure(&mut self, processes: impl Iterator<Item = u32>, now: Instant) -> Duration {
        let mut seen = HashMap::new();
        for thread in processes.flat_map(threads) {
            let Some(total) = waited(&thread) else {
                continue;
            };
            let mut waits = self.0.remove(&thread).unwrap_or_default();
            take(&mut waits, total, now);
            seen.insert(thread, waits);
        }
        self.0 = seen;
        self.0.values().map(lately).max().unwrap_or_default()
    }
}

fn threads(process: u32) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"));
    folder
        .into_iter()
        .flatten()
        .filter_map(|thread| Some(thread.ok()?.path()))
        .collect()
}

/// For how long a thread has been ready to run and did not, so far. None when it has ended, or the
/// kernel does not count.
fn waited(thread: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(Duration::from_nanos(
        text.split_whitespace().nth(1)?.parse().ok()?,
    ))
}

/// The kernel counts a wait when it is over, so the first one kept is the last one before the
/// span.
fn take(waits: &mut VecDeque<(Instant, Duration)>, total: Duration, now: Instant) {
    waits.push_back((now, total));
    while waits.get(1).is_some_and(|(at, _)| now - *at >= SPAN) {
        waits.pop_front();
    }
}

fn lately(waits: &VecDeque<(Instant, Duration)>) -> Duration {
    let [first, last] =
        [waits.front(), waits.back()].map(|wait| wait.map_or(Duration::ZERO, |(_, total)| *total));
    last.saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_added_up_for_two_seconds() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut waits = VecDeque::new();
        let measurements = [
            (0, 5000, 0),
            (100, 5300, 300),
            (1000, 8300, 3300),
            (2200, 8310, 3010),
            (4500, 8310, 0),
        ];
        for (at, total, expected) in measurements {
            take(&mut waits, ms(total), begin + ms(at));
            assert_eq!(
                lately(&waits),
                ms(expected),
                "at {at} ms; what was before the first measurement does not count"
            );
        }
    }
}
