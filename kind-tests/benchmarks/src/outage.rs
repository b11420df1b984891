//! What the leases of an outage say about its course, and the seed's audit log about the writes in
//! it.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use testbed::SeedCluster;
use testbed::audit::Mark;

/// When what is due in an outage, by the stamps of the nodes' last renewals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// When the verdict can first fall: when 0.6 of the leases, which is the default of
    /// nodeLeaseFailureFraction, are older than three quarters of the grace.
    pub verdict: DateTime<Utc>,
    /// When the oldest stamp is older than the grace: kube-controller-manager marks no node before.
    pub first_end: DateTime<Utc>,
    /// When the youngest is.
    pub last_end: DateTime<Utc>,
}

impl Course {
    /// Of two stamps or more; with fewer there is no verdict.
    pub fn of(mut stamps: Vec<DateTime<Utc>>, grace: TimeDelta) -> Option<Self> {
        stamps.sort_unstable();
        let [first, .., last] = stamps[..] else {
            return None;
        };
        Some(Self {
            verdict: stamps[(stamps.len() * 3).div_ceil(5) - 1] + grace * 3 / 4,
            first_end: first + grace,
            last_end: last + grace,
        })
    }
}

/// A successful write to a Deployment.
#[derive(Debug)]
pub struct DeploymentWrite {
    pub namespace: String,
    pub name: String,
    pub answered: DateTime<Utc>,
}

/// All writes of probers to a seed's Deployments since then, in order.
pub fn writes(seed: &SeedCluster, since: &Mark) -> Result<Vec<DeploymentWrite>> {
    let mut writes = Vec::new();
    for asked in seed.asked_since(since) {
        let is_read = ["get", "list", "watch"].contains(&asked.verb.as_str());
        let is_write = !is_read && !asked.is_dry_run();
        if asked.resource.starts_with("deployments") && is_write && asked.code < 300 {
            writes.push(DeploymentWrite {
                answered: asked.answered.parse()?,
                namespace: asked.namespace,
                name: asked.name,
            });
        }
    }
    writes.sort_by_key(|write| write.answered);
    Ok(writes)
}

/// Seconds from one moment to another.
pub fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).as_seconds_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_stamps_decide_when_the_verdict_falls() {
        let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let course = |seconds: &[i64]| {
            let stamps = seconds.iter().copied().map(at).collect();
            let course = Course::of(stamps, TimeDelta::seconds(40))?;
            Some([course.verdict, course.first_end, course.last_end])
        };
        assert_eq!(course(&[8, 0]), Some([38, 40, 48].map(at)), "both of 2");
        assert_eq!(
            course(&[4, 2, 9, 8, 0]),
            Some([34, 40, 49].map(at)),
            "3 of 5"
        );
        assert_eq!(
            course(&[1, 2, 3, 5, 9, 9]),
            Some([35, 41, 49].map(at)),
            "4 of 6"
        );
        assert_eq!(course(&[0]), None);
    }
}
