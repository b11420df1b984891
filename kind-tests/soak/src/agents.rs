//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod vitals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use memory_api::gardener;
use serde_json::json;

use self::replica::{Kind, Replica};
use crate::pace::{INITIAL_DELAY, WINDOW};
use crate::shoot::{CA, KCM, MCM};
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
        let folder = kind_tests::leash::folder("soak")?;
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
                let kubeconfig = world.seed.kubeconfig(&token);
                Replica::new(world.clone(), kind, name, binary, &folder, config, &kubeconfig).map(Arc::new)
            };
            names.iter().map(replica).collect::<Result<Vec<_>>>()
        };
        let new = Self {
            probers: agents(Kind::Prober, &["prober-a", "prober-b"], &prober_config)?,
            weeders: agents(Kind::Weeder, &["weeder"], &weeder_config)?,
            prober_config,
            weeder_config,
        };
        new.write_prober_config(Duration::from_secs(2))?;
        new.write_weeder_config(WINDOW)?;
        Ok(new)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.probers.iter().chain(&self.weeders)
    }

    /// Writes the prober's config with this interval.
    pub fn write_prober_config(&self, interval: Duration) -> Result<()> {
        let dependent = |name: &str, up: u32, down: u32, optional: bool, delay: &str| {
            json!({"ref": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}, "optional": optional,
                "scaleUp": {"level": up, "initialDelay": delay}, "scaleDown": {"level": down}})
        };
        // JSON is YAML.
        let config = json!({
            "kubeConfigSecretName": gardener::PROBE_SECRET,
            "probeInterval": format!("{}s", interval.as_secs()),
            "initialDelay": format!("{}s", INITIAL_DELAY.as_secs()),
            "probeTimeout": "2s",
            "dependentResourceInfos": [
                dependent(KCM, 0, 1, false, "0s"), dependent(MCM, 1, 0, false, "1s"), dependent(CA, 2, 0, true, "0s"),
            ],
        });
        Ok(std::fs::write(&self.prober_config, config.to_string())?)
    }

    /// Writes the weeder's config with this watchDuration.
    pub fn write_weeder_config(&self, window: Duration) -> Result<()> {
        let selector = |operator: &str, roles: &[&str]| {
            json!({"podSelectors": [{"matchExpressions": [
                {"key": "gardener.cloud/role", "operator": "In", "values": ["controlplane"]},
                {"key": "role", "operator": operator, "values": roles}]}]})
        };
        let config = json!({
            "watchDuration": format!("{}s", window.as_secs()),
            "servicesAndDependantSelectors": {
                "etcd-main-client": selector("In", &["apiserver"]),
                "kube-apiserver": selector("NotIn", &["main", "apiserver"]),
            },
        });
        Ok(std::fs::write(&self.weeder_config, config.to_string())?)
    }
}
