//! The agents, installed with the chart, as deploy/README.md says, in a namespace that holds pods to
//! the restricted standard.

use anyhow::{Context, Result, ensure};
use testbed::gardener::GARDEN;
use testbed::{agent, eventually, go_programs, reaper};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::commands::said;
use crate::images::{PRODUCT, repository};
use crate::policies::enforce;
use crate::world::NodeWorld;

/// Both Deployments.
pub const AGENTS: [&str; 2] = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];
/// The pods of both agents.
pub const PODS: &str = "/api/v1/namespaces/garden/pods";
/// Where the program is in the image.
const PROGRAM: &str = "/usr/local/bin/dependency-watchdog";

/// Installs the chart.
async fn install(world: &NodeWorld) -> Result<()> {
    let mut helm = Command::new(go_programs::built("deployment-tools")?.join("helm"));
    helm.args(["upgrade", "--install", "dependency-watchdog"])
        .arg(repository().join("deploy/helm/dependency-watchdog"))
        .args(["--namespace", GARDEN])
        .arg(format!("--set=image.repository={PRODUCT}"))
        .env("HOME", reaper::folder("helm")?)
        .env("KUBECONFIG", &world.kubeconfig);
    let (_, said) = said(&mut helm).await?;
    ensure!(!said.contains("arning"), "{said}");
    ready(world).await
}

/// Waits until all replicas are ready and both agents have a leader; none was restarted on the way.
async fn ready(world: &NodeWorld) -> Result<()> {
    let api = world.seed.api();
    for name in AGENTS {
        eventually("the agent is ready and has a leader", async || {
            let deployment = format!("/apis/apps/v1/namespaces/{GARDEN}/deployments/{name}");
            let status = api.get(&deployment).await?["status"].take();
            let counts = ["replicas", "updatedReplicas", "readyReplicas"];
            ensure!(counts.iter().all(|count| status[count] == 2), "{status}");
            leader(world, name).await
        })
        .await?;
    }
    let mut restarted = api.list(PODS).await?;
    restarted.retain(|pod| pod["status"]["containerStatuses"][0]["restartCount"] != 0);
    ensure!(restarted.is_empty(), "restarted: {restarted:#?}");
    Ok(())
}

/// The pod that leads.
pub async fn leader(world: &NodeWorld, agent: &str) -> Result<String> {
    let lease = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{GARDEN}/leases/{}-leader-election",
        agent.replace("dependency-watchdog", "dwd")
    );
    let lease = world.seed.api().get(&lease).await?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let mut pods = world.seed.api().names(PODS).await?.into_iter();
    let leader = pods.find(|pod| holder.starts_with(pod.as_str()));
    leader.with_context(|| format!("no pod holds the Lease: {holder}"))
}

static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// Installs them, once for all tests.
pub async fn installed(world: &'static NodeWorld) -> Result<()> {
    INSTALLED
        .get_or_try_init(async || {
            world.shoot.publish().await?;
            install(world).await?;
            enforce(world).await?;
            let status = format!(
                "--namespace {GARDEN} exec deployment/{} -- {PROGRAM} status --address localhost:9644",
                AGENTS[0]
            );
            let (inside, _) = world.kubectl(&status).await?;
            // From outside, by a port-forward to the leader's pod.
            let mut program = Command::new(agent::binary()?);
            program.args(["status", "--kubeconfig"]).arg(&world.kubeconfig);
            let (outside, _) = said(&mut program).await?;
            for status in [inside, outside] {
                ensure!(status.contains(world.shoot.namespace), "{status}");
            }
            Ok(())
        })
        .await
        .copied()
}
