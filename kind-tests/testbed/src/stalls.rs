//! When this machine stood still, and what is tried again for it. A virtual one may get no
//! processor for seconds, in which the times of every program run out.

use std::sync::Once;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// How often the clock is read.
const INTERVAL: Duration = Duration::from_millis(100);
/// A stall that counts: as long as what the scenarios leave between a leader's renew deadline and
/// the end of its Lease.
const LONG: Duration = Duration::from_secs(2);
/// How often something is tried at most.
const ATTEMPTS: u32 = 3;

/// When the last stall ended.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Does something; once more where it fails and this machine stood still meanwhile for longer than
/// any program could make up for.
pub async fn tolerating_stalls<T>(act: impl AsyncFn() -> Result<T>) -> Result<T> {
    static OBSERVER: Once = Once::new();
    OBSERVER.call_once(|| drop(std::thread::spawn(observe)));
    for _ in 1..ATTEMPTS {
        let begin = Instant::now();
        let error = match act().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        // A stall that has just ended is noticed a moment later.
        sleep(INTERVAL * 2).await;
        if LAST.lock().is_none_or(|end| end < begin) {
            return Err(error);
        }
        eprintln!("This machine stood still. Once more after: {error:#}");
    }
    act().await
}

/// Observes the clock for as long as the process lives. A thread of its own is late only where the
/// machine is.
fn observe() {
    let mut last = Instant::now();
    loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "it runs beside the runtime, not on it"
        )]
        std::thread::sleep(INTERVAL);
        let now = Instant::now();
        if now - last > INTERVAL + LONG {
            *LAST.lock() = Some(now);
        }
        last = now;
    }
}
