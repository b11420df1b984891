//! When this machine stood still. A virtual one may get no processor for seconds, in which the times of every program run out.

use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often the clock is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A stall that counts: as long as what the scenarios leave between a leader's renew deadline and the end of its Lease.
const LONG: Duration = Duration::from_secs(2);

static SEEN: Mutex<Seen> = Mutex::new(Seen { looked: None, stalls: Vec::new() });

struct Seen {
    looked: Option<Instant>,
    /// When each ended, and how long it was.
    stalls: Vec<(Instant, Duration)>,
}

/// Looks from now on, for as long as the process lives.
pub fn watch() {
    static BEGUN: Once = Once::new();
    let now = Instant::now();
    BEGUN.call_once(|| drop(std::thread::spawn(move || look(now))));
}

/// A thread of its own is late only where the machine is.
fn look(mut last: Instant) {
    loop {
        #[expect(clippy::disallowed_methods, reason = "it runs beside the runtime, not on it")]
        std::thread::sleep(LOOK);
        let now = Instant::now();
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        seen.looked = Some(now);
        if now - last > LOOK + LONG {
            seen.stalls.push((now, now - last));
        }
        last = now;
    }
}

/// The longest that has ended since then.
pub async fn longest_since(begin: Instant) -> Option<Duration> {
    let now = Instant::now();
    loop {
        // One that has just ended is known after the next look.
        tokio::time::sleep(LOOK).await;
        let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.looked > Some(now) {
            return seen.stalls.iter().filter(|(end, _)| *end >= begin).map(|(_, long)| *long).max();
        }
    }
}
