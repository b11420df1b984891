//! The course of an outage by the leases in it, and the writes in it by the seed's audit log.

use anyhow::{Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use testbed::SeedCluster;
use testbed::audit::{Asked, Mark};

/// Moments at which something is due in an outage, by the stamps of the nodes' last renewals.
pub struct Course {
    /// The first possible verdict: 0.6 of the leases, which is the default of
    /// nodeLeaseFailureFraction, are older than three quarters of the grace.
    pub verdict: DateTime<Utc>,
    /// The end of the oldest stamp's grace: kube-controller-manager marks no node before.
    pub first_end: DateTime<Utc>,
    /// The end of the youngest stamp's.
    pub last_end: DateTime<Utc>,
}

impl Course {
    /// Takes two stamps or more; with fewer there is no verdict.
    pub fn of(mut stamps: Vec<DateTime<Utc>>, grace: TimeDelta) -> Result<Self> {
        stamps.sort_unstable();
        let [first, .., last] = stamps[..] else {
            bail!("fewer than two nodes");
        };
        Ok(Self {
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
    let mut asked = seed.asked_since(since);
    asked.retain(|asked| asked.patches_deployment() && asked.code < 300);
    let write = |asked: Asked| {
        Ok(DeploymentWrite {
            answered: asked.answered.parse()?,
            namespace: asked.namespace,
            name: asked.name,
        })
    };
    let mut writes: Vec<_> = asked.into_iter().map(write).collect::<Result<_>>()?;
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
        let at = |second: &i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(*second);
        for (stamps, verdict) in [
            (&[8, 0][..], 38),
            (&[4, 2, 9, 8, 0], 34),
            (&[1, 2, 3, 5, 9, 9], 35),
        ] {
            let course = Course::of(stamps.iter().map(at).collect(), TimeDelta::seconds(40));
            assert_eq!(
                course.expect("two nodes").verdict,
                at(&verdict),
                "{stamps:?}"
            );
        }
    }
}
