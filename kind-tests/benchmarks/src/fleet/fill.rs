//! The objects on a seed full of shoots: for each its namespace, its Cluster, the Secret with its
//! kubeconfig, its Machines and the three Deployments; and beside them what is none of the prober's
//! business.

use std::iter::zip;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use testbed::KubeApi;
use testbed::full_size;
use testbed::gardener::{self, CA, KCM, MCM};
use testbed::seed::READY_AFTER;

use super::synthetic::SyntheticShoots;
use super::{FleetPlan, USUAL_GRACE};
use crate::report::progress;

/// Requests in flight while a seed is filled: enough to keep a real API server and etcd busy.
const IN_FLIGHT: usize = 24;
/// Secrets in the namespace of each shoot that are none of the prober's business: 20,100 beside
/// 300 shoots.
pub const FOREIGN_SECRETS: usize = 67;
/// The size of a foreign Secret's value.
const FOREIGN: usize = 2048;
/// A Cluster carries the whole CloudProfile and Seed of its shoot: so many machine types of some
/// 128 bytes.
const MACHINE_TYPES: usize = 320;

/// The three that Gardener lets the prober scale.
pub const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// The namespace of a shoot on the seed.
pub fn namespace(shoot: usize) -> String {
    format!("shoot--fleet--{shoot:04}")
}

/// Everything of one shoot, in the order in which it is to be created: its namespace, what is in
/// that, and the Cluster, which lets the prober begin. Pods take a second to come and to go.
pub fn shoot(shoots: &SyntheticShoots, number: usize) -> Vec<Value> {
    let (name, plan) = (namespace(number), shoots.plan);
    let mut namespace = gardener::namespace(&name);
    namespace["metadata"]["labels"] = json!({"gardener.cloud/role": "shoot"});
    let mut objects = vec![
        namespace,
        gardener::probe_secret(&name, &shoots.kubeconfig(number)),
    ];
    // They differ, so that one that is restored from the memory of another is found out.
    let replicas = [1 + number % 3, 1 + number % 2, 1];
    objects.extend(zip(DEPENDENTS, replicas).map(|(dependent, replicas)| {
        let mut deployment = gardener::deployment(&name, dependent, replicas as i64);
        deployment["metadata"]["annotations"] = json!({READY_AFTER: "1000"});
        deployment
    }));
    let nodes = (0..plan.nodes).map(full_size::node_name);
    objects.extend(nodes.map(|node| full_size::machine(&name, &node)));
    let grace = (plan.grace != USUAL_GRACE).then(|| format!("{}s", plan.grace));
    let mut cluster = gardener::cluster(&name, grace.as_deref());
    let machine_type = |number| json!({"name": format!("m5.{number}xlarge"), "cpu": "8", "gpu": "0", "memory": "32Gi", "usable": true, "architecture": "amd64"});
    let types = Vec::from_iter((0..MACHINE_TYPES).map(machine_type));
    cluster["spec"]["cloudProfile"] =
        json!({"kind": "CloudProfile", "spec": {"machineTypes": types}});
    objects.push(cluster);
    objects
}

/// Starts synthetic shoots and fills a seed with them, and with foreign Secrets, through its API.
pub async fn fill_seed(api: &KubeApi, plan: FleetPlan) -> Result<SyntheticShoots> {
    progress(format!("filling a seed: {plan:?}"));
    let shoots = SyntheticShoots::start(plan).await?;
    let value = STANDARD.encode([b'x'; FOREIGN]);
    let objects = |number| {
        let mut objects = shoot(&shoots, number);
        objects.extend((0..FOREIGN_SECRETS).map(|foreign| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"value": value},
            "metadata": {"name": format!("foreign-{foreign}"), "namespace": namespace(number)}})
        }));
        objects
    };
    create(api, (0..plan.shoots).map(objects)).await?;
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
