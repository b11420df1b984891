//! Waiting for what should become true. No scenario sleeps for a fixed time.

use std::time::Duration;

use anyhow::{Result, anyhow};
use api_server::PATIENCE;
use tokio::time::{Instant, sleep, timeout_at};

/// How often a condition is checked. Short against the seconds that scenarios take, long against
/// a request on loopback.
const PAUSE: Duration = Duration::from_millis(50);
/// How much longer than the deadline a check that has begun may take. Requests on a busy machine
/// take a second at times.
const LAST_CHECK: Duration = Duration::from_secs(5);

/// Checks again and again until `check` succeeds; after [`PATIENCE`] fails with what was awaited
/// and what was last seen instead. A check that never ends is dropped a little later.
pub async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_within(what, PATIENCE, check).await
}

/// [`eventually`] where it matters how long it takes.
pub async fn eventually_within<T>(
    what: &str,
    deadline: Duration,
    mut check: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut seen = anyhow!("nothing");
    loop {
        match timeout_at(end + LAST_CHECK, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => seen = error,
            Err(_) => seen = seen.context("the last check did not end; before that"),
        }
        if Instant::now() >= end {
            return Err(seen.context(format!("not within {deadline:?}: {what}; last seen")));
        }
        sleep(PAUSE).await;
    }
}
