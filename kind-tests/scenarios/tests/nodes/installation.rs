//! The agents, installed as deploy/README.md says: with kustomize, and then with the chart, in a
//! namespace that holds pods to the restricted standard.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::gardener::GARDEN;
use testbed::{eventually, go_programs, reaper};
use tokio::process::Command;

use crate::commands::{run, said};
use crate::images::PRODUCT;
use crate::policies::Policies;
use crate::world::NodeWorld;

/// Both Deployments.
pub const AGENTS: [&str; 2] = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];
/// Where the program is in the image.
const PROGRAM: &str = "/usr/local/bin/dependency-watchdog";

/// What is installed.
pub struct Installation {
    helm: PathBuf,
    home: PathBuf,
}

impl Installation {
    /// Installs by kustomize, removes that, and installs by the chart; the NetworkPolicies hold
    /// from then on.
    pub async fn of(world: &NodeWorld) -> Result<Self> {
        let tools = go_programs::built("deployment-tools")?;
        let file = kustomized(&tools.join("kustomize")).await?;
        no_warning(&world.kubectl(&format!("apply --filename {file}")).await?)?;
        ready(world).await?;
        let delete = format!("delete --wait --filename {file}");
        world.kubectl(&delete).await?;
        eventually("the pods have gone", async || {
            let pods = world.seed.api().names(&pods()).await?;
            ensure!(pods.is_empty(), "{pods:?}");
            Ok(())
        })
        .await?;

        let installation = Self {
            helm: tools.join("helm"),
            home: reaper::folder("helm")?,
        };
        installation.upgrade(world, &[]).await?;
        ready(world).await?;
        Ok(installation)
    }

    /// Installs or changes the chart's release.
    pub async fn upgrade(&self, world: &NodeWorld, more: &[&str]) -> Result<()> {
        let chart = crate::images::repository().join("deploy/helm/dependency-watchdog");
        let mut command = Command::new(&self.helm);
        command
            .args(["upgrade", "--install", "dependency-watchdog"])
            .arg(chart)
            .args([
                "--namespace",
                GARDEN,
                &format!("--set=image.repository={PRODUCT}"),
            ])
            .args(more)
            .env("HOME", &self.home)
            .env("KUBECONFIG", &world.kubeconfig);
        no_warning(&said(&mut command).await?)
    }
}

/// The manifests of the overlay `plain` with the image's name, in a file.
async fn kustomized(kustomize: &Path) -> Result<String> {
    let folder = reaper::folder("kustomize")?;
    let repository = crate::images::repository();
    std::fs::create_dir(folder.join("deploy"))?;
    for (from, to) in [("deploy/kustomize", "deploy"), ("config", ".")] {
        let [from, to] =
            [repository.join(from), folder.join(to)].map(|path| path.display().to_string());
        run(&format!("cp -r {from} {to}")).await?;
    }
    let overlay = folder.join("deploy/kustomize/overlays/plain");
    let image = format!(
        "dependency-watchdog={PRODUCT}:{}",
        env!("CARGO_PKG_VERSION")
    );
    said(
        Command::new(kustomize)
            .args(["edit", "set", "image", &image])
            .current_dir(&overlay),
    )
    .await?;
    let (manifests, _) = said(Command::new(kustomize).arg("build").current_dir(&overlay)).await?;
    let file = folder.join("manifests.yaml");
    std::fs::write(&file, manifests)?;
    Ok(file.display().to_string())
}

/// The pods of both agents.
pub fn pods() -> String {
    format!("/api/v1/namespaces/{GARDEN}/pods")
}

fn no_warning((_, said): &(String, String)) -> Result<()> {
    ensure!(!said.contains("arning"), "{said}");
    Ok(())
}

/// Waits until all replicas are ready and both agents have a leader; no probe of a kubelet's may
/// have failed on the way.
async fn ready(world: &NodeWorld) -> Result<()> {
    let api = world.seed.api();
    for name in AGENTS {
        eventually("the agent is ready and has a leader", async || {
            let status = api
                .get(&format!(
                    "/apis/apps/v1/namespaces/{GARDEN}/deployments/{name}"
                ))
                .await?["status"]
                .take();
            ensure!(
                status["readyReplicas"] == 2
                    && status["updatedReplicas"] == 2
                    && status["replicas"] == 2,
                "{status}"
            );
            leader(world, name).await
        })
        .await?;
    }
    let pods = api.list(&pods()).await?;
    let restarted = |pod: &&Value| pod["status"]["containerStatuses"][0]["restartCount"] != 0;
    let restarted: Vec<_> = pods.iter().filter(restarted).collect();
    ensure!(
        restarted.is_empty(),
        "containers have restarted: {restarted:?}"
    );
    let unhealthy = format!("/api/v1/namespaces/{GARDEN}/events?fieldSelector=reason%3DUnhealthy");
    let mut notes = api.list(&unhealthy).await?;
    // A probe that is under way when its pod is deleted may fail.
    notes.retain(|event| {
        let uid = &event["involvedObject"]["uid"];
        pods.iter().any(|pod| pod["metadata"]["uid"] == *uid)
    });
    ensure!(
        notes.is_empty(),
        "probes have failed at the start: {notes:?}"
    );
    Ok(())
}

/// The pod that leads.
pub async fn leader(world: &NodeWorld, agent: &str) -> Result<String> {
    let lease = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{GARDEN}/leases/{}",
        agent.replace("dependency-watchdog", "dwd") + "-leader-election"
    );
    let holder = world.seed.api().get(&lease).await?["spec"]["holderIdentity"].take();
    let pods = world.seed.api().names(&pods()).await?;
    let found = pods.into_iter().find(|pod| {
        holder
            .as_str()
            .is_some_and(|holder| holder.starts_with(pod.as_str()))
    });
    found.ok_or_else(|| anyhow::anyhow!("no pod holds the Lease: {holder}"))
}

static INSTALLED: tokio::sync::OnceCell<(Installation, Policies)> =
    tokio::sync::OnceCell::const_new();

/// The installation that all tests share.
pub async fn installed(world: &'static NodeWorld) -> Result<&'static (Installation, Policies)> {
    INSTALLED
        .get_or_try_init(async || {
            world.shoot.publish().await?;
            let installed = (
                Installation::of(world).await?,
                Policies::enforce(world).await?,
            );
            let status = format!(
                "--namespace {GARDEN} exec deployment/{} -- {PROGRAM} status --address localhost:9644",
                AGENTS[0]
            );
            let (status, _) = world.kubectl(&status).await?;
            ensure!(status.contains(world.shoot.namespace), "{status}");
            Ok(installed)
        })
        .await
}
