//! One deletion of one pod, and how it went.

use std::time::Duration;

use common::change::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: Key,
    /// Which of all pods of that name: the DELETE holds for no other (D-43).
    pub uid: String,
    /// Which state of it: in another one it may have got well (D-43).
    pub resource_version: String,
    /// The UID of the pod's controller.
    pub owner: String,
    /// The serial numbers of the windows that count it (D-46) and did not before.
    pub charged: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Deleted,
    /// There was no such pod any more, or another one under its name. That is as good.
    Gone,
    /// The pod is not as it was when it was judged: the watch shows how it is.
    Changed,
    /// It did not happen and can be retried, not before this time if one is given.
    Later(Option<Duration>),
    /// It may have happened, and can be retried.
    Unknown,
    /// It is refused until somebody grants it or stops to forbid it.
    Refused,
}

/// The wait after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait without the API server's asking for it: short against a watchDuration of minutes.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest wait that the API server may ask for, as the prober's.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The wait before the next retry, after so many failures in a row.
pub fn wait(failures: u32, retry_after: Option<Duration>) -> Duration {
    match retry_after {
        Some(asked) => asked.min(MAX_RETRY_AFTER),
        None => FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_WAIT),
    }
}

/// The wait after so many failures in a row, the last of which was a refusal. Nothing ends that but a person: each try is a 403 and an
/// error in the log, seven for a pod in the usual window of 5 minutes.
pub fn wait_refused(failures: u32) -> Duration {
    MAX_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits: Vec<u128> = (1..=7).map(|failures| wait(failures, None).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(wait(u32::MAX, None), MAX_WAIT);
    }

    #[test]
    fn waits_after_refusals_double_up_to_a_minute() {
        let waits: Vec<u64> = (1..=5).map(|failures| wait_refused(failures).as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 60, 60]);
        assert_eq!(wait_refused(u32::MAX), MAX_RETRY_AFTER);
    }

    #[test]
    fn the_api_server_may_ask_for_another_wait_up_to_a_minute() {
        assert_eq!(wait(1, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(wait(9, Some(Duration::from_secs(3600))), Duration::from_secs(60));
    }
}
