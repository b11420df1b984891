//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod vitals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use testbed::ProberConfig;
use testbed::agent::{Kind, Start};
use testbed::api::gardener;

use self::replica::Replica;
use crate::pace::WINDOW;
use crate::world::World;

/// All replicas, and the files that they read.
pub struct Agents {
    pub probers: Vec<Arc<Replica>>,
    pub weeders: Vec<Arc<Replica>>,
    pub prober_config: PathBuf,
    pub weeder_config: PathBuf,
}

impl Agents {
    /// Two probers and a weeder; none runs yet.
    pub fn new(world: &Arc<World>, binary: &std::path::Path) -> Result<Self> {
        let folder = testbed::leash::folder("soak")?;
        let (prober_config, weeder_config) = (folder.join("prober.yaml"), folder.join("weeder.yaml"));
        let agents = |kind: Kind, names: &[&str], config: &PathBuf| {
            let replica = |name: &&str| {
                let token = format!("soak-{name}-token");
                let mut user = match kind {
                    Kind::Prober => gardener::seed_prober(),
                    Kind::Weeder => gardener::seed_weeder(),
                };
                // The same rights under a name of its own, so that the log of requests tells replicas apart.
                user.name = (*name).to_owned();
                world.seed.access().grant(&token, user);
                let mut start = Start::new(kind, &folder, name, &world.seed.kubeconfig(&token), "")?;
                (start.binary, start.config) = (Some(binary.to_owned()), config.clone());
                if kind == Kind::Prober {
                    start = start.with(["--kube-api-qps=50.0", "--kube-api-burst=200"]);
                }
                Ok(Arc::new(Replica::new(world.clone(), name, &folder, start)))
            };
            names.iter().map(replica).collect::<Result<Vec<_>>>()
        };
        let new = Self {
            probers: agents(Kind::Prober, &["prober-a", "prober-b"], &prober_config)?,
            weeders: agents(Kind::Weeder, &["weeder"], &weeder_config)?,
            prober_config,
            weeder_config,
        };
        new.write_prober_config("2s")?;
        new.write_weeder_config(WINDOW)?;
        Ok(new)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.probers.iter().chain(&self.weeders)
    }

    /// Writes the prober's config with this interval.
    pub fn write_prober_config(&self, interval: &'static str) -> Result<()> {
        let times = ProberConfig { interval, initial_delay: "2s", timeout: "2s", machine_delay: "1s", ..ProberConfig::default() };
        Ok(std::fs::write(&self.prober_config, times.text())?)
    }

    /// Writes the weeder's config with this watchDuration.
    pub fn write_weeder_config(&self, window: Duration) -> Result<()> {
        let config = Kind::Weeder.config().replace("watchDuration: 5m0s", &format!("watchDuration: {}s", window.as_secs()));
        Ok(std::fs::write(&self.weeder_config, config)?)
    }
}
