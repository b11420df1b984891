//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the
//! Service that it needs is back.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::Utc;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, RunningAgent};
use testbed::crash_loop::{self, PodHealth, ROLE, pod, set_health, slice};
use testbed::gardener::{self, WEEDER, WEEDER_USER, weeder_access};
use testbed::usage::Usage;
use testbed::{Testbed, eventually};
use tokio::time::{Instant, sleep_until};

use super::end;
use super::fill::{create, namespace};
use crate::outage;
use crate::report::{BenchmarkReport, progress};

/// The Service that comes back.
const SERVICE: &str = "kube-apiserver";
const SLICES: [&str; 2] = ["etcd-main-client", SERVICE];
/// The pod that waits for the Service; its name is its role, too.
const WAITING: &str = "controller-manager";
/// Names and roles of the pods of a control plane.
const PODS: [&str; 12] = [
    WAITING,
    "main",
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

/// Services that come back at once.
const AT_ONCE: usize = 20;

/// Runs it.
pub async fn run(bed: &'static Testbed, shoots: usize, seconds: u64) -> Result<()> {
    let seed = bed.own_seed().await?;
    seed.api().create_all(&weeder_access()).await?;
    progress(format!("filling a seed with {shoots} control planes"));
    create(seed.api(), (0..shoots).map(objects)).await?;

    progress(format!("a start, its first {seconds} s"));
    let (kubeconfig, plane) = (seed.kubeconfig(WEEDER).await?, seed.plane());
    let mark = plane.mark();
    let end_of_start = Instant::now() + Duration::from_secs(seconds);
    let weeder = RunningAgent::alone(AgentKind::Weeder, &kubeconfig, None, &[])?;
    logged(&weeder, "leading", 1).await?;
    sleep_until(end_of_start).await;
    let asked = plane.asked_by(WEEDER_USER, &mark);
    let usage = Usage::of(weeder.id())?;

    // What follows needs all windows that a start opens, so that it is seen when they close.
    logged(&weeder, "cause", shoots * SLICES.len()).await?;
    let set_ready = async |places: Range<usize>, ready| {
        let set = places.map(async |shoot| {
            crash_loop::set_ready(seed.api(), &namespace(shoot), SERVICE, ready).await
        });
        try_join_all(set).await
    };
    let mut late = Vec::new();
    for first in (0..shoots).step_by(AT_ONCE) {
        let places = first..shoots.min(first + AT_ONCE);
        progress(format!("recoveries at once: {places:?}"));
        set_ready(places.clone(), false).await?;
        // It must know of this before pods crash.
        logged(&weeder, "not_ready", places.end).await?;
        let crash = places.clone().map(async |shoot| {
            set_health(seed.api(), &namespace(shoot), WAITING, PodHealth::Waiting).await
        });
        try_join_all(crash).await?;

        let (mark, sent) = (plane.mark(), Utc::now());
        set_ready(places.clone(), true).await?;
        let deletes = eventually("all pods that waited are deleted", async || {
            let mut deletes = plane.asked_by(WEEDER_USER, &mark);
            deletes.retain(|asked| asked.verb == "delete");
            ensure!(deletes.len() == places.len(), "{deletes:?}");
            Ok(deletes)
        });
        for delete in deletes.await? {
            late.push(outage::seconds(sent, delete.at.parse()?));
        }
    }
    end(weeder).await?;

    let (pods, slices) = (shoots * PODS.len(), shoots * SLICES.len());
    let mut report = BenchmarkReport::default();
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
    report.print(&format!(
        "{shoots} control planes: {pods} pods, {slices} EndpointSlices on a real seed"
    ));
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
