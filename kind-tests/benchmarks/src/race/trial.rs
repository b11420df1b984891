//! One outage, as the numbers that it left behind. No input and no output here.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// From this share of expired leases on there is an outage (nodeLeaseFailureFraction's default, which Gardener takes).
const FRACTION: f64 = 0.6;

/// What the stamps say that the nodes wrote last: when the verdict can first fall, and when the first node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// 0.75 of the grace after the stamp of the k-th oldest lease; k is the smallest count that makes the fraction.
    pub verdict: DateTime<Utc>,
    /// The whole grace after the oldest stamp: kube-controller-manager gives no node up before this.
    pub first_end: DateTime<Utc>,
    /// The whole grace after the youngest stamp.
    pub last_end: DateTime<Utc>,
}

impl Course {
    /// Of two stamps or more; with fewer there is no verdict.
    pub fn of(stamps: &[DateTime<Utc>], grace: TimeDelta) -> Option<Self> {
        let mut sorted = stamps.to_vec();
        sorted.sort_unstable();
        let count = sorted.len();
        let needed = (1..=count).find(|&expired| expired as f64 / count as f64 >= FRACTION)?;
        let (oldest, youngest) = (sorted.first()?, sorted.last()?);
        (count >= 2).then(|| Self {
            verdict: sorted[needed - 1] + grace * 3 / 4,
            first_end: *oldest + grace,
            last_end: *youngest + grace,
        })
    }
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// No node was ever Unknown.
    Won,
    /// A node was Unknown, and no one could have helped it: between the verdict and its end there was less time than
    /// kube-controller-manager takes to end.
    NoTime,
    /// A node was Unknown.
    Lost,
}

/// What happened to the leader in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Whether it was killed (SIGKILL), not asked to end (SIGTERM).
    pub killed: bool,
    /// Seconds from the outage to the signal; negative when the signal came first.
    pub after_outage: f64,
    /// Seconds from the signal until the other replica led.
    pub election: f64,
    /// Whether kube-controller-manager's write was made before the signal.
    pub written_before: bool,
    /// Seconds from the new leadership to kube-controller-manager's write, where that came after it.
    pub lead_to_write: Option<f64>,
}

/// One outage of one shoot. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in this run.
    pub number: usize,
    /// The lane that it ran in.
    pub lane: usize,
    /// How many nodes the shoot had.
    pub nodes: usize,
    /// From the outage to the instant at which the verdict could first fall.
    pub verdict: f64,
    /// From the verdict to the first node's end: the time that there was.
    pub available: f64,
    /// From the verdict to the answer to the first protective write, where there was one.
    pub first_write: Option<f64>,
    /// From the verdict to the answer to kube-controller-manager's write.
    pub kcm_write: Option<f64>,
    /// From SIGTERM to the end of the process.
    pub kcm_exit: Option<f64>,
    /// From the end of the process to the first node's end: the time that was left over; negative: it came too late.
    pub left: Option<f64>,
    /// How many nodes were ever Unknown.
    pub unknown: usize,
    /// From the end of the outage until all was as before, where it came to that.
    pub restored: Option<f64>,
    /// Writes to this shoot's Deployments that were not due: beyond one down and one up for each.
    pub superfluous: usize,
    /// The change of leader in mid-outage, if there was one.
    pub change: Option<Change>,
}

impl Trial {
    /// How it ended.
    pub fn ending(&self) -> Ending {
        if self.unknown == 0 {
            Ending::Won
        } else if self.kcm_exit.is_some_and(|exit| self.available < exit) {
            Ending::NoTime
        } else {
            Ending::Lost
        }
    }
}

/// Seconds from one moment to another.
pub fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).as_seconds_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(seconds: &[i64]) -> Vec<DateTime<Utc>> {
        seconds.iter().map(|&second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second)).collect()
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    #[test]
    fn the_verdict_falls_when_enough_leases_have_expired() {
        let grace = TimeDelta::seconds(40);
        let course = Course::of(&stamps(&[8, 0, 5]), grace).expect("three stamps");
        assert_eq!(course, Course { verdict: at(35), first_end: at(40), last_end: at(48) });
        // Of five, three are 0.6; of ten, six.
        let course = Course::of(&stamps(&[4, 3, 2, 1, 0]), grace).expect("five stamps");
        assert_eq!(course.verdict, at(32));
        let course = Course::of(&stamps(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), grace).expect("ten stamps");
        assert_eq!(course.verdict, at(35));
    }

    #[test]
    fn one_node_alone_makes_no_verdict() {
        assert_eq!(Course::of(&stamps(&[0]), TimeDelta::seconds(40)), None);
        assert_eq!(Course::of(&[], TimeDelta::seconds(40)), None);
    }

    #[test]
    fn only_a_trial_without_time_is_counted_apart() {
        let trial = |unknown, available| Trial {
            number: 0,
            lane: 0,
            nodes: 3,
            verdict: 25.0,
            available,
            first_write: Some(0.1),
            kcm_write: Some(1.5),
            kcm_exit: Some(0.2),
            left: Some(0.0),
            unknown,
            restored: Some(40.0),
            superfluous: 0,
            change: None,
        };
        assert_eq!(trial(0, 0.1).ending(), Ending::Won);
        assert_eq!(trial(1, 0.1).ending(), Ending::NoTime);
        assert_eq!(trial(1, 0.3).ending(), Ending::Lost);
    }
}
