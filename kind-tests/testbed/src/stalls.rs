//! When this machine stood still, and what is tried again for it. A virtual one may get no
//! processor for seconds, in which the times of every program run out.

use std::sync::Once;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How often the clock is read.
const INTERVAL: Duration = Duration::from_millis(100);
/// A stall that counts: as long as what the scenarios leave between a leader's renew deadline and
/// the end of its Lease.
const LONG: Duration = Duration::from_secs(2);

/// How often something is tried at most.
const ATTEMPTS: u32 = 3;

tokio::task_local! {
    /// Which try it is.
    static ATTEMPT: u32;
}

static STALLS: Mutex<Stalls> = Mutex::new(Stalls {
    observed_until: None,
    stalls: Vec::new(),
});

struct Stalls {
    observed_until: Option<Instant>,
    /// When each ended, and how long it was.
    stalls: Vec<(Instant, Duration)>,
}

/// A name for something that a try may leave behind when it fails: another one in the next try.
pub fn unique(name: &str) -> String {
    match ATTEMPT.try_get() {
        Ok(attempt) if attempt > 1 => format!("{name}-{attempt}"),
        _ => name.to_owned(),
    }
}

/// Does something; once more where it fails and this machine stood still meanwhile for longer than
/// any program could make up for.
pub async fn tolerating_stalls<T>(act: impl AsyncFn() -> Result<T>) -> Result<T> {
    static OBSERVER: Once = Once::new();
    let now = Instant::now();
    OBSERVER.call_once(|| drop(std::thread::spawn(move || observe(now))));
    for attempt in 1..ATTEMPTS {
        let begin = Instant::now();
        let error = match ATTEMPT.scope(attempt, act()).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let Some(stall) = longest_since(begin).await else {
            return Err(error);
        };
        eprintln!("This machine stood still for {stall:.1?}. Once more after: {error:#}");
    }
    ATTEMPT.scope(ATTEMPTS, act()).await
}

/// Observes the clock for as long as the process lives. A thread of its own is late only where the
/// machine is.
fn observe(mut last: Instant) {
    loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "it runs beside the runtime, not on it"
        )]
        std::thread::sleep(INTERVAL);
        let now = Instant::now();
        let mut log = STALLS.lock();
        log.observed_until = Some(now);
        if now - last > INTERVAL + LONG {
            log.stalls.push((now, now - last));
        }
        last = now;
    }
}

/// The longest that has ended since then.
async fn longest_since(begin: Instant) -> Option<Duration> {
    let now = Instant::now();
    // One that has just ended is known a moment later.
    while STALLS.lock().observed_until <= Some(now) {
        tokio::time::sleep(INTERVAL).await;
    }
    let log = STALLS.lock();
    let stalls = log.stalls.iter().filter(|(end, _)| *end >= begin);
    stalls.map(|(_, long)| *long).max()
}
