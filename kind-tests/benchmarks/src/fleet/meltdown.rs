//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and whether everything comes back.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;
use testbed::audit::Mark;
use testbed::seed::{Dependent, MARKER, MEMORY};
use testbed::shoot::KCM;
use testbed::usage::Usage;
use testbed::{Bed, Seed, eventually};
use tokio::time::Instant;

use super::bare;
use super::fill::{DEPENDENTS, Filling, deployment_path, fill, namespace, replicas};
use super::light::{LightShoots, Plan};
use crate::course::{Course, seconds};
use crate::report::Goal::{AtMost, Exactly};
use crate::report::{Report, Spread, progress};
use crate::writes::{Write, writes};

/// How long pods take to go, and to come.
const PODS_TAKE: u32 = 1000;
/// Writes that the bare client has in flight, as many as the prober allows itself when it protects (32).
const IN_FLIGHT: usize = 32;
/// All is restored about 70 s after 300 shoots were cut off; a busy machine takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// How the melt-down is.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    plan: Plan,
}

/// Runs it.
pub async fn run(bed: &'static Bed, Options { plan }: Options) -> Result<()> {
    let Plan { shoots, nodes, .. } = plan;
    progress(format!("starting a seed and {shoots} light shoots of {nodes} nodes"));
    let seed = bed.own_seed().await?;
    let mut light = LightShoots::start(plan.clone()).await?;
    fill(seed.api(), &light, &Filling { shoots, foreign_secrets: 0, pods_take: Some(PODS_TAKE) }).await?;
    until(&seed, shoots, "all pods run", |state, usual| state.ready == usual).await?;
    let prober = super::prober(&seed.prober_kubeconfig().await?, &plan)?;
    // Three times is past the initial delay.
    light.probed(3, shoots).await?;
    let healthy = Usage::of(prober.id())?;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let courses = light.cut(Duration::from_secs(1)).await?;
    until(&seed, shoots, "all are held down", |state, usual| state.is_held_down(&usual.to_string())).await?;
    let molten = Usage::of(prober.id())?;
    let down = written(&seed, &mark, shoots).await?;

    progress("all nodes are back");
    let mark = seed.plane().mark();
    let healed = light.heal().await?;
    until(&seed, shoots, "all are restored", |state, usual| state.is_free_at(usual)).await?;
    let up = written(&seed, &mark, shoots).await?;
    super::end(prober).await?;

    let what =
        format!("all {shoots} shoots of {nodes} nodes fail within 1 s; pods take 1 s to go; Gardener's QPS flags; a real seed");
    let mut report = Report::new("meltdown", what);
    let verdicts: HashMap<String, DateTime<Utc>> =
        courses.iter().enumerate().map(|(shoot, course): (usize, &Course)| (namespace(shoot), course.verdict)).collect();
    let first_verdict = verdicts.values().min().copied().context("no shoots")?;
    let last_verdict = verdicts.values().max().copied().context("no shoots")?;
    let mut first = HashMap::new();
    for write in &down.writes {
        first.entry((&write.namespace, &write.name)).or_insert(write.answered);
    }
    let after_first = |at: Option<&DateTime<Utc>>| at.map_or(f64::NAN, |at| seconds(first_verdict, *at));
    report.rows([
        ("verdicts_within", "from the first verdict that can fall to the last", seconds(first_verdict, last_verdict), "s", None),
        ("first_write", "first write after the first verdict", after_first(first.values().min()), "s", None),
    ]);
    for (key, what, is_last_level, goal) in [
        ("first_level", "at 0 after its shoot's verdict, first level", false, 4.0),
        ("kcm", "at 0 after its shoot's verdict, kube-controller-manager", true, 8.0),
    ] {
        let of_level = first.iter().filter(|((_, name), _)| (*name == KCM) == is_last_level);
        let late: Option<Spread> = of_level.map(|((shoot, _), at)| Some(seconds(*verdicts.get(*shoot)?, *at))).collect();
        let late = late.context("a write to a foreign namespace")?;
        report.rows([
            (&format!("{key}_min"), &format!("{what}, first of {}", late.values().len()), late.at(0.0), "s", None),
            (&format!("{key}_p50"), &format!("{what}, median"), late.at(0.5), "s", None),
            (&format!("{key}_max"), &format!("{what}, last"), late.at(1.0), "s", Some(AtMost(goal))),
        ]);
    }
    let restored = up.writes.last().map_or(f64::NAN, |write| seconds(healed, write.answered));
    let (stale, lost) = leftovers(&seed, shoots);
    report.rows([
        ("down_within", "from the first verdict to the last write", after_first(first.values().max()), "s", None),
        ("conflicts", "writes that met a conflict and were repeated", (down.conflicts + up.conflicts) as f64, "", None),
        ("restored_after", "restored after the nodes were back, last", restored, "s", None),
        ("stale", "annotations left", stale as f64, "", Some(Exactly(0.0))),
        ("lost", "Deployments without their former replicas", lost as f64, "", Some(Exactly(0.0))),
        ("cpu", "CPU of the prober from the outage to the last write", (molten.cpu - healthy.cpu).as_secs_f64(), "s", None),
        ("healthy_most", "high-water mark of memory before the outage", healthy.most, "MiB", None),
        ("most", "high-water mark of memory", molten.most, "MiB", None),
    ]);
    compare(&seed, shoots, &mut report).await?;
    report.print();
    Ok(())
}

