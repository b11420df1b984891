//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and
//! whether everything comes back.

use std::collections::HashMap;
use std::iter::zip;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use futures::future::{try_join, try_join_all};
use serde_json::json;
use testbed::audit::Mark;
use testbed::gardener::{CA, KCM, MCM};
use testbed::seed::{MARKER, MEMORY, ReplicaState};
use testbed::shoot::LEASES;
use testbed::usage::Usage;
use testbed::{KubeApi, SeedCluster, Testbed, eventually};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::baseline::BareClient;
use super::fill::{DEPENDENTS, fill_seed, namespace, replicas};
use super::synthetic::SyntheticShoots;
use super::{FleetPlan, end, start_prober};
use crate::outage::{DeploymentWrite, seconds, writes};
use crate::report::{BenchmarkReport, progress};

const NODES: &str = "/api/v1/nodes?limit=200";

/// Writes that the bare client has in flight, as many as the prober allows itself when it protects
/// (32).
const IN_FLIGHT: usize = 32;

/// How long the pods of a Deployment take to go, which no client may cut short: the second level waits for it.
const PODS_GO: Duration = Duration::from_secs(1);

/// What melts down, and when.
#[derive(Args, Clone, Copy, Debug)]
pub struct MeltdownOptions {
    #[command(flatten)]
    plan: FleetPlan,
    /// Seconds for which the prober has watched healthy shoots before
    #[arg(long, default_value_t = 360)]
    age: u64,
    /// Secrets on the seed that are none of the prober's business.
    #[arg(long, default_value_t = 20_000)]
    foreign_secrets: usize,
}

/// Runs it.
pub async fn run(bed: &'static Testbed, options: MeltdownOptions) -> Result<()> {
    let MeltdownOptions {
        plan,
        age,
        foreign_secrets,
    } = options;
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let fleet = fill_seed(seed.api(), plan, foreign_secrets).await?;
    let prober = start_prober(&seed.prober_kubeconfig().await?, plan)?;
    // Three times is past the initial delay.
    fleet.probed(3, shoots).await?;
    sleep(Duration::from_secs(age)).await;

    progress("all nodes lose their way, shoot by shoot within a second");
    let (mark, counts) = (seed.plane().mark(), fleet.counts());
    let courses = fleet.cut(TimeDelta::seconds(1))?;
    let verdicts: Vec<_> = courses.iter().map(|course| course.verdict).collect();
    let first_verdict = *verdicts.iter().min().context("no shoots")?;
    let due: HashMap<_, _> = (0..).map(namespace).zip(&verdicts).collect();
    let down = all_written(&seed, &mark, shoots).await?;
    let (usage, now) = (Usage::of(prober.id())?, fleet.counts());
    let late = |is_last: bool| {
        let level = down.iter().filter(|write| (write.name == KCM) == is_last);
        let late = level.map(|write| seconds(*due[&write.namespace], write.answered));
        late.fold(f64::MIN, f64::max)
    };

    progress("all nodes are back");
    let mark = seed.plane().mark();
    let reconnected = fleet.reconnect();
    let up = all_written(&seed, &mark, shoots).await?;
    end(prober).await?;
    let to_last = |from, writes: &[DeploymentWrite]| {
        let last = writes.last().context("no writes")?;
        anyhow::Ok(seconds(from, last.answered))
    };

    let mut report = BenchmarkReport::new(
        "meltdown",
        format!(
            "all {shoots} shoots of {nodes} nodes fail within 1 s, {age} s after the prober's start; pods take 1 s to go; {foreign_secrets} foreign Secrets; Gardener's QPS flags; a real seed"
        ),
    );
    let [first_level, kcm] = ["first level", "kube-controller-manager"]
        .map(|level| format!("at 0 after its shoot's verdict, {level}, last, s"));
    let (first, last) = (late(false), late(true));
    report.at_most(&first_level, first, 4.0);
    report.at_most(&kcm, last, 8.0);
    let down_within = to_last(first_verdict, &down)?;
    let each = |count: usize| (now[count] - counts[count]) as f64 / shoots as f64;
    report.add("requests on a shoot until then", each(0));
    report.add("new connections on a shoot until then", each(1));
    report.add("from the first verdict to the last write, s", down_within);
    let restored = to_last(reconnected, &up)?;
    report.add("restored after the nodes were back, last, s", restored);
    let others = others(&seed, shoots).await?;
    report.at_most("Deployments that are not as before", others, 0.0);
    report.add("high-water mark of memory, MiB", usage.most);
    let bare = bare_client(&seed, &fleet, &verdicts).await?;
    for (level, (ours, bare)) in zip(
        ["first level", "kube-controller-manager"],
        zip([first, last], bare),
    ) {
        report.add(&format!("the same of a bare client, {level}, s"), bare);
        report.add(&format!("the first by the second, {level}"), ours / bare);
    }
    report.print();
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

/// How many Deployments have not their usual replicas, or a trace of the prober.
async fn others(seed: &SeedCluster, shoots: usize) -> Result<f64> {
    let mut count = 0;
    for (shoot, name) in dependents(shoots) {
        let state = ReplicaState::of(&seed.api().get(&path(shoot, name)).await?);
        count += usize::from(!state.is_free_at(replicas(shoot, name)));
    }
    Ok(count as f64)
}

/// Makes the requests of a melt-down without any thought, each shoot's from the moment at which its verdict was due: leases, nodes, the first
/// level and, when its pods are gone, the second. Returns how late after that the last write of each level was answered, in seconds.
async fn bare_client(
    seed: &SeedCluster,
    fleet: &SyntheticShoots,
    verdicts: &[DateTime<Utc>],
) -> Result<[f64; 2]> {
    progress("the same requests by a bare client");
    let client = BareClient::new(&fleet.authority.pem())?;
    // Its writes are logged like the prober's, which costs the API server time.
    let api = KubeApi::connect(&seed.prober_kubeconfig().await?).await?;
    let urls: Vec<_> = fleet.urls().collect();
    // It has a connection to each, as the prober has.
    try_join_all(urls.iter().map(|url| client.get(format!("{url}{LEASES}")))).await?;
    let first = verdicts.iter().min().context("no shoots")?;
    let (begin, in_flight) = (
        Instant::now() + Duration::from_secs(1),
        Semaphore::new(IN_FLIGHT),
    );
    let write = async |shoot, name: &str| {
        let annotations = json!({MARKER: "", MEMORY: replicas(shoot, name).to_string()});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
        let _permit = in_flight.acquire().await?;
        api.merge(&path(shoot, name), &patch).await
    };
    let melt = async |shoot: usize| {
        let due = begin + (verdicts[shoot] - *first).to_std()?;
        sleep_until(due).await;
        client.get(format!("{}{LEASES}", urls[shoot])).await?;
        client.get(format!("{}{NODES}", urls[shoot])).await?;
        try_join(write(shoot, MCM), write(shoot, CA)).await?;
        let first_level = due.elapsed();
        sleep(PODS_GO).await;
        write(shoot, KCM).await?;
        anyhow::Ok([first_level, due.elapsed()])
    };
    let late = try_join_all((0..verdicts.len()).map(melt)).await?;
    Ok([0, 1].map(|level| {
        late.iter()
            .map(|late| late[level].as_secs_f64())
            .fold(0.0, f64::max)
    }))
}

fn dependents(shoots: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
}

fn path(shoot: usize, name: &str) -> String {
    let namespace = namespace(shoot);
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}
