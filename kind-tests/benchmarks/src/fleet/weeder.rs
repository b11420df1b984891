//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the
//! Service that it needs is back.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, RunningAgent};
use testbed::audit::Asked;
use testbed::crash_loop::{self, PodHealth, ROLE, pod, set_health, slice};
use testbed::gardener::{self, GARDEN, WEEDER, WEEDER_USER, weeder_access};
use testbed::page::page;
use testbed::usage::Usage;
use testbed::{SeedCluster, Testbed, eventually};
use tokio::time::{Instant, interval, sleep_until};

use super::end;
use super::fill::create;
use crate::course::seconds;
use crate::report::{BenchmarkReport, Spread, progress};

/// The Service that comes back.
const SERVICE: &str = "kube-apiserver";
const SLICES: [&str; 2] = ["etcd-main-client", SERVICE];
/// Pods of a control plane by their names, which are their roles too: the one that waits, what the
/// Services stand for, and what else there is.
const WAITING: &str = "controller-manager";
const OF_SERVICES: [&str; 2] = ["main", "apiserver"];
const OTHERS: usize = 9;
/// Objects per page of a list, the size that kubectl and the weeder use.
const PAGE: usize = 500;
/// Between two bursts of recoveries in the first seconds after a start.
const BETWEEN: Duration = Duration::from_millis(500);