/// The same writes by a client that has nothing to wait for.
async fn compare(seed: &Seed, shoots: usize, report: &mut Report) -> Result<()> {
    progress("the same writes by a bare client");
    let patch = |shoot: usize, name: &str| {
        let annotations = json!({MARKER: "", MEMORY: replicas(shoot, name).to_string()});
        (deployment_path(shoot, name), json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}}))
    };
    let begin = Instant::now();
    for (key, what, names) in [
        ("bare_first_level", "a bare client's writes to the first level", &DEPENDENTS[1..]),
        ("bare_kcm", "a bare client's writes to kube-controller-manager", &DEPENDENTS[..1]),
    ] {
        let begin = Instant::now();
        let patches = (0..shoots).flat_map(|shoot| names.iter().map(move |name| patch(shoot, name))).collect();
        bare::patch_all(seed.api(), patches, IN_FLIGHT).await?;
        report.add(key, what, begin.elapsed().as_secs_f64(), "s", None);
    }
    report.add("bare", "a bare client's writes, all", begin.elapsed().as_secs_f64(), "s", None);
    Ok(())
}

/// The prober's writes that the API server took, in order, and how many it refused for a conflict.
struct Written {
    writes: Vec<Write>,
    conflicts: usize,
}

/// All of them since then, of which each Deployment has one; the audit log may tell of the last a little later than a watch.
async fn written(seed: &Seed, mark: &Mark, shoots: usize) -> Result<Written> {
    eventually("each Deployment was written to", PATIENCE, async || {
        let log = seed.asked_since(mark);
        let tried = log.iter().filter(|asked| asked.verb == "patch" && asked.resource == "deployments");
        let (conflicts, others): (Vec<_>, Vec<_>) = tried.partition(|asked| asked.code == 409);
        ensure!(others.iter().all(|asked| asked.code == 200), "{others:?}");
        let writes = writes(&log)?;
        let written: HashSet<_> = writes.iter().map(|write| (&write.namespace, &write.name)).collect();
        ensure!(written.len() == shoots * DEPENDENTS.len(), "{} were", written.len());
        Ok(Written { conflicts: conflicts.len(), writes })
    })
    .await
}

/// Waits until all Deployments are so; the condition also gets the usual replicas.
async fn until(seed: &Seed, shoots: usize, what: &str, condition: impl Fn(&Dependent, i64) -> bool) -> Result<()> {
    let states = seed.journal().states();
    eventually(what, PATIENCE, async || {
        let states = states.borrow();
        let others: Vec<_> = dependents(shoots)
            .map(|(shoot, name)| (states.get(&(namespace(shoot), name.to_owned())), shoot, name))
            .filter(|(state, shoot, name)| !state.is_some_and(|state| condition(state, replicas(*shoot, name))))
            .collect();
        ensure!(others.is_empty(), "{} are not, such as {:?}", others.len(), &others[..others.len().min(3)]);
        Ok(())
    })
    .await
}

/// How many Deployments carry an annotation of the watchdog, and how many have other replicas than before the outage, or are
/// gone.
fn leftovers(seed: &Seed, shoots: usize) -> (usize, usize) {
    let states = seed.journal().states();
    let states = states.borrow();
    let stale = states.values().filter(|state| state.memory.is_some() || state.marker.is_some()).count();
    let is_kept = |&(shoot, name): &(usize, &str)| {
        states.get(&(namespace(shoot), name.to_owned())).is_some_and(|state| state.replicas == replicas(shoot, name))
    };
    (stale, dependents(shoots).filter(|one| !is_kept(one)).count())
}

fn dependents(shoots: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
}
