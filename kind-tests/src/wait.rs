//! Waiting for what should become true. No scenario sleeps for a fixed time.

use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep};

/// How often a condition is looked at. Short against the seconds that scenarios take, long against a request on loopback.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `look` succeeds; after `deadline` fails with what was awaited and what was last seen instead.
pub async fn eventually<T>(what: &str, deadline: Duration, mut look: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        match look().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= end => {
                return Err(anyhow!("not within {deadline:?}: {what}; last seen: {error:#}"));
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
