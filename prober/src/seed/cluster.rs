//! State of a shoot by its Cluster.

use std::sync::Arc;

use kube::ResourceExt;
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::{Lifecycle, ShootSettings, StopReason, lifecycle, settings};
use prober_core::template::Facts;

use crate::gardener::{Cluster, ClusterSpec, SeedRef};

/// Judged once for each change of the Cluster.
#[derive(Debug)]
pub struct ClusterState {
    pub uid: String,
    /// The seed that it is on.
    pub seed: SeedRef,
    /// The embedded shoot, absent, or why it cannot be understood.
    pub shoot: Option<Result<GardenerShoot, String>>,
    /// `None` if the shoot is absent or cannot be understood.
    pub lifecycle: Option<Lifecycle>,
    pub settings: Arc<ShootSettings>,
}

impl From<Cluster> for ClusterState {
    fn from(cluster: Cluster) -> Self {
        let uid = cluster.uid().unwrap_or_default();
        let ClusterSpec { shoot, seed } = cluster.spec;
        let readable = shoot.as_ref().and_then(|shoot| shoot.as_ref().ok());
        Self {
            lifecycle: readable.map(|shoot| lifecycle(shoot, seed.name.as_deref())),
            settings: Arc::new(readable.map(settings).unwrap_or_default()),
            uid,
            seed,
            shoot,
        }
    }
}

impl ClusterState {
    /// True if the probe started for it is still wanted. A shoot that cannot be understood keeps its
    /// probe (D-13).
    pub(crate) fn wants_probe(&self) -> bool {
        !matches!(self.lifecycle, Some(Lifecycle::Stop(_)))
    }

    /// True if no seed can own it but itself, so that no owner record is checked.
    pub(crate) fn is_self_hosted(&self) -> bool {
        self.lifecycle == Some(Lifecycle::Stop(StopReason::SelfHosted))
    }

    /// Facts for the config's templates about the shoot, whose Cluster has this name.
    pub fn facts(&self, namespace: &str) -> Facts {
        let SeedRef { name, uid } = self.seed.clone();
        Facts {
            namespace: namespace.to_owned(),
            domain: self
                .readable()
                .and_then(|shoot| shoot.internal_domain.clone()),
            seed: name,
            seed_uid: uid,
        }
    }

    pub fn readable(&self) -> Option<&GardenerShoot> {
        self.shoot.as_ref()?.as_ref().ok()
    }
}
