//! One outage of one shoot, from the moment from which it is beyond doubt until it no longer is.

use std::time::Duration;

use tokio::time::Instant;

/// An outage.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// Since when it is beyond doubt.
    pub began: Instant,
    /// When it was last beyond doubt.
    pub last: Instant,
    /// Whether nothing was wrong for a while before.
    pub clean: bool,
    /// When kube-controller-manager would give the first node up.
    pub first_end: Option<Instant>,
    /// When all was at 0 first.
    pub safe_at: Option<Instant>,
    /// How late this machine was until then.
    pub lag: Duration,
}

/// How an outage was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// All was at 0 before the first node's end.
    InTime,
    /// It was, but later.
    Late,
    /// Not all was, and complete answers could be had for too short a time.
    Unknowable,
}

impl Episode {
    /// How it was met.
    pub fn met(&self) -> Met {
        match (self.safe_at, self.first_end) {
            (Some(safe), Some(end)) if safe <= end => Met::InTime,
            (Some(_), _) => Met::Late,
            (None, _) => Met::Unknowable,
        }
    }

    /// From its being beyond doubt to all being at 0.
    pub fn latency(&self) -> Option<Duration> {
        Some(self.safe_at?.saturating_duration_since(self.began))
    }
}
