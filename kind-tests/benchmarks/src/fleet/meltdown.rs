//! All shoots of a seed lose their nodes within a second: how fast the protective writes are, and whether everything comes back.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use chrono::DateTime;
use clap::Args;
use serde_json::json;
use testbed::agent::{Agent, Kind};
use testbed::audit::Asked;
use testbed::seed::{Dependent, MARKER, MEMORY};
use testbed::shoot::KCM;
use testbed::{Bed, KubeApi, Seed, eventually};
use tokio::time::{Instant, sleep};

use super::bare;
use super::fill::{DEPENDENTS, Filling, deployment_path, fill, namespace, replicas};
use super::heart::{Heart, Micros, SECOND, now};
use super::light::{LightShoots, Plan};
use super::usage::Usage;
use crate::report::{Goal, Report, percentile, progress};

/// How long pods take to go, and to come.
const PODS_TAKE: u32 = 1000;
/// Writes that the bare client has in flight, as many as the prober allows itself when it protects (32).
const IN_FLIGHT: usize = 32;
/// How often the seed is asked whether it is so far; a list of all Deployments costs it some tens of milliseconds.
const LOOK: Duration = Duration::from_secs(1);

/// How the melt-down is.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    plan: Plan,
}

/// Runs it.
pub async fn run(bed: &'static Bed, Options { plan }: Options) -> Result<()> {
    let (shoots, grace) = (plan.shoots, plan.grace());
    progress(format!("starting a seed and {shoots} light shoots of {} nodes", plan.nodes));
    let seed = bed.own_seed().await?;
    let mut light = LightShoots::start(plan.clone()).await?;
    fill(seed.api(), &light, &Filling { shoots, foreign_secrets: 0, pods_take: Some(PODS_TAKE) }).await?;
    until(seed.api(), shoots, "all pods run", |state, usual| state.ready == usual).await?;
    let config = plan.short_config()?;
    let prober = Agent::alone(Kind::Prober, &seed.prober_kubeconfig().await?, config.as_deref(), &[])?;
    progress("waiting until each shoot has been probed three times, which is past the initial delay");
    eventually("each shoot has been probed three times", Duration::from_secs(180), async || {
        let few = light.counts().await?.iter().filter(|counts| counts.leases < 3).count();
        ensure!(few == 0, "{few} have not");
        Ok(())
    })
    .await?;
    let healthy = Usage::of(prober.id())?;

    progress("all nodes lose their way, shoot by shoot within a second");
    let mark = seed.plane().mark();
    let cut = now();
    let hearts = light.cut(0..shoots, Duration::from_secs(1)).await?;
    let verdicts: Vec<Micros> = hearts.iter().map(|heart: &Heart| heart.verdict(cut + grace, grace)).collect();
    until(seed.api(), shoots, "all are held down", |state, usual| state.is_held_down(&usual.to_string())).await?;
    let down = writes(&seed.asked_since(&mark))?;
    let molten = Usage::of(prober.id())?;

    progress("all nodes are back");
    let (healed, mark) = (now(), seed.plane().mark());
    light.heal(0..shoots).await?;
    until(seed.api(), shoots, "all are restored", |state, usual| state.is_free_at(usual)).await?;
    let up = writes(&seed.asked_since(&mark))?;
    let (stale, lost) = leftovers(seed.api(), shoots).await?;
    ensure!(prober.terminate().await?.success(), "the prober did not end well");

    let what = format!(
        "all {shoots} shoots of {} nodes fail within 1 s; pods take 1 s to go; Gardener's QPS flags; a real seed",
        plan.nodes
    );
    let mut report = Report::new("meltdown", what);
    let (first_verdict, last_verdict) = (least(&verdicts), most(&verdicts));
    report.figure(
        "verdicts_within",
        "from the first verdict that can fall to the last",
        seconds(last_verdict - first_verdict),
        "s",
    );
    report.figure("first_write", "first write after the first verdict", seconds(least(down.first.values()) - first_verdict), "s");
    let mut first_level: Vec<f64> = Vec::new();
    let mut last_level: Vec<f64> = Vec::new();
    for ((place, name), &at) in &down.first {
        let late = seconds(at - verdicts[*place]);
        if name == KCM { last_level.push(late) } else { first_level.push(late) }
    }
    for (key, what, late, goal) in [
        ("first_level", "at 0 after its shoot's verdict, first level", &mut first_level, 4.0),
        ("kcm", "at 0 after its shoot's verdict, kube-controller-manager", &mut last_level, 8.0),
    ] {
        late.sort_by(f64::total_cmp);
        report.figure(&format!("{key}_min"), format!("{what}, first of {}", late.len()), percentile(late, 0.0), "s");
        report.figure(&format!("{key}_p50"), format!("{what}, median"), percentile(late, 0.5), "s");
        report.measured_against(&format!("{key}_max"), format!("{what}, last"), percentile(late, 1.0), "s", Goal::AtMost(goal));
    }
    report.figure(
        "down_within",
        "from the first verdict to the last write",
        seconds(most(down.first.values()) - first_verdict),
        "s",
    );
    report.figure("conflicts", "writes that met a conflict and were repeated", (down.refused + up.refused) as f64, "");
    report.figure("restored_after", "restored after the nodes were back, last", seconds(most(up.last.values()) - healed), "s");
    report.measured_against("stale", "annotations left", stale as f64, "", Goal::Exactly(0.0));
    report.measured_against("lost", "Deployments without their former replicas", lost as f64, "", Goal::Exactly(0.0));
    report.figure("cpu", "CPU of the prober from the outage to the last write", (molten.cpu - healthy.cpu).as_secs_f64(), "s");
    report.figure("healthy_most", "high-water mark of memory before the outage", healthy.most, "MiB");
    report.figure("most", "high-water mark of memory", molten.most, "MiB");
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
        let failed = bare::patch_all(seed.api(), patches, IN_FLIGHT).await;
        ensure!(failed == 0, "{failed} writes of the bare client failed");
        report.figure(key, what, begin.elapsed().as_secs_f64(), "s");
    }
    report.figure("bare", "a bare client's writes, all", begin.elapsed().as_secs_f64(), "s");
    Ok(())
}

