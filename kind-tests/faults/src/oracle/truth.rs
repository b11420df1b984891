//! What the nodes really do, and what may or must follow from it. Pure.
//!
//! The oracle shares no code with the watchdog: it knows when each node really renewed its lease,
//! whatever the stamps say, and so can say at any moment whether a scale-down could be right, and
//! whether it would be wrong not to make one.

use std::time::Duration;

/// The share of expired leases from which on there is an outage (rule 22). 3 of 5 and 6 of 10
/// count.
const FRACTION: f64 = 0.6;
/// How far apart the oracle's and an API server's ideas of the moment of a renewal may be.
pub const BLUR: Duration = Duration::from_millis(250);

/// The lease of a node that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTruth {
    /// Since when it was not renewed.
    pub silent: Duration,
    /// As much of that as is evidence of an outage: all, but where the API server was away for the
    /// node too (D-54).
    pub evident: Duration,
}

/// What may and must be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// A scale-down can be right.
    pub may_down: bool,
    /// A scale-up can be right.
    pub may_up: bool,
    /// An outage beyond doubt.
    pub must_down: bool,
    /// No outage beyond doubt: what is at 0 is to be restored.
    pub must_up: bool,
}

/// Judges the leases that count, for a shoot with this grace period.
pub fn judge(leases: &[LeaseTruth], grace: Duration) -> Judgement {
    let threshold = grace * 3 / 4;
    // From when on a lease may be expired, and surely is.
    let (maybe, surely) = (threshold - BLUR, threshold + BLUR);
    let count = |is: &dyn Fn(&LeaseTruth) -> bool| leases.iter().filter(|lease| is(lease)).count();
    // What is no evidence of an outage is none of health either.
    let maybe_silent = count(&|lease| lease.silent >= maybe);
    let surely_silent = count(&|lease| lease.silent >= surely);
    match leases.len() {
        0 => Judgement {
            may_up: true,
            must_up: true,
            ..Judgement::default()
        },
        // A single candidate never leads to a scale-down, and holds back a scale-up unless its
        // lease is valid (D-20).
        1 => Judgement {
            may_up: surely_silent == 0,
            must_up: maybe_silent == 0,
            ..Judgement::default()
        },
        all => {
            let fails = |expired: usize| expired as f64 / all as f64 >= FRACTION;
            Judgement {
                may_down: fails(count(&|lease| lease.evident >= maybe)),
                may_up: !fails(surely_silent),
                must_down: fails(count(&|lease| lease.evident >= surely)),
                must_up: !fails(maybe_silent),
            }
        }
    }
}
