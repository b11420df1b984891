//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and
//! whether everything comes back.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use testbed::audit::Mark;
use testbed::seed::{Dependent, MARKER, MEMORY};
use testbed::shoot::KCM;
use testbed::usage::Usage;
use testbed::{Bed, Seed, eventually};
use tokio::time::Instant;

use super::fill::{DEPENDENTS, filled, namespace, replicas};
use super::light::FleetPlan;
use crate::course::seconds;
use crate::report::Goal::{AtMost, Exactly};
use crate::report::{BenchmarkReport, Spread, progress};
use crate::writes::{DeploymentWrite, writes};

/// How long pods take to go, and to come.
const PODS_TAKE: u32 = 1000;
/// Writes that the bare client has in flight, as many as the prober allows itself when it protects
/// (32).
const IN_FLIGHT: usize = 32;

/// Runs it.
pub async fn run(bed: &'static Bed, plan: FleetPlan) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let mut light = filled(seed.api(), plan.clone(), 0, Some(PODS_TAKE)).await?;
    until(&seed, shoots, "all pods run", |state, usual| {
        state.ready == usual
    })
    .await?;
    let prober = super::prober(&seed.prober_kubeconfig().await?, &plan)?;
    // Three times is past the initial delay.
    light.probed(3, shoots).await?;
    let healthy = Usage::of(prober.id())?;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let courses = light.cut(Duration::from_secs(1)).await?;
    until(&seed, shoots, "all are held down", |state, usual| {
        state.is_held_down(&usual.to_string())
    })
    .await?;
    let molten = Usage::of(prober.id())?;
    let (down, conflicts) = written(&seed, &mark, shoots).await?;

    progress("all nodes are back");
    let mark = seed.plane().mark();
    let healed = light.heal().await?;
    until(&seed, shoots, "all are restored", |state, usual| {
        state.is_free_at(usual)
    })
    .await?;
    let (up, more_conflicts) = written(&seed, &mark, shoots).await?;
    super::end(prober).await?;

    let what = format!(
        "all {shoots} shoots of {nodes} nodes fail within 1 s; pods take 1 s to go; Gardener's QPS flags; a real seed"
    );
    let mut report = BenchmarkReport::new("meltdown", what);
    let begin = courses
        .iter()
        .map(|course| course.verdict)
        .min()
        .context("no shoots")?;
    let verdicts: Spread = courses
        .iter()
        .map(|course| seconds(begin, course.verdict))
        .collect();
    let after: Spread = down
        .iter()
        .map(|write| seconds(begin, write.answered))
        .collect();
    report.rows([
        (
            "verdicts_within",
            "from the first verdict that can fall to the last",
            verdicts.at(1.0),
            "s",
            None,
        ),
        (
            "first_write",
            "first write after the first verdict",
            after.at(0.0),
            "s",
            None,
        ),
    ]);
    for (key, what, is_last_level, goal) in [
        (
            "first_level",
            "at 0 after its shoot's verdict, first level",
            false,
            4.0,
        ),
        (
            "kcm",
            "at 0 after its shoot's verdict, kube-controller-manager",
            true,
            8.0,
        ),
    ] {
        let of_level = dependents(shoots).filter(|(_, name)| (*name == KCM) == is_last_level);
        let late = of_level.filter_map(|(shoot, name)| {
            let first = down
                .iter()
                .find(|write| write.namespace == namespace(shoot) && write.name == name)?;
            Some(seconds(courses[shoot].verdict, first.answered))
        });
        let late: Spread = late.collect();
        report.rows([
            (
                &format!("{key}_min"),
                &format!("{what}, first of {}", late.values().len()),
                late.at(0.0),
                "s",
                None,
            ),
            (
                &format!("{key}_p50"),
                &format!("{what}, median"),
                late.at(0.5),
                "s",
                None,
            ),
            (
                &format!("{key}_max"),
                &format!("{what}, last"),
                late.at(1.0),
                "s",
                Some(AtMost(goal)),
            ),
        ]);
    }
    let restored = up
        .last()
        .map_or(f64::NAN, |write| seconds(healed, write.answered));
    let stale = others(&seed, shoots, |state, _| {
        state.memory.is_none() && state.marker.is_none()
    })
    .len();
    let lost = others(&seed, shoots, |state, usual| state.replicas == usual).len();
    report.rows([
        (
            "down_within",
            "from the first verdict to the last write",
            after.at(1.0),
            "s",
            None,
        ),
        (
            "conflicts",
            "writes that met a conflict and were repeated",
            (conflicts + more_conflicts) as f64,
            "",
            None,
        ),
        (
            "restored_after",
            "restored after the nodes were back, last",
            restored,
            "s",
            None,
        ),
        (
            "stale",
            "annotations left",
            stale as f64,
            "",
            Some(Exactly(0.0)),
        ),
        (
            "lost",
            "Deployments without their former replicas",
            lost as f64,
            "",
            Some(Exactly(0.0)),
        ),
        (
            "cpu",
            "CPU of the prober from the outage to the last write",
            (molten.cpu - healthy.cpu).as_secs_f64(),
            "s",
            None,
        ),
        (
            "healthy_most",
            "high-water mark of memory before the outage",
            healthy.most,
            "MiB",
            None,
        ),
        (
            "most",
            "high-water mark of memory",
            molten.most,
            "MiB",
            None,
        ),
    ]);
    compare(&seed, shoots, &mut report).await?;
    report.print()
}

