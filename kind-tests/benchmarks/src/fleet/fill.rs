//! What is on a seed full of shoots: for each its namespace, its Cluster, the Secret with its
//! kubeconfig, its Machines and the three Deployments; and beside them what is none of the prober's
//! business.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use testbed::KubeApi;
use testbed::full_size;
use testbed::gardener;
use testbed::seed::READY_AFTER;
use testbed::shoot::{CA, KCM, MCM};
use tokio::time::Instant;

use super::synthetic::{FleetPlan, SyntheticShoots, USUAL_GRACE};
use crate::report::progress;

/// Requests in flight while a seed is filled: enough to keep a real API server and etcd busy.
const IN_FLIGHT: usize = 24;
/// The size of a foreign Secret's value.
const FOREIGN: usize = 2048;
/// A Cluster carries the whole CloudProfile and Seed of its shoot; what that comes to.
const BALLAST: usize = 40 << 10;

/// The namespace of a shoot on the seed.
pub fn namespace(shoot: usize) -> String {
    format!("shoot--fleet--{shoot:04}")
}

/// How many replicas a Deployment has before anything happens: they differ, so that one that is
/// restored from the memory of another is found out.
pub fn replicas(shoot: usize, name: &str) -> i64 {
    match name {
        KCM => 1 + (shoot % 3) as i64,
        MCM => 1 + (shoot % 2) as i64,
        _ => 1,
    }
}

/// The three that Gardener lets the prober scale.
pub const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// Everything of one shoot, in the order in which it is to be created: its namespace, what is in
/// that, and the Cluster, which lets the prober begin. `pods_take`: milliseconds after which pods
/// follow the replicas of their Deployment; none: the test bed's usual.
pub fn shoot(shoots: &SyntheticShoots, number: usize, pods_take: Option<u32>) -> Vec<Value> {
    let name = namespace(number);
    let mut namespace = gardener::namespace(&name);
    namespace["metadata"]["labels"] = json!({"gardener.cloud/role": "shoot"});
    let mut objects = vec![
        namespace,
        gardener::probe_secret(&name, &shoots.kubeconfig(number)),
    ];
    objects.extend(DEPENDENTS.map(|dependent| {
        let mut deployment = gardener::deployment(&name, dependent, replicas(number, dependent));
        deployment["metadata"]["annotations"] =
            json!(pods_take.map(|millis| json!({READY_AFTER: millis.to_string()})));
        deployment
    }));
    objects.extend(
        (0..shoots.plan.nodes).map(|node| full_size::machine(&name, &full_size::node_name(node))),
    );
    objects.push(cluster(&name, shoots.plan.grace));
    objects
}

/// Starts synthetic shoots and fills a seed with them through its API, and with so many Secrets
/// that are none of the prober's business.
pub async fn fill_seed(
    api: &KubeApi,
    plan: FleetPlan,
    foreign_secrets: usize,
    pods_take: Option<u32>,
) -> Result<SyntheticShoots> {
    let (begin, count, nodes) = (Instant::now(), plan.shoots, plan.nodes);
    progress(format!(
        "starting {count} synthetic shoots of {nodes} nodes, and filling the seed with them"
    ));
    let shoots = SyntheticShoots::start(plan).await?;
    let objects = (0..count).map(|number| shoot(&shoots, number, pods_take));
    create(api, objects).await?;
    let foreign =
        (0..foreign_secrets).map(|number| vec![foreign_secret(&namespace(number % count), number)]);
    create(api, foreign).await?;
    progress(format!("the seed is filled after {:.0?}", begin.elapsed()));
    Ok(shoots)
}

/// Creates objects: those of a group one after the other, of many groups at a time.
pub async fn create(api: &KubeApi, groups: impl Iterator<Item = Vec<Value>>) -> Result<()> {
    let create = |group: Vec<Value>| async move { api.create_all(&group).await };
    stream::iter(groups)
        .map(create)
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

fn cluster(name: &str, grace: u32) -> Value {
    // Machine types and images, a thing apart for each.
    let types: Vec<Value> = (0..BALLAST / 128)
        .map(|at| json!({"name": format!("m5.{at}xlarge"), "cpu": "8", "gpu": "0", "memory": "32Gi", "usable": true, "architecture": "amd64"}))
        .collect();
    let grace = (grace != USUAL_GRACE).then(|| format!("{grace}s"));
    let mut cluster = gardener::cluster(name, grace.as_deref());
    cluster["spec"]["cloudProfile"] =
        json!({"kind": "CloudProfile", "spec": {"machineTypes": types}});
    cluster
}

fn foreign_secret(namespace: &str, number: usize) -> Value {
    let metadata = json!({"name": format!("foreign-{number:05}"), "namespace": namespace});
    let value = STANDARD.encode(vec![b'x'; FOREIGN]);
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"value": value}})
}
