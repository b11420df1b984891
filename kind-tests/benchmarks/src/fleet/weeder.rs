//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the
//! Service that it needs is back.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::Utc;
use clap::Args;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, RunningAgent};
use testbed::crash_loop::{self, PodHealth, ROLE, pod, set_health, slice};
use testbed::gardener::{self, GARDEN, WEEDER, WEEDER_USER, weeder_access};
use testbed::usage::Usage;
use testbed::{SeedCluster, Testbed, eventually};
use tokio::time::{Instant, sleep_until};

use super::end;
use super::fill::create;
use crate::outage::seconds;
use crate::report::{BenchmarkReport, progress};

/// The Service that comes back.
const SERVICE: &str = "kube-apiserver";
const SLICES: [&str; 2] = ["etcd-main-client", SERVICE];
/// Pods of a control plane by their names, which are their roles too: the one that waits, what the
/// Services stand for, and what else there is.
const WAITING: &str = "controller-manager";
const ETCD: &str = "main";
const PODS: [&str; 12] = [
    WAITING,
    ETCD,
    "apiserver",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
];
/// Objects per page of a list, the size that kubectl and the weeder use.
const PAGE: usize = 500;

/// How the seed is.
#[derive(Args, Clone, Debug)]
pub struct WeederOptions {
    /// How many shoots.
    #[arg(long, default_value_t = 300)]
    shoots: usize,
    /// Services that come back at once, in shoots of their own each time.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// How often that happens.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
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
        seconds,
    } = options;
    let seed = bed.own_seed().await?;
    seed.api().create_all(&weeder_access()).await?;
    progress(format!("filling a seed with {shoots} control planes"));
    create(seed.api(), (0..shoots).map(objects)).await?;

    progress(format!("a start, its first {seconds} s"));
    let (token, plane) = (seed.api().token(GARDEN, WEEDER).await?, seed.plane());
    let (kubeconfig, mark) = (plane.kubeconfig(&token), plane.mark());
    let end_of_start = Instant::now() + Duration::from_secs(seconds);
    let weeder = RunningAgent::alone(AgentKind::Weeder, &kubeconfig, None, &[])?;
    logged(&weeder, "leading", 1).await?;
    sleep_until(end_of_start).await;
    let asked = plane.asked_by(WEEDER_USER, &mark);
    let usage = Usage::of(weeder.id())?;

    // What follows needs all windows that a start opens, so that it is seen when they close.
    logged(&weeder, "cause", shoots * SLICES.len()).await?;
    let mut late = Vec::new();
    for round in 0..rounds {
        progress(format!("{at_once} recoveries at once"));
        let places = round * at_once..(round + 1) * at_once;
        set_ready(&seed, places.clone(), false).await?;
        // It must know of this before pods crash.
        logged(&weeder, "not_ready", places.end).await?;
        let crash = places.clone().map(async |shoot| {
            set_health(seed.api(), &namespace(shoot), WAITING, PodHealth::Waiting).await
        });
        try_join_all(crash).await?;
        late.extend(recover(&seed, places).await?);
    }
    end(weeder).await?;

    let (pods, slices) = (shoots * PODS.len(), shoots * SLICES.len());
    let mut report = BenchmarkReport::new(
        "weeder",
        format!("{shoots} control planes: {pods} pods, {slices} EndpointSlices on a real seed"),
    );
    let pages = pods.div_ceil(PAGE) + slices.div_ceil(PAGE);
    let requests = asked.iter().filter(|asked| asked.resource != "leases");
    report.at_most(
        &format!("requests in the first {seconds} s, without the election's"),
        requests.count() as f64,
        (10 + pages) as f64,
    );
    let refused = asked.iter().filter(|asked| asked.code == 429);
    report.at_most("requests refused (429)", refused.count() as f64, 0.0);
    report.add("high-water mark of memory, MiB", usage.most);
    report.times("from endpoint ready to DELETE, s", late, Some(0.1));
    report.print();
    Ok(())
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

/// Brings the Service back in these shoots, or takes it away, in all at once.
async fn set_ready(seed: &SeedCluster, shoots: Range<usize>, ready: bool) -> Result<()> {
    let set = shoots.map(async |shoot| {
        crash_loop::set_ready(seed.api(), &namespace(shoot), SERVICE, ready).await
    });
    try_join_all(set).await.map(drop)
}

/// Brings the Service back in these shoots, all at once. Returns for each after how many seconds
/// the pod's DELETE came.
async fn recover(seed: &SeedCluster, shoots: Range<usize>) -> Result<Vec<f64>> {
    let (mark, sent) = (seed.plane().mark(), Utc::now());
    set_ready(seed, shoots.clone(), true).await?;
    eventually("all pods that waited are deleted", async || {
        let mut deletes = seed.plane().asked_by(WEEDER_USER, &mark);
        deletes.retain(|asked| asked.verb == "delete");
        let late = shoots.clone().map(|shoot| {
            let namespace = namespace(shoot);
            let mut deletes = deletes.iter();
            let delete = deletes.find(|asked| asked.namespace == namespace);
            Ok(seconds(sent, delete.context(namespace)?.at.parse()?))
        });
        late.collect()
    })
    .await
}

fn namespace(shoot: usize) -> String {
    format!("shoot--weeder--{shoot:04}")
}

/// Everything of one shoot, in the order in which it is to be created.
fn objects(shoot: usize) -> Vec<Value> {
    let namespace = namespace(shoot);
    let mut objects = vec![gardener::namespace(&namespace)];
    objects.extend(SLICES.map(|service| slice(&namespace, service, true)));
    objects.extend(PODS.map(|name| {
        let labels = json!({ROLE.0: ROLE.1, "role": name});
        pod(&namespace, name, &labels, Some(name), PodHealth::Running)
    }));
    objects
}
