//! What Gardener's own code says (the Go program in `gardenlet/`): the objects that gardenlet
//! deploys for the watchdog, and what its care controller finds in a shoot.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::gardener::PROBE_SECRET;
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

/// What the care controller puts into a shoot's conditions.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CareFindings {
    /// The controllers that it finds scaled down by the prober: ControlPlaneHealthy is false,
    /// reason ControllersScaledDown.
    pub scaled_down: Option<Vec<String>>,
    /// What it says of expired leases, empty for nothing: EveryNodeReady is false, reason
    /// TooManyExpiredNodeLeases.
    pub expired_leases: String,
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

    /// The prober's Secret on the seed, which leads to this server, and its roles in the shoot.
    pub async fn access(
        &self,
        namespace: &str,
        server: &str,
        authority: &str,
    ) -> Result<Manifests> {
        let file = self.file(&format!("{namespace}-ca"), authority)?;
        objects::read(&self.run(&["shoot", namespace, server, &file]).await?)
    }

    /// Gives the prober access to a shoot as Gardener does, instead of the testbed's; its roles in
    /// the shoot.
    pub async fn give_access(&self, shoot: &ShootCluster) -> Result<Manifests> {
        let server = format!("https://{}", shoot.proxy.address());
        let mut objects = self
            .access(&shoot.namespace, &server, shoot.plane.authority())
            .await?;
        let key = format!("Secret {}/{}", shoot.namespace, PROBE_SECRET);
        let mut secret = objects.remove(&key).with_context(|| format!("no {key}"))?;
        install(shoot.plane.api(), &objects).await?;
        // gardener-resource-manager's part: a token for the account that the annotations name,
        // written into the kubeconfig.
        let account = |what: &str| {
            let annotation = format!("serviceaccount.resources.gardener.cloud/{what}");
            let value = secret["metadata"]["annotations"][&annotation].as_str();
            value.with_context(|| format!("no {annotation}"))
        };
        let (namespace, name) = (account("namespace")?, account("name")?);
        let token = shoot.plane.api().token(namespace, name).await?;
        let kubeconfig = secret["data"]["kubeconfig"]
            .as_str()
            .context("no kubeconfig")?;
        let mut kubeconfig: Value = serde_saphyr::from_slice(&STANDARD.decode(kubeconfig)?)?;
        kubeconfig["users"][0]["user"] = json!({"token": token});
        // JSON is YAML.
        secret["data"]["kubeconfig"] = STANDARD.encode(kubeconfig.to_string()).into();
        shoot.seed.api().create(&secret).await?;
        Ok(objects)
    }

    /// What the care controller finds in a shoot.
    pub async fn findings(&self, shoot: &ShootCluster) -> Result<CareFindings> {
        let seed = self.file("seed-kubeconfig", shoot.seed.plane().admin_kubeconfig())?;
        let own = self.file(
            &format!("{}-kubeconfig", shoot.namespace),
            shoot.plane.admin_kubeconfig(),
        )?;
        let found = self.run(&["check", &seed, &own, &shoot.namespace]).await?;
        Ok(serde_json::from_str(&found)?)
    }

    fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)?;
        path.to_str()
            .map(Into::into)
            .context("a path that is no text")
    }

    async fn run(&self, args: &[&str]) -> Result<String> {
        let output = tokio::process::Command::new(&self.program)
            .args(args)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| self.program.display().to_string())?;
        ensure!(
            output.status.success(),
            "gardenlet {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}
