//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and
//! whether everything comes back.

use std::collections::HashMap;
use std::iter::zip;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use futures::future::{try_join, try_join_all};
use serde_json::json;
use testbed::audit::Mark;
use testbed::gardener::{CA, KCM, MCM};
use testbed::seed::{MARKER, MEMORY, ReplicaState};
use testbed::shoot::LEASES;
use testbed::usage::Usage;
use testbed::{KubeApi, SeedCluster, Testbed, eventually, start_prober};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::baseline::BareClient;
use super::fill::{DEPENDENTS, FOREIGN_SECRETS, fill_seed, namespace};
use super::synthetic::SyntheticShoots;
use super::{FleetPlan, end, prober_config};
use crate::outage::{DeploymentWrite, seconds, writes};
use crate::report::{BenchmarkReport, progress};

const NODES: &str = "/api/v1/nodes?limit=200";

/// Writes that the bare client has in flight, as many as the prober allows itself when it protects
/// (32).
const IN_FLIGHT: usize = 32;

/// Time that the pods of a Deployment take to go: the second level waits for it, whoever writes.
const PODS_GO: Duration = Duration::from_secs(1);

/// Runs it.
pub async fn run(bed: &'static Testbed, plan: FleetPlan, age: u64) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let fleet = fill_seed(seed.api(), plan).await?;
    let before = states(&seed).await?;
    let prober = start_prober(&seed, prober_config(plan.grace)).await?;
    // Three times is past the initial delay.
    fleet.probed(3, shoots).await?;
    sleep(Duration::from_secs(age)).await;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let verdicts = fleet.cut()?;
    let first_verdict = *verdicts.iter().min().context("no shoots")?;
    let due: HashMap<_, _> = (0..).map(namespace).zip(&verdicts).collect();
    let down = all_written(&seed, &mark, shoots).await?;
    let usage = Usage::of(prober.id())?;
    let [first_level, kcm] = [false, true].map(|is_kcm| {
        let level = down.iter().filter(|write| (write.name == KCM) == is_kcm);
        let late = level.map(|write| seconds(*due[&write.namespace], write.answered));
        late.fold(f64::MIN, f64::max)
    });

    progress("all nodes are back");
    let mark = seed.plane().mark();
    let reconnected = fleet.reconnect();
    let up = all_written(&seed, &mark, shoots).await?;
    end(prober).await?;
    let others = zip(before, states(&seed).await?)
        .filter(|(before, now)| !now.is_free_at(before.replicas))
        .count();
    let bare = bare_client(&seed, &fleet, &verdicts).await?;

    let to_last = |from, writes: &[DeploymentWrite]| {
        let last = writes.last();
        last.map_or(f64::NAN, |last| seconds(from, last.answered))
    };
    let mut report = BenchmarkReport::default();
    let late = |level| format!("at 0 after its shoot's verdict, {level}, last, s");
    report.at_most(&late("first level"), first_level, 4.0);
    report.at_most(&late("kube-controller-manager"), kcm, 8.0);
    report.add("the same of a bare client, s", bare);
    report.add("the first by the second", kcm / bare);
    let down_within = to_last(first_verdict, &down);
    report.add("from the first verdict to the last write, s", down_within);
    let restored = to_last(reconnected, &up);
    report.add("restored after the nodes were back, last, s", restored);
    report.at_most("Deployments that are not as before", others as f64, 0.0);
    report.add("high-water mark of memory, MiB", usage.most);
    let secrets = shoots * FOREIGN_SECRETS;
    report.print(&format!(
        "all {shoots} shoots of {nodes} nodes fail within 1 s, {age} s after the prober's start; pods take 1 s to go; {secrets} foreign Secrets; Gardener's QPS flags; a real seed"
    ));
    Ok(())
}

/// The prober's writes since then, in order, when each Deployment has had one.
async fn all_written(
    seed: &SeedCluster,
    mark: &Mark,
    shoots: usize,
) -> Result<Vec<DeploymentWrite>> {
    eventually("each Deployment was written to once", async || {
        // Each reading of the log takes from the processors that a melt-down needs.
        sleep(Duration::from_secs(1)).await;
        let writes = writes(seed, mark)?;
        let (written, due) = (writes.len(), shoots * DEPENDENTS.len());
        ensure!(written == due, "{written} of {due}");
        Ok(writes)
    })
    .await
}

/// All Deployments, in the same order each time.
async fn states(seed: &SeedCluster) -> Result<Vec<ReplicaState>> {
    let deployments = seed.api().list("/apis/apps/v1/deployments").await?;
    Ok(deployments.iter().map(ReplicaState::of).collect())
}

/// Makes the requests of a melt-down without any thought, each shoot's from the moment at which its
/// verdict was due: leases, nodes, the first level and, when its pods are gone, the second. Returns
/// how late after that the last write was answered, in seconds.
async fn bare_client(
    seed: &SeedCluster,
    fleet: &SyntheticShoots,
    verdicts: &[DateTime<Utc>],
) -> Result<f64> {
    progress("the same requests by a bare client");
    let client = BareClient::new(&fleet.authority.pem())?;
    // Its writes are logged like the prober's, which costs the API server time.
    let api = KubeApi::connect(&seed.prober_kubeconfig().await?).await?;
    let urls = Vec::from_iter(fleet.urls());
    // It has a connection to each, as the prober has.
    try_join_all(urls.iter().map(|url| client.get(format!("{url}{LEASES}")))).await?;
    let first = verdicts.iter().min().context("no shoots")?;
    let begin = Instant::now() + Duration::from_secs(1);
    let in_flight = Semaphore::new(IN_FLIGHT);
    let annotations = json!({MARKER: "", MEMORY: "1"});
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
    let write = async |shoot, name: &str| {
        let namespace = namespace(shoot);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let _permit = in_flight.acquire().await?;
        api.merge(&path, &patch).await
    };
    let melt = async |(shoot, url): (usize, &String)| {
        let due = begin + (verdicts[shoot] - *first).to_std()?;
        sleep_until(due).await;
        client.get(format!("{url}{LEASES}")).await?;
        client.get(format!("{url}{NODES}")).await?;
        try_join(write(shoot, MCM), write(shoot, CA)).await?;
        sleep(PODS_GO).await;
        write(shoot, KCM).await?;
        anyhow::Ok(due.elapsed())
    };
    let late = try_join_all(urls.iter().enumerate().map(melt)).await?;
    let last = late.into_iter().max().unwrap_or_default();
    Ok(last.as_secs_f64())
}