/// The same writes by a client that has nothing to wait for.
async fn compare(seed: &Seed, shoots: usize, report: &mut BenchmarkReport) -> Result<()> {
    progress("the same writes by a bare client");
    let write = |(shoot, name): (usize, &'static str)| async move {
        let annotations = json!({MARKER: "", MEMORY: replicas(shoot, name).to_string()});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{name}",
            namespace(shoot)
        );
        seed.api().merge(&path, &patch).await.map(drop)
    };
    let begin = Instant::now();
    for (key, what, is_last_level) in [
        (
            "bare_first_level",
            "a bare client's writes to the first level",
            false,
        ),
        (
            "bare_kcm",
            "a bare client's writes to kube-controller-manager",
            true,
        ),
    ] {
        let begin = Instant::now();
        let of_level = dependents(shoots).filter(|(_, name)| (*name == KCM) == is_last_level);
        stream::iter(of_level)
            .map(write)
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await?;
        report.rows([(key, what, begin.elapsed().as_secs_f64(), "s", None)]);
    }
    report.rows([(
        "bare",
        "a bare client's writes, all",
        begin.elapsed().as_secs_f64(),
        "s",
        None,
    )]);
    Ok(())
}

/// The prober's writes since then that the API server took, in order, of which each Deployment has
/// one, and how many it refused for a conflict. The audit log may tell of the last a little later
/// than a watch.
async fn written(seed: &Seed, mark: &Mark, shoots: usize) -> Result<(Vec<DeploymentWrite>, usize)> {
    eventually("each Deployment was written to", async || {
        let log = seed.asked_since(mark);
        let tried = log
            .iter()
            .filter(|asked| asked.verb == "patch" && asked.resource == "deployments");
        let (conflicts, others): (Vec<_>, Vec<_>) = tried.partition(|asked| asked.code == 409);
        ensure!(others.iter().all(|asked| asked.code == 200), "{others:?}");
        let writes = writes(&log)?;
        let written: HashSet<_> = writes
            .iter()
            .map(|write| (&write.namespace, &write.name))
            .collect();
        ensure!(
            written.len() == shoots * DEPENDENTS.len(),
            "{} were",
            written.len()
        );
        Ok((writes, conflicts.len()))
    })
    .await
}

/// Waits until all Deployments are so; the condition also gets the usual replicas.
async fn until(
    seed: &Seed,
    shoots: usize,
    what: &str,
    condition: impl Fn(&Dependent, i64) -> bool,
) -> Result<()> {
    eventually(what, async || {
        let others = others(seed, shoots, &condition);
        ensure!(
            others.is_empty(),
            "{} are not, such as {:?}",
            others.len(),
            others[0]
        );
        Ok(())
    })
    .await
}

/// The Deployments that are not so, or are gone.
fn others(
    seed: &Seed,
    shoots: usize,
    is_so: impl Fn(&Dependent, i64) -> bool,
) -> Vec<(String, &'static str, Option<Dependent>)> {
    let states = seed.journal().states();
    let states = states.borrow();
    let other = |(shoot, name): (usize, &'static str)| {
        let state = states.get(&(namespace(shoot), name.to_owned()));
        let is_other = !state.is_some_and(|state| is_so(state, replicas(shoot, name)));
        is_other.then(|| (namespace(shoot), name, state.cloned()))
    };
    dependents(shoots).filter_map(other).collect()
}

fn dependents(shoots: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
}
