//! Real agents on a real seed, started as their Deployments say: with the rendered ServiceAccounts,
//! roles, ConfigMaps and commands, and no other.

use anyhow::{Context, Result};
use serde_json::Value;

pub use crate::agent::RunningAgent;
use crate::agent::binary;
use crate::objects::{Manifests, get, path};
use crate::page::SERVED;
use crate::process::Process;
use crate::{KubeApi, SeedCluster};

/// Where the Deployments mount the config.
const CONFIG: &str = "/etc/dependency-watchdog/config";

/// Puts accounts, roles, bindings and ConfigMaps into a seed; what the testbed has brought under
/// the same names is replaced.
///
/// # Errors
/// When the API server refuses.
pub async fn install(api: &KubeApi, objects: &Manifests) -> Result<()> {
    for object in objects.values() {
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind.ends_with("Role")
            || kind.ends_with("RoleBinding")
            || ["ServiceAccount", "ConfigMap"].contains(&kind)
        {
            api.delete(&path(object)?).await?;
            api.create(object).await?;
        }
    }
    Ok(())
}

/// The container of a Deployment.
///
/// # Errors
/// When there is no such Deployment.
pub fn container<'a>(objects: &'a Manifests, deployment: &str) -> Result<&'a Value> {
    Ok(
        &get(objects, &format!("Deployment garden/{deployment}"))?["spec"]["template"]["spec"]["containers"]
            [0],
    )
}

/// Its command.
///
/// # Errors
/// When there is no such Deployment.
pub fn command(objects: &Manifests, deployment: &str) -> Result<Vec<String>> {
    let words = container(objects, deployment)?["command"]
        .as_array()
        .context("no command")?;
    words
        .iter()
        .map(|word| word.as_str().map(Into::into).context("no word"))
        .collect()
}

/// The config file that a Deployment mounts.
///
/// # Errors
/// When it mounts none.
pub fn config<'a>(objects: &'a Manifests, deployment: &str) -> Result<&'a str> {
    let spec =
        &get(objects, &format!("Deployment garden/{deployment}"))?["spec"]["template"]["spec"];
    let mounted = &spec["containers"][0]["volumeMounts"][0];
    anyhow::ensure!(
        mounted["mountPath"] == CONFIG && spec["volumes"][0]["name"] == mounted["name"],
        "{mounted}"
    );
    let name = spec["volumes"][0]["configMap"]["name"]
        .as_str()
        .context("no ConfigMap")?;
    get(objects, &format!("ConfigMap garden/{name}"))?["data"]["dep-config.yaml"]
        .as_str()
        .context("no dep-config.yaml")
}

impl RunningAgent {
    /// Starts what a Deployment says, with the token of its ServiceAccount, and serves on ports of
    /// its own choice. `change` may shorten the config's times.
    ///
    /// # Errors
    /// When the objects lack something, or it cannot be started.
    pub async fn installed(
        seed: &SeedCluster,
        objects: &Manifests,
        deployment: &str,
        change: impl FnOnce(&str) -> String,
    ) -> Result<Self> {
        let account = get(objects, &format!("Deployment garden/{deployment}"))?["spec"]["template"]
            ["spec"]["serviceAccountName"]
            .as_str()
            .context("no account")?;
        let token = seed.api().token("garden", account).await?;
        let folder = crate::reaper::folder(deployment)?;
        std::fs::write(
            folder.join("dep-config.yaml"),
            change(config(objects, deployment)?),
        )?;
        std::fs::write(
            folder.join("kubeconfig"),
            seed.plane().kubeconfig(&seed.plane().url(), &token),
        )?;
        let mut args: Vec<String> = command(objects, deployment)?.into_iter().skip(1).collect();
        for arg in &mut args {
            *arg = arg.replace(CONFIG, &folder.display().to_string());
        }
        // What the cluster gives a pod by other means.
        args.push(format!(
            "--kubeconfig={}",
            folder.join("kubeconfig").display()
        ));
        args.extend(SERVED.map(Into::into));
        args.push("--pprof-bind-addr=0".into());
        let process = Process::start(deployment, &binary()?, &args, &folder.join("log"))?;
        seed.set_log(process.log_file().to_owned());
        Ok(Self { process })
    }
}
