//! Real agents on a real seed, started as their Deployments say: with the rendered ServiceAccounts,
//! roles, ConfigMaps and commands, and no other.

use anyhow::{Context, Result};
use serde_json::Value;

pub use crate::agent::RunningAgent;
use crate::agent::binary;
use crate::objects::{Manifests, get, items, path};
use crate::page::SERVED;
use crate::process::Process;
use crate::{KubeApi, SeedCluster, reaper};

/// Where the Deployments mount the config.
const CONFIG: &str = "/etc/dependency-watchdog/config";

/// Puts accounts, roles, bindings and ConfigMaps into a seed; what the testbed has brought under
/// the same names is replaced.
///
/// # Errors
/// When the API server refuses.
pub async fn install(api: &KubeApi, objects: &Manifests) -> Result<()> {
    let kinds = ["Role", "RoleBinding", "ServiceAccount", "ConfigMap"];
    for object in objects.values() {
        let kind = object["kind"].as_str().unwrap_or_default();
        if kinds.contains(&kind.trim_start_matches("Cluster")) {
            api.delete(&path(object)?).await?;
            api.create(object).await?;
        }
    }
    Ok(())
}

/// The pod of a Deployment.
fn pod<'a>(objects: &'a Manifests, deployment: &str) -> Result<&'a Value> {
    let deployment = get(objects, &format!("Deployment garden/{deployment}"))?;
    Ok(&deployment["spec"]["template"]["spec"])
}

/// The command of a Deployment's container.
///
/// # Errors
/// When there is no such Deployment.
pub fn command(objects: &Manifests, deployment: &str) -> Result<Vec<String>> {
    let words = items(&pod(objects, deployment)?["containers"][0]["command"]);
    let words = words.map(|word| word.as_str().map(Into::into).context("no word"));
    words.collect()
}

/// The config file that a Deployment mounts.
///
/// # Errors
/// When it mounts none.
pub fn config<'a>(objects: &'a Manifests, deployment: &str) -> Result<&'a str> {
    let pod = pod(objects, deployment)?;
    let (volume, mounted) = (&pod["volumes"][0], &pod["containers"][0]["volumeMounts"][0]);
    anyhow::ensure!(
        mounted["mountPath"] == CONFIG && volume["name"] == mounted["name"],
        "{mounted}"
    );
    let name = volume["configMap"]["name"].as_str();
    let name = name.context("no ConfigMap")?;
    let map = get(objects, &format!("ConfigMap garden/{name}"))?;
    let file = map["data"]["dep-config.yaml"].as_str();
    file.context("no dep-config.yaml")
}

impl RunningAgent {
    /// Starts what a Deployment says, with the token of its ServiceAccount, and serves on ports of
    /// its own choice.
    ///
    /// # Errors
    /// When the objects lack something, or it cannot be started.
    pub async fn installed(
        seed: &SeedCluster,
        objects: &Manifests,
        deployment: &str,
    ) -> Result<Self> {
        let account = pod(objects, deployment)?["serviceAccountName"].as_str();
        let kubeconfig = seed.kubeconfig(account.context("no account")?).await?;
        let folder = reaper::folder(deployment)?;
        let file = folder.join("kubeconfig");
        std::fs::write(&file, kubeconfig)?;
        let config = config(objects, deployment)?;
        std::fs::write(folder.join("dep-config.yaml"), config)?;
        let words = command(objects, deployment)?.into_iter().skip(1);
        let words = words.map(|word| word.replace(CONFIG, &folder.display().to_string()));
        let mut args: Vec<String> = words.collect();
        // What the cluster gives a pod by other means.
        args.push(format!("--kubeconfig={}", file.display()));
        args.extend(SERVED.iter().map(ToString::to_string));
        let process = Process::start(deployment, &binary()?, &args, &folder.join("log"))?;
        seed.set_log(process.log_file().to_owned());
        Ok(process)
    }
}