/// When the API server had taken the prober's writes, by shoot and name, in microseconds.
#[derive(Default)]
struct Writes {
    first: HashMap<(usize, String), Micros>,
    last: HashMap<(usize, String), Micros>,
    refused: usize,
}

fn writes(asked: &[Asked]) -> Result<Writes> {
    let mut writes = Writes::default();
    for asked in asked.iter().filter(|asked| asked.verb == "patch" && asked.resource == "deployments") {
        match asked.code {
            200 => {}
            409 => {
                writes.refused += 1;
                continue;
            }
            _ => bail!("{asked:?}"),
        }
        let shoot =
            (asked.namespace.rsplit("--").next().and_then(|number| number.parse().ok())).context("a foreign namespace")?;
        let at = DateTime::parse_from_rfc3339(&asked.answered)?.timestamp_micros();
        let key = (shoot, asked.name.clone());
        writes.first.entry(key.clone()).and_modify(|first| *first = at.min(*first)).or_insert(at);
        writes.last.entry(key).and_modify(|last| *last = at.max(*last)).or_insert(at);
    }
    ensure!(!writes.first.is_empty(), "nothing was written");
    Ok(writes)
}

/// Waits until all Deployments are so; the condition also gets the usual replicas.
async fn until(api: &KubeApi, shoots: usize, what: &str, condition: impl Fn(&Dependent, i64) -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        let states = states(api).await?;
        let state = |shoot: usize, name: &str| states.get(&(namespace(shoot), name.to_owned()));
        let others: Vec<String> = (0..shoots)
            .flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)))
            .filter(|&(shoot, name)| !state(shoot, name).is_some_and(|state| condition(state, replicas(shoot, name))))
            .map(|(shoot, name)| {
                format!("{}/{name}: {}", namespace(shoot), state(shoot, name).map_or("gone".into(), ToString::to_string))
            })
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "not within 300 s: {what}; {} are not, such as {:?}",
            others.len(),
            &others[..others.len().min(3)]
        );
        sleep(LOOK).await;
    }
}

async fn states(api: &KubeApi) -> Result<HashMap<(String, String), Dependent>> {
    let list = api.get("/apis/apps/v1/deployments").await?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().context("no list")?;
    let key = |object: &serde_json::Value| (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    Ok(items.iter().map(|object| (key(object), Dependent::of(object))).collect())
}

/// How many Deployments carry an annotation of the watchdog, and how many have other replicas than before the outage, or are
/// gone.
async fn leftovers(api: &KubeApi, shoots: usize) -> Result<(usize, usize)> {
    let states = states(api).await?;
    let stale = states.values().filter(|state| state.memory.is_some() || state.marker.is_some()).count();
    let all = (0..shoots).flat_map(|shoot| DEPENDENTS.map(|name| (shoot, name)));
    let kept = |&(shoot, name): &(usize, &str)| {
        states.get(&(namespace(shoot), name.to_owned())).is_some_and(|state| state.replicas == replicas(shoot, name))
    };
    Ok((stale, all.filter(|one| !kept(one)).count()))
}

fn seconds(micros: Micros) -> f64 {
    micros as f64 / SECOND as f64
}

fn least<'a>(moments: impl IntoIterator<Item = &'a Micros>) -> Micros {
    moments.into_iter().copied().min().unwrap_or_default()
}

fn most<'a>(moments: impl IntoIterator<Item = &'a Micros>) -> Micros {
    moments.into_iter().copied().max().unwrap_or_default()
}
