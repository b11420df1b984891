//! The words in which the core's tests speak: moments and looks in seconds, leases in known states.

use chrono::{DateTime, TimeDelta, Utc};

use super::lease::{Grace, LeaseBook, LeaseRecord, LeaseState};
use super::moment::{Look, Moment};

/// Kubernetes' default before 1.32, with which a lease expires after 30 s.
pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));

/// When [`book`]'s leases are in their states.
pub const JUDGED: f64 = 100.0;

/// A span of so many seconds, to the microsecond, as Kubernetes' own stamps.
pub fn span(seconds: f64) -> TimeDelta {
    TimeDelta::microseconds((seconds * 1e6).round() as i64)
}

/// The moment so many seconds after the process began.
pub fn at(seconds: f64) -> Moment {
    Moment::since_start(span(seconds))
}

/// What a clock that agrees with ours says at that moment.
pub fn wall(seconds: f64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).expect("a calendar date") + span(seconds)
}

/// A look that is answered at once.
pub fn look(seconds: f64) -> Look {
    Look { sent: at(seconds), received: at(seconds), wall: wall(seconds) }
}

/// A kubelet's lease with this stamp.
pub fn lease(name: &str, renewed: f64) -> LeaseRecord<'_> {
    LeaseRecord { name, renew_time: Some(wall(renewed)), duration_seconds: Some(40) }
}

/// Leases that are in these states at [`JUDGED`].
pub fn book<'a>(leases: impl IntoIterator<Item = (&'a str, LeaseState)>) -> LeaseBook {
    let leases: Vec<_> = leases.into_iter().collect();
    let shown = |renewed: fn(LeaseState) -> Option<f64>| {
        leases.iter().filter_map(move |(name, state)| Some(lease(name, renewed(*state)?)))
    };
    let mut book = LeaseBook::default();
    book.observe(&look(0.0), shown(|state| (state != LeaseState::Undecided).then_some(-0.5)), GRACE);
    book.observe(&look(10.0), shown(|state| (state != LeaseState::Undecided).then_some(9.5)), GRACE);
    let last = |state| match state {
        LeaseState::Valid => Some(JUDGED - 5.0),
        LeaseState::Expired => Some(9.5),
        LeaseState::Undecided => Some(0.0),
    };
    book.observe(&look(JUDGED), shown(last), GRACE);
    book
}
