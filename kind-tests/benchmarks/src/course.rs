//! What the stamps on a shoot's leases say about the course of an outage. No input and no output
//! here.

use chrono::{DateTime, TimeDelta, Utc};

/// From this share of expired leases on there is an outage (nodeLeaseFailureFraction's default,
/// which Gardener takes).
const FRACTION: f64 = 0.6;

/// What the stamps say that the nodes wrote last: when the verdict can first fall, and when the
/// first node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// 0.75 of the grace after the stamp of the k-th oldest lease; k is the smallest count that
    /// makes the fraction.
    pub verdict: DateTime<Utc>,
    /// The whole grace after the oldest stamp: kube-controller-manager gives no node up before
    /// this.
    pub first_end: DateTime<Utc>,
    /// The whole grace after the youngest stamp.
    pub last_end: DateTime<Utc>,
}

impl Course {
    /// Of two stamps or more; with fewer there is no verdict.
    pub fn of(stamps: &[DateTime<Utc>], grace: TimeDelta) -> Option<Self> {
        let (oldest, youngest) = (stamps.iter().min()?, stamps.iter().max()?);
        let verdict = expiry(stamps, needed(stamps.len())?, grace)?;
        (stamps.len() >= 2).then(|| Self {
            verdict,
            first_end: *oldest + grace,
            last_end: *youngest + grace,
        })
    }
}

/// When so many of these leases are expired: each is at 0.75 of the grace after its stamp (rule
/// 47).
pub fn expiry(stamps: &[DateTime<Utc>], count: usize, grace: TimeDelta) -> Option<DateTime<Utc>> {
    let mut sorted = stamps.to_vec();
    sorted.sort_unstable();
    Some(*sorted.get(count.checked_sub(1)?)? + grace * 3 / 4)
}

/// When the outage is over by the leases, given when each is renewed, in order.
pub fn turns_up(renewals: &[DateTime<Utc>]) -> Option<DateTime<Utc>> {
    renewals
        .get(renewals.len() - needed(renewals.len())?)
        .copied()
}

/// How many of so many leases make the fraction.
fn needed(count: usize) -> Option<usize> {
    (1..=count).find(|&expired| expired as f64 / count as f64 >= FRACTION)
}

/// Seconds from one moment to another.
pub fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).as_seconds_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_stamps_decide_when_an_outage_begins_and_ends() {
        let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let course = |stamps: &[i64]| {
            let stamps: Vec<_> = stamps.iter().copied().map(at).collect();
            let course = Course::of(&stamps, TimeDelta::seconds(40))?;
            Some([course.verdict, course.first_end, course.last_end])
        };
        assert_eq!(course(&[8, 0, 5]), Some([35, 40, 48].map(at)));
        assert_eq!([course(&[0]), course(&[])], [None, None], "no verdict");
        // Of two, both make 0.6; of five, three; of ten, six; of a hundred, sixty. The outage is over
        // with the first renewal that leaves fewer expired.
        for (count, verdict, over) in [(2, 31, 0), (5, 32, 2), (10, 35, 4), (100, 89, 40)] {
            let stamps: Vec<i64> = (0..count).collect();
            let found = course(&stamps).map(|[verdict, ..]| verdict);
            assert_eq!(found, Some(at(verdict)), "{count}");
            let renewals: Vec<_> = stamps.into_iter().map(at).collect();
            assert_eq!(turns_up(&renewals), Some(at(over)), "{count}");
        }
        assert_eq!(turns_up(&[]), None);
    }
}
