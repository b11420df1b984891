//! What Gardener's own code says (the Go program in `gardenlet/`): the objects that gardenlet
//! deploys for the watchdog, and what its care controller finds in a shoot.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::gardener::{PROBE, PROBE_SECRET};
use crate::go_programs;
use crate::installation::install;
use crate::objects::{self, Manifests};
use crate::reaper;
use crate::shoot::ShootCluster;

/// gardenlet, as far as it concerns the watchdog.
pub struct Gardenlet {
    program: PathBuf,
    folder: PathBuf,
}

impl Gardenlet {
    /// Finds the program, or builds it.
    pub fn built() -> Result<Self> {
        Ok(Self {
            program: go_programs::built("gardenlet")?.join("gardenlet"),
            folder: reaper::folder("gardenlet")?,
        })
    }

    /// The objects of both agents in a seed.
    pub async fn seed(&self) -> Result<Manifests> {
        objects::read(&self.run(&["seed"]).await?)
    }

    /// Gives the prober access to a shoot as Gardener does, instead of the testbed's; its roles in
    /// the shoot.
    pub async fn give_access(&self, shoot: &ShootCluster) -> Result<Manifests> {
        let (namespace, api) = (&shoot.namespace, shoot.plane.api());
        let authority = self.file("ca", shoot.plane.authority())?;
        let access = ["shoot", namespace, &shoot.plane.url(), &authority];
        let mut objects = objects::read(&self.run(&access).await?)?;
        let secret = objects.remove(&format!("Secret {namespace}/{PROBE_SECRET}"));
        let mut secret = secret.context("no Secret")?;
        install(api, &objects).await?;
        // gardener-resource-manager's part: a token, written into the kubeconfig.
        let token = api.token("kube-system", PROBE).await?;
        let kubeconfig = &mut secret["data"]["kubeconfig"];
        let text = STANDARD.decode(kubeconfig.as_str().context("no kubeconfig")?)?;
        let mut filled: Value = serde_saphyr::from_slice(&text)?;
        filled["users"][0]["user"] = json!({"token": token});
        // JSON is YAML.
        *kubeconfig = STANDARD.encode(filled.to_string()).into();
        shoot.seed.api().create(&secret).await?;
        Ok(objects)
    }

    /// What the care controller would put into a shoot's conditions: `scaledDown` names the controllers
    /// that it finds scaled down by the prober, `expiredLeases` says which leases are.
    pub async fn findings(&self, shoot: &ShootCluster) -> Result<Value> {
        let seed = self.file("seed", shoot.seed.plane().admin_kubeconfig())?;
        let own = self.file("shoot", shoot.plane.admin_kubeconfig())?;
        let check = ["check", &seed, &own, &shoot.namespace];
        Ok(serde_json::from_str(&self.run(&check).await?)?)
    }

    fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    async fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        let output = command.args(args).kill_on_drop(true).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "gardenlet {args:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }
}
