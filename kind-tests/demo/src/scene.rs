//! One moment of the demo, as values, and the numbers that it runs with.

use testbed::gardener::{CA, KCM, MCM};
use testbed::seed::ReplicaState;

/// Kubernetes' default for `nodeMonitorGracePeriod`, in seconds: silent for so long, a node is
/// marked Unknown.
pub const GRACE: f64 = 40.0;
/// The prober calls a lease expired after three quarters of the grace period (rule 47), in seconds.
pub const EXPIRED: f64 = 30.0;
/// Nodes of each shoot.
pub const NODES: usize = 5;
/// How many of them must be expired for the verdict: 60 % (rule 22).
pub const NEEDED: usize = 3;
/// The Deployments that are scaled, with the replicas they have to begin with.
pub const DEPENDENTS: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// The replicas of the prober, by the names of their pods.
pub const REPLICAS: [&str; 2] = ["prober-a", "prober-b"];

/// `kube-controller-manager` is `KCM`.
pub fn initials(name: &str) -> String {
    name.split('-')
        .filter_map(|word| word.chars().next())
        .collect::<String>()
        .to_uppercase()
}

pub struct DemoScene {
    /// Seconds since the beginning.
    pub now: f64,
    /// The replica that the Lease names.
    pub leader: Option<&'static str>,
    /// Whether every replica has probed every shoot.
    pub watched: bool,
    /// The one that is cut off, and the healthy one.
    pub shoots: [ShootScene; 2],
}

pub struct ShootScene {
    /// Seconds since each node last renewed its lease.
    pub ages: Vec<f64>,
    /// In the order of [`DEPENDENTS`].
    pub dependents: [ReplicaState; 3],
    /// How many nodes kube-controller-manager has marked Unknown at the same time, at most.
    pub unknown_nodes: usize,
}

impl ShootScene {
    /// The Deployments with their names.
    pub fn deployments(&self) -> impl Iterator<Item = (&'static str, &ReplicaState)> {
        let names = DEPENDENTS.into_iter().map(|(name, _)| name);
        names.zip(&self.dependents)
    }

    /// Whether all Deployments are as they were to begin with.
    pub fn is_whole(&self) -> bool {
        DEPENDENTS
            .iter()
            .zip(&self.dependents)
            .all(|((_, replicas), one)| one.is_free_at(*replicas) && one.ready == *replicas)
    }

    pub fn expired(&self) -> usize {
        self.ages.iter().filter(|age| **age >= EXPIRED).count()
    }
}
