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
/// What the lease clock may be off by beyond a beat when clocks differ (D-21).
pub const TOLERANCE: Duration = Duration::from_secs(1);

/// The lease of a node that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTruth {
    /// Since when it was not renewed.
    pub silent: Duration,
    /// As much of that as is evidence of an outage: all, but where the API server was away for the
    /// node too (D-54).
    pub evident: Duration,
    /// Whether the node's clock differs or differed lately, so that its stamps cannot be taken at
    /// their word.
    pub skewed: bool,
    /// For how long somebody has been watching it without a break.
    pub watched: Duration,
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
    /// How many leases count, and how many of them may be expired.
    pub counted: usize,
    pub silent: usize,
}

/// Judges the leases that count, for a shoot with this grace period.
pub fn judge(leases: &[LeaseTruth], grace: Duration) -> Judgement {
    let (threshold, beat) = (grace * 3 / 4, grace / 4);
    let margin = |lease: &LeaseTruth| {
        if lease.skewed {
            beat + TOLERANCE + BLUR
        } else {
            BLUR
        }
    };
    let expired =
        |so: &dyn Fn(&LeaseTruth) -> bool| leases.iter().filter(|lease| so(lease)).count();
    let maybe = |silence: Duration, lease: &LeaseTruth| silence + margin(lease) >= threshold;
    // Who began to watch a skewed lease late cannot know how long it had been silent before.
    let known = |silence: Duration, lease: &LeaseTruth| {
        if lease.skewed {
            silence.min(lease.watched).saturating_sub(beat)
        } else {
            silence
        }
    };
    let surely =
        |silence: Duration, lease: &LeaseTruth| known(silence, lease) >= threshold + margin(lease);
    // What is no evidence of an outage is none of health either.
    let (maybe_silent, surely_silent) = (
        expired(&|lease| maybe(lease.silent, lease)),
        expired(&|lease| surely(lease.silent, lease)),
    );
    let judgement = match leases.len() {
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
        count => {
            let fails = |expired: usize| expired as f64 / count as f64 >= FRACTION;
            Judgement {
                may_down: fails(expired(&|lease| maybe(lease.evident, lease))),
                may_up: !fails(surely_silent),
                must_down: fails(expired(&|lease| surely(lease.evident, lease))),
                must_up: !fails(maybe_silent),
                ..Judgement::default()
            }
        }
    };
    Judgement {
        counted: leases.len(),
        silent: maybe_silent,
        ..judgement
    }
}
