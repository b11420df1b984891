//! Moments to come by the leases, if nothing is renewed from now on.

use chrono::TimeDelta;

use super::lease::{Criteria, Grace, LeaseClock};
use super::moment::Moment;
use super::verdict::fails;

/// A probe this long after a lease's expiry finds it expired; timers may fire up to a millisecond
/// early.
const JUST_AFTER: TimeDelta = TimeDelta::milliseconds(1);
/// Time before kube-controller-manager marks a node at which the last write is sent: its pod needs
/// time to end.
const HEAD_START: TimeDelta = TimeDelta::seconds(3);

/// Returns the smallest number of expired leases with which `candidates` fail; `None` if they cannot
/// (one candidate never does).
fn failing_count(candidates: usize, fraction: f64) -> Option<usize> {
    (candidates >= 2)
        .then(|| (1..=candidates).find(|&count| fails(count, candidates, fraction)))
        .flatten()
}

/// Returns the earliest moment at which the verdict can fall.
///
/// With the candidates known it is when the k-th oldest of them expires, k being the smallest count
/// that fails. With only `leases` that machines allow known, any subset might be the candidates, so
/// it is when as many have expired as make two candidates fail: the nodes must be listed then.
pub(crate) fn verdict_possible<'a>(
    leases: impl IntoIterator<Item = &'a LeaseClock>,
    candidates_known: bool,
    fraction: f64,
    by: Criteria,
) -> Option<Moment> {
    let mut expiries: Vec<Moment> = leases.into_iter().map(|clock| clock.expires(by)).collect();
    let count = failing_count(if candidates_known { expiries.len() } else { 2 }, fraction)?;
    if expiries.len() < count.max(2) {
        return None;
    }
    let (_, expiry, _) = expiries.select_nth_unstable(count - 1);
    Some(*expiry + JUST_AFTER)
}

/// Returns the ordering deadline, after which a level of a scale-down waits for no other: shortly
/// before the first candidate reaches its full grace that had not reached it at `since`. It is past
/// if all had.
pub(crate) fn ordering_deadline<'a>(
    candidates: impl IntoIterator<Item = &'a LeaseClock>,
    since: Moment,
    grace: Grace,
) -> Moment {
    let end = candidates
        .into_iter()
        .map(|clock| clock.renewed(grace) + grace.period())
        .filter(|&end| end > since)
        .min();
    end.map_or(Moment::START, |end| end - grace.scaled(HEAD_START))
}

#[cfg(test)]
mod tests;
