//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod vitals;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use testbed::ProberConfig;
use testbed::agent::{Kind, Start};
use testbed::gardener;

use self::replica::Replica;
use crate::pace::WINDOW;
use crate::world::World;

/// All replicas, and the folder with the files that they read.
pub struct Agents {
    pub probers: Vec<Arc<Replica>>,
    pub weeders: Vec<Arc<Replica>>,
    folder: PathBuf,
}

/// The prober's config with this interval.
pub fn prober_config(interval: &'static str) -> String {
    ProberConfig { interval, initial_delay: "2s", timeout: "2s", machine_delay: "1s", ..ProberConfig::default() }.text()
}

/// The weeder's config with this watchDuration.
pub fn weeder_config(window: Duration) -> String {
    Kind::Weeder.config().replace("watchDuration: 5m0s", &format!("watchDuration: {}s", window.as_secs()))
}

fn config_file(folder: &Path, kind: Kind) -> PathBuf {
    folder.join(format!("{}.yaml", kind.name()))
}

impl Agents {
    /// Two probers and a weeder; none runs yet.
    pub fn new(world: &Arc<World>, binary: &Path) -> Result<Self> {
        let folder = testbed::leash::folder("soak")?;
        let agents = |kind: Kind, names: &[&str]| {
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
                (start.binary, start.config) = (Some(binary.to_owned()), config_file(&folder, kind));
                if kind == Kind::Prober {
                    start = start.with(["--kube-api-qps=50.0", "--kube-api-burst=200"]);
                }
                Ok(Arc::new(Replica::new(world.clone(), name, &folder, start)))
            };
            names.iter().map(replica).collect::<Result<Vec<_>>>()
        };
        let probers = agents(Kind::Prober, &["prober-a", "prober-b"])?;
        let weeders = agents(Kind::Weeder, &["weeder"])?;
        let new = Self { probers, weeders, folder };
        new.configure_as_usual()?;
        Ok(new)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.probers.iter().chain(&self.weeders)
    }

    /// Something happens to the seed after which a leader may step down.
    pub fn disturb(&self) {
        self.all().for_each(|replica| replica.disturb());
    }

    /// Writes a config file.
    pub fn configure(&self, kind: Kind, text: &str) -> Result<()> {
        Ok(std::fs::write(config_file(&self.folder, kind), text)?)
    }

    /// Writes both.
    pub fn configure_as_usual(&self) -> Result<()> {
        self.configure(Kind::Prober, &prober_config("2s"))?;
        self.configure(Kind::Weeder, &weeder_config(WINDOW))
    }
}