/// How the seed is.
#[derive(Args, Clone, Debug)]
pub struct WeederOptions {
    /// How many shoots.
    #[arg(long, default_value_t = 300)]
    shoots: usize,
    /// Services that come back at once.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// How often that happens while all is quiet, and as often again in the first seconds after a
    /// start.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// How many of the latter come after one start.
    #[arg(long, default_value_t = 5)]
    rounds_per_start: usize,
    /// For how many seconds the requests of a start are counted; the Go original's were in 20.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Runs it.
pub async fn run(bed: &'static Testbed, options: WeederOptions) -> Result<()> {
    let WeederOptions {
        shoots,
        at_once,
        rounds,
        rounds_per_start,
        seconds,
    } = options;
    ensure!(
        shoots >= at_once * rounds && rounds_per_start > 0,
        "too few shoots for so many recoveries"
    );
    let seed = bed.own_seed().await?;
    seed.api().create_all(&weeder_access()).await?;
    progress(format!(
        "filling a seed with the Services and pods of {shoots} shoots"
    ));
    create(seed.api(), (0..shoots).map(objects)).await?;

    progress(format!("a start, its first {seconds} s"));
    let (mark, begin) = (seed.plane().mark(), Instant::now());
    let weeder = start(&seed).await?;
    sleep_until(begin + Duration::from_secs(seconds)).await;
    let asked = seed.plane().asked_by(WEEDER_USER, &mark);
    let mut report = report(&options, &asked, Usage::of(weeder.id())?);

    // What follows needs all windows that a start opens, so that it is seen when they close.
    logged(&weeder, "cause", shoots * SLICES.len()).await?;
    let bursts = |count: usize| (0..count).map(move |burst| burst * at_once..(burst + 1) * at_once);
    progress(format!("{rounds} times {at_once} recoveries at once"));
    let mut quiet = Vec::new();
    for places in bursts(rounds) {
        set_ready(&seed, places.clone(), false).await?;
        // It must know of this before pods crash.
        logged(&weeder, "not_ready", places.end).await?;
        crash(&seed, places.clone()).await?;
        quiet.extend(recover(&seed, places).await?);
    }
    report.spread("quiet", &Spread::from_iter(quiet), true);
    end(weeder).await?;

    progress("the same in the first seconds after a start");
    let mut early = Vec::new();
    for done in (0..rounds).step_by(rounds_per_start) {
        let bursts = bursts(rounds_per_start.min(rounds - done));
        for places in bursts.clone() {
            set_ready(&seed, places.clone(), false).await?;
            crash(&seed, places).await?;
        }
        let (weeder, mut ticks) = (start(&seed).await?, interval(BETWEEN));
        for places in bursts {
            ticks.tick().await;
            early.extend(recover(&seed, places).await?);
        }
        end(weeder).await?;
    }
    report.spread("early", &Spread::from_iter(early), true);
    report.print()
}

/// What the start was like.
fn report(options: &WeederOptions, asked: &[Asked], usage: Usage) -> BenchmarkReport {
    let shoots = options.shoots;
    let (pods, slices) = (
        shoots * (1 + OF_SERVICES.len() + OTHERS),
        shoots * SLICES.len(),
    );
    // The weeder has no use for etcd's.
    let pages = (pods - shoots).div_ceil(PAGE) + slices.div_ceil(PAGE);
    // A watch is answered when it begins; any other request when it is complete.
    let is_answered = |asked: &Asked| (asked.verb == "watch") == (asked.stage == "ResponseStarted");
    let count = |which: fn(&Asked) -> bool| {
        let answered = asked.iter().filter(|asked| is_answered(asked));
        answered.filter(|asked| which(asked)).count() as f64
    };
    let what = format!("{shoots} shoots: {pods} pods, {slices} EndpointSlices on a real seed");
    let mut report = BenchmarkReport::new("weeder", what);
    report.detail("seconds", options.seconds.into());
    let requests = count(|asked| asked.resource != "leases");
    report.judge("start", requests, &format!("<= {}", 10 + pages));
    let refused = count(|asked| asked.code >= 400 && asked.code != 404);
    report.add([
        ("election", count(|asked| asked.resource == "leases")),
        ("refused", refused),
        ("resident", usage.resident),
        ("most", usage.most),
        ("cpu", usage.cpu.as_secs_f64()),
    ]);
    report
}

/// Starts a weeder and waits until it is ready, which it is when it knows the seed's Services and
/// pods, and leads.
async fn start(seed: &SeedCluster) -> Result<RunningAgent> {
    let (token, plane) = (seed.api().token(GARDEN, WEEDER).await?, seed.plane());
    let kubeconfig = plane.kubeconfig(&plane.url(), &token);
    let weeder = RunningAgent::alone(AgentKind::Weeder, &kubeconfig, None, &[])?;
    eventually("the weeder is ready", async || {
        let (status, body) = page(weeder.log_file(), "/readyz").await?;
        ensure!(status == 200, "{body}");
        Ok(())
    })
    .await?;
    logged(&weeder, "leading", 1).await?;
    Ok(weeder)
}

/// Waits until a weeder has logged so many lines with this word in quotes.
async fn logged(weeder: &RunningAgent, word: &str, count: usize) -> Result<()> {
    eventually(&format!("the weeder logs of {word}"), async || {
        let logged = weeder.log(&format!("{word:?}")).len();
        ensure!(logged >= count, "{logged} of {count}");
        Ok(())
    })
    .await
}

/// Brings the Service back in these shoots, or takes it away, in all at once. Returns each one's
/// namespace and when that was sent.
async fn set_ready(
    seed: &SeedCluster,
    shoots: Range<usize>,
    ready: bool,
) -> Result<Vec<(String, DateTime<Utc>)>> {
    let sent = shoots.map(async |shoot| {
        let (namespace, sent) = (namespace(shoot), Utc::now());
        crash_loop::set_ready(seed.api(), &namespace, SERVICE, ready).await?;
        anyhow::Ok((namespace, sent))
    });
    try_join_all(sent).await
}

/// Lets the pods that need the Service crash.
async fn crash(seed: &SeedCluster, shoots: Range<usize>) -> Result<()> {
    let crash = shoots.map(async |shoot| {
        set_health(seed.api(), &namespace(shoot), WAITING, PodHealth::Waiting).await
    });
    try_join_all(crash).await.map(drop)
}

/// Brings the Service back in these shoots, all at once. Returns for each after how many seconds
/// the pod's DELETE came, and makes a new pod.
async fn recover(seed: &SeedCluster, shoots: Range<usize>) -> Result<Vec<f64>> {
    let mark = seed.plane().mark();
    let sent = set_ready(seed, shoots.clone(), true).await?;
    let late = eventually("all pods that waited are deleted", async || {
        let mut deletes = seed.plane().asked_by(WEEDER_USER, &mark);
        deletes.retain(|asked| asked.verb == "delete" && asked.stage == "ResponseComplete");
        let (count, wanted) = (deletes.len(), sent.len());
        ensure!(count == wanted, "{count} of {wanted}");
        let late = sent.iter().map(|(namespace, sent)| {
            let mut deletes = deletes.iter();
            let delete = deletes.find(|asked| asked.namespace == *namespace);
            let delete = delete.with_context(|| namespace.clone())?;
            Ok(seconds(*sent, delete.at.parse()?))
        });
        late.collect::<Result<Vec<f64>>>()
    })
    .await?;
    create(seed.api(), shoots.map(|shoot| vec![pod_of(shoot, WAITING)])).await?;
    Ok(late)
}

fn namespace(shoot: usize) -> String {
    format!("shoot--weeder--{shoot:04}")
}

/// A pod whose name is its role, too.
fn pod_of(shoot: usize, name: &str) -> Value {
    let labels = json!({ROLE.0: ROLE.1, "role": name});
    pod(
        &namespace(shoot),
        name,
        &labels,
        Some(name),
        PodHealth::Running,
    )
}

/// Everything of one shoot, in the order in which it is to be created.
fn objects(shoot: usize) -> Vec<Value> {
    let namespace = namespace(shoot);
    let mut objects = vec![gardener::namespace(&namespace)];
    objects.extend(SLICES.map(|service| slice(&namespace, service, true)));
    let others = (0..OTHERS).map(|number| format!("other-{number}"));
    let names = [WAITING].into_iter().chain(OF_SERVICES).map(str::to_owned);
    objects.extend(names.chain(others).map(|name| pod_of(shoot, &name)));
    objects
}
