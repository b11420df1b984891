//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and
//! whether everything comes back.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use testbed::audit::Mark;
use testbed::seed::{MARKER, MEMORY, ReplicaState};
use testbed::shoot::KCM;
use testbed::usage::Usage;
use testbed::{SeedCluster, Testbed, eventually};
use tokio::time::Instant;

use super::fill::{DEPENDENTS, fill_seed, namespace, replicas};
use super::synthetic::FleetPlan;
use super::{end, start_prober};
use crate::course::{Course, seconds};
use crate::report::{BenchmarkReport, Spread, progress};
use crate::writes::{DeploymentWrite, writes};

/// How long pods take to go, and to come.
const PODS_TAKE: u32 = 1000;
/// Writes that the bare client has in flight, as many as the prober allows itself when it protects
/// (32).
const IN_FLIGHT: usize = 32;

/// Runs it.
pub async fn run(bed: &'static Testbed, plan: FleetPlan) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let fleet = fill_seed(seed.api(), plan, 0, Some(PODS_TAKE)).await?;
    until(&seed, shoots, "all pods run", |state, usual| {
        state.ready == usual
    })
    .await?;
    let prober = start_prober(&seed.prober_kubeconfig().await?, &fleet.plan)?;
    // Three times is past the initial delay.
    fleet.probed(3, shoots).await?;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let courses = fleet.cut(Duration::from_secs(1))?;
    until(&seed, shoots, "all are held down", |state, usual| {
        state.is_held_down(&usual.to_string())
    })
    .await?;
    let usage = Usage::of(prober.id())?;
    let down = written(&seed, &mark, shoots).await?;

    progress("all nodes are back");
    let mark = seed.plane().mark();
    let reconnected = fleet.reconnect();
    until(&seed, shoots, "all are restored", |state, usual| {
        state.is_free_at(usual)
    })
    .await?;
    let up = written(&seed, &mark, shoots).await?;
    end(prober).await?;

    let what = format!(
        "all {shoots} shoots of {nodes} nodes fail within 1 s; pods take 1 s to go; Gardener's QPS flags; a real seed"
    );
    let mut report = BenchmarkReport::new("meltdown", what);
    add_protection(&mut report, &courses, &down)?;
    let last = up.last().map(|write| seconds(reconnected, write.answered));
    let count = |is_so: fn(&ReplicaState, i64) -> bool| others(&seed, shoots, is_so).len() as f64;
    report.add([
        ("restored_after", last.unwrap_or(f64::NAN)),
        (
            "stale",
            count(|state, _| state.memory.is_none() && state.marker.is_none()),
        ),
        ("lost", count(|state, usual| state.replicas == usual)),
        ("most", usage.most),
    ]);
    report.add([("bare", bare_writes(&seed, shoots).await?)]);
    report.print()
}

/// How soon all was at 0.
fn add_protection(
    report: &mut BenchmarkReport,
    courses: &[Course],
    writes: &[DeploymentWrite],
) -> Result<()> {
    for (key, is_last) in [("first_level", false), ("kcm", true)] {
        let late = level(courses.len(), is_last).filter_map(|(shoot, name)| {
            let namespace = namespace(shoot);
            let mut writes = writes.iter();
            let write = writes.find(|write| write.namespace == namespace && write.name == name)?;
            Some(seconds(courses[shoot].verdict, write.answered))
        });
        let late = Spread::from_iter(late);
        report.detail("count", late.values().len().into());
        for (part, share) in [("min", 0.0), ("p50", 0.5), ("max", 1.0)] {
            report.add([(&format!("{key}_{part}"), late.at(share))]);
        }
    }
    let begin = courses.iter().map(|course| course.verdict).min();
    let last = writes.last().context("no writes")?.answered;
    report.add([("down_within", seconds(begin.context("no shoots")?, last))]);
    Ok(())
}

/// How long the same writes take a client that has nothing to wait for, in seconds.
async fn bare_writes(seed: &SeedCluster, shoots: usize) -> Result<f64> {
    progress("the same writes by a bare client");
    let write = |(shoot, name): (usize, &'static str)| async move {
        let annotations = json!({MARKER: "", MEMORY: replicas(shoot, name).to_string()});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
        let namespace = namespace(shoot);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        seed.api().merge(&path, &patch).await
    };
    let begin = Instant::now();
    for is_last in [false, true] {
        let writes = stream::iter(level(shoots, is_last)).map(write);
        let writes = writes.buffer_unordered(IN_FLIGHT);
        writes.try_collect::<()>().await?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// The prober's writes since then that the API server took, in order, of which each Deployment has
/// one; others may only meet a conflict. The audit log may tell of the last a little later than a
/// watch.
async fn written(seed: &SeedCluster, mark: &Mark, shoots: usize) -> Result<Vec<DeploymentWrite>> {
    eventually("each Deployment was written to", async || {
        let log = seed.asked_since(mark);
        let mut tried = log
            .iter()
            .filter(|asked| asked.verb == "patch" && asked.resource == "deployments");
        ensure!(
            tried.all(|asked| [200, 409].contains(&asked.code)),
            "{log:?}"
        );
        let writes = writes(&log)?;
        let names = writes.iter().map(|write| (&write.namespace, &write.name));
        let written = HashSet::<_>::from_iter(names).len();
        ensure!(written == shoots * DEPENDENTS.len(), "{written} were");
        Ok(writes)
    })
    .await
}

/// Waits until all Deployments are so; the condition also gets the usual replicas.
async fn until(
    seed: &SeedCluster,
    shoots: usize,
    what: &str,
    condition: impl Fn(&ReplicaState, i64) -> bool,
) -> Result<()> {
    eventually(what, async || {
        let others = others(seed, shoots, &condition);
        let (count, first) = (others.len(), others.first());
        ensure!(count == 0, "{count} are not, such as {first:?}");
        Ok(())
    })
    .await
}

/// The Deployments that are not so, or are gone.
fn others(
    seed: &SeedCluster,
    shoots: usize,
    is_so: impl Fn(&ReplicaState, i64) -> bool,
) -> Vec<(String, String)> {
    let states = seed.journal().states();
    let states = states.borrow();
    let other = |(shoot, name): (usize, &str)| {
        let key = (namespace(shoot), name.to_owned());
        let state = states.get(&key);
        let is_so = state.is_some_and(|state| is_so(state, replicas(shoot, name)));
        (!is_so).then_some(key)
    };
    dependents(shoots).filter_map(other).collect()
}

/// The Deployments of the level that goes down last, or of the one before it.
fn level(shoots: usize, is_last: bool) -> impl Iterator<Item = (usize, &'static str)> {
    dependents(shoots).filter(move |(_, name)| (*name == KCM) == is_last)
}

fn dependents(shoots: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
}
