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

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn stamps(seconds: &[i64]) -> Vec<DateTime<Utc>> {
        seconds.iter().copied().map(at).collect()
    }

    #[test]
    fn the_verdict_falls_when_enough_leases_have_expired() {
        let course = |stamps: &[i64]| Course::of(&self::stamps(stamps), TimeDelta::seconds(40));
        assert_eq!(
            course(&[8, 0, 5]),
            Some(Course {
                verdict: at(35),
                first_end: at(40),
                last_end: at(48)
            })
        );
        // Of five, three are 0.6; of ten, six; of a hundred, sixty.
        for (count, verdict) in [(5, 32), (10, 35), (100, 89)] {
            let stamps: Vec<i64> = (0..count).rev().collect();
            assert_eq!(
                course(&stamps).map(|course| course.verdict),
                Some(at(verdict)),
                "{count}"
            );
        }
        assert_eq!(
            [course(&[0]), course(&[])],
            [None, None],
            "one node alone makes no verdict"
        );
    }

    #[test]
    fn an_outage_is_over_when_fewer_than_the_fraction_are_expired() {
        // Of five, three are 0.6, so that three must have renewed; of two, both make it, and one is
        // 0.5.
        assert_eq!(turns_up(&stamps(&[1, 2, 3, 4, 5])), Some(at(3)));
        assert_eq!(
            (turns_up(&stamps(&[1, 2])), turns_up(&[])),
            (Some(at(1)), None)
        );
    }
}
