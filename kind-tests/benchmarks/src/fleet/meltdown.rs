//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and
//! whether everything comes back.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use chrono::TimeDelta;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use testbed::audit::Mark;
use testbed::gardener::KCM;
use testbed::seed::{MARKER, MEMORY, ReplicaState};
use testbed::usage::Usage;
use testbed::{SeedCluster, Testbed, eventually};
use tokio::time::Instant;

use super::fill::{DEPENDENTS, fill_seed, namespace, replicas};
use super::{FleetPlan, end, start_prober};
use crate::outage::{DeploymentWrite, seconds, writes};
use crate::report::{BenchmarkReport, progress};

/// Writes that the bare client has in flight, as many as the prober allows itself when it protects
/// (32).
const IN_FLIGHT: usize = 32;

/// Runs it.
pub async fn run(bed: &'static Testbed, plan: FleetPlan) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let fleet = fill_seed(seed.api(), plan, 0).await?;
    let prober = start_prober(&seed.prober_kubeconfig().await?, plan)?;
    // Three times is past the initial delay.
    fleet.probed(3, shoots).await?;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let courses = fleet.cut(TimeDelta::seconds(1))?;
    let verdicts = courses.iter().map(|course| course.verdict);
    let first_verdict = verdicts.clone().min().context("no shoots")?;
    let verdicts: HashMap<_, _> = (0..).map(namespace).zip(verdicts).collect();
    let down = all_written(&seed, &mark, shoots).await?;
    let usage = Usage::of(prober.id())?;
    let late = |is_last: bool| {
        let level = down.iter().filter(|write| (write.name == KCM) == is_last);
        let late = level.map(|write| seconds(verdicts[&write.namespace], write.answered));
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
            "all {shoots} shoots of {nodes} nodes fail within 1 s; pods take 1 s to go; Gardener's QPS flags; a real seed"
        ),
    );
    let [first_level, kcm] = ["first level", "kube-controller-manager"]
        .map(|level| format!("at 0 after its shoot's verdict, {level}, last, s"));
    report.at_most(&first_level, late(false), 4.0);
    report.at_most(&kcm, late(true), 8.0);
    let down_within = to_last(first_verdict, &down)?;
    report.add("from the first verdict to the last write, s", down_within);
    let restored = to_last(reconnected, &up)?;
    report.add("restored after the nodes were back, last, s", restored);
    let others = others(&seed, shoots).await?;
    report.at_most("Deployments that are not as before", others, 0.0);
    report.add("high-water mark of memory, MiB", usage.most);
    let bare = bare_writes(&seed, shoots).await?;
    report.add("a bare client's writes, all, s", bare);
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

/// How long the same writes take a client that has nothing to wait for, in seconds.
async fn bare_writes(seed: &SeedCluster, shoots: usize) -> Result<f64> {
    progress("the same writes by a bare client");
    let write = |(shoot, name): (usize, &'static str)| async move {
        let annotations = json!({MARKER: "", MEMORY: replicas(shoot, name).to_string()});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
        seed.api().merge(&path(shoot, name), &patch).await
    };
    let begin = Instant::now();
    for is_last in [false, true] {
        let level = dependents(shoots).filter(|(_, name)| (*name == KCM) == is_last);
        let writes = stream::iter(level).map(write).buffer_unordered(IN_FLIGHT);
        writes.try_collect::<()>().await?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

fn dependents(shoots: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
}

fn path(shoot: usize, name: &str) -> String {
    let namespace = namespace(shoot);
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}
