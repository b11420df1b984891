//! When to probe next: just when the verdict could fall, and otherwise as rarely as configured.

use std::time::Duration;

use chrono::TimeDelta;
use common_core::backoff::doubling;

use super::lease::{Criteria, LeaseClock};
use super::moment::Moment;
use super::verdict::fails;
use super::{scaled, span};

/// A probe this long after a lease's expiry finds it expired; timers may fire up to a millisecond
/// early.
pub(crate) const JUST_AFTER: TimeDelta = TimeDelta::milliseconds(1);
/// The wait after the first failed probe; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Returns the smallest number of expired leases with which `candidates` fail; `None` if they cannot
/// (one candidate never does).
fn failing_count(candidates: usize, fraction: f64) -> Option<usize> {
    (candidates >= 2)
        .then(|| (1..=candidates).find(|&count| fails(count, candidates, fraction)))
        .flatten()
}

/// The earliest moment at which the verdict can fall if nothing is renewed from now on.
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduleInputs {
    /// End of the last probe.
    pub now: Moment,
    /// The moment that it judged: what became possible since then no probe has shown. `now` after a
    /// failed probe.
    pub judged_at: Moment,
    pub interval: TimeDelta,
    /// See [`verdict_possible`]; of the last complete probe. None also before the first one.
    pub verdict_possible: Option<Moment>,
    /// Last moment at which a renewal is seen early enough not to be doubted when it counts;
    /// see [`Grace::longest_gap`](super::lease::Grace::longest_gap).
    pub doubt_from: Option<Moment>,
    pub failures: Option<Failures>,
    /// Duration of the last answer.
    pub took: TimeDelta,
    /// The factor, from 1 on, by which the wait after a failure is stretched so that shoots do not
    /// move in step.
    pub stretch: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Failures {
    pub in_a_row: u32,
    /// True if no probe was ever complete: to be tried again soon, whatever the leases say.
    pub urgent: bool,
}

/// Returns the time of the next probe. A moment that has been judged never schedules again.
pub(crate) fn next_probe(inputs: &ScheduleInputs) -> Moment {
    let ScheduleInputs {
        now,
        judged_at,
        interval,
        verdict_possible,
        doubt_from,
        failures,
        took,
        stretch,
    } = *inputs;
    let regular = now + interval;
    let retry = failures
        .filter(|failures| failures.urgent || verdict_possible.is_some_and(|due| due <= regular))
        .map(|failures| {
            now + scaled(
                span(doubling(FIRST_RETRY, failures.in_a_row, Duration::MAX)),
                stretch,
            )
        });
    let moments = [verdict_possible, doubt_from]
        .into_iter()
        .flatten()
        .filter(|&moment| moment > judged_at);
    let next = moments.chain(retry).fold(regular, Moment::min).max(now);
    // A probe that would still be under way when the verdict can fall begins then.
    verdict_possible
        .filter(|&possible| possible > next && possible < next + took)
        .unwrap_or(next)
}

#[cfg(test)]
mod tests;
