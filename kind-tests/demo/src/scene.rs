//! One moment of the play, as values.

use testbed::seed::Dependent;

use crate::world::{DEPENDENTS, EXPIRED, NEEDED};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Seconds since the beginning.
    pub now: f64,
    /// The replica that the Lease names.
    pub leader: Option<&'static str>,
    /// Whether every replica has looked at every shoot.
    pub watched: bool,
    /// The one that is cut off, the one that moves, and the healthy one.
    pub shoots: [ShootScene; 3],
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShootScene {
    pub name: &'static str,
    pub nodes: Vec<Node>,
    /// In the order of [`DEPENDENTS`].
    pub dependents: [Dependent; 3],
    /// Seconds until kube-controller-manager gives up the next node; `None` while it is at rest.
    pub countdown: Option<f64>,
    pub given_up: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: String,
    /// Seconds since it last renewed its lease.
    pub age: f64,
    /// Whether it was given up.
    pub unknown: bool,
}

impl ShootScene {
    /// The Deployments with their names and the replicas that they had to begin with.
    pub fn deployments(&self) -> impl Iterator<Item = (&'static str, i64, &Dependent)> {
        DEPENDENTS.into_iter().zip(&self.dependents).map(|((name, replicas), dependent)| (name, replicas, dependent))
    }

    pub fn kcm(&self) -> &Dependent {
        &self.dependents[0]
    }

    /// Whether all Deployments are as they were to begin with.
    pub fn is_whole(&self) -> bool {
        self.deployments().all(|(_, replicas, one)| one.is_free_at(replicas) && one.ready == replicas)
    }

    pub fn expired(&self) -> usize {
        self.nodes.iter().filter(|node| node.age >= EXPIRED).count()
    }

    /// The prober's rule, applied to what is on the stage.
    pub fn verdict(&self) -> String {
        let expired = self.expired();
        let held = self.dependents.iter().any(|one| one.marker.is_some());
        let up = self.deployments().all(|(_, replicas, one)| one.replicas == replicas);
        let meaning = match (expired >= NEEDED, held, up) {
            (true, _, true) => "the network is at fault: protect",
            (true, _, false) => "the network is at fault: hold",
            (false, true, _) => "back again: restore",
            (false, false, _) if expired > 0 => "not enough for a verdict",
            (false, false, _) => "healthy",
        };
        format!("{expired} of {} leases expired, {NEEDED} make a verdict: {meaning}", self.nodes.len())
    }
}
