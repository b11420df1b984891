//! What is on a seed full of shoots: for each its namespace, its Cluster, the Secret with its kubeconfig, its Machines and the
//! three Deployments; and beside them what is none of the prober's business.

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use testbed::KubeApi;
use testbed::gardener::{self, CLUSTERS, MACHINES};
use testbed::seed::READY_AFTER;
use testbed::shoot::{CA, KCM, MCM};

use super::light::{LightShoots, USUAL_GRACE};
use crate::report::progress;

/// Requests in flight while a seed is filled: enough to keep a real API server and etcd busy.
const IN_FLIGHT: usize = 24;
/// The size of a foreign Secret's value.
const FOREIGN: usize = 2048;
/// A Cluster carries the whole CloudProfile and Seed of its shoot; what that comes to.
const BALLAST: usize = 40 << 10;

/// An object and the collection that it is created in.
pub type Object = (String, Value);

/// What a seed is filled with.
#[derive(Clone, Debug)]
pub struct Filling {
    /// How many shoots; the first of the light ones.
    pub shoots: usize,
    /// How many Secrets that are none of the prober's business, over the shoots' namespaces.
    pub foreign_secrets: usize,
    /// Milliseconds after which pods follow the replicas of their Deployment; none: the test bed's usual.
    pub pods_take: Option<u32>,
}

/// The namespace of a shoot on the seed.
pub fn namespace(shoot: usize) -> String {
    format!("shoot--fleet--{shoot:04}")
}

/// How many replicas a Deployment has before anything happens: they differ, so that one that is restored from the memory of
/// another is found out.
pub fn replicas(shoot: usize, name: &str) -> i64 {
    match name {
        KCM => 1 + (shoot % 3) as i64,
        MCM => 1 + (shoot % 2) as i64,
        _ => 1,
    }
}

/// The path of a Deployment.
pub fn deployment_path(shoot: usize, name: &str) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/{name}", namespace(shoot))
}

/// The three that Gardener lets the prober scale.
pub const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// Everything of one shoot, in the order in which it is to be created: its namespace, what is in that, and the Cluster, which lets the
/// prober begin.
pub fn shoot(shoots: &LightShoots, number: usize, pods_take: Option<u32>) -> [Vec<Object>; 3] {
    let name = namespace(number);
    let within = |api: &str, plural: &str| format!("{api}/namespaces/{name}/{plural}");
    let mut namespace = gardener::namespace(&name);
    namespace["metadata"]["labels"] = json!({"gardener.cloud/role": "shoot"});
    let mut content = vec![(within("/api/v1", "secrets"), gardener::probe_secret(&name, &shoots.kubeconfig(number)))];
    content.extend(DEPENDENTS.map(|dependent| {
        let mut deployment = gardener::deployment(&name, dependent, replicas(number, dependent));
        deployment["metadata"]["annotations"] = json!(pods_take.map(|millis| json!({READY_AFTER: millis.to_string()})));
        (within("/apis/apps/v1", "deployments"), deployment)
    }));
    content.extend(shoots.plan.node_names().map(|node| (within(MACHINES, "machines"), machine(&name, &node))));
    [vec![("/api/v1/namespaces".to_owned(), namespace)], content, vec![(CLUSTERS.to_owned(), cluster(&name, shoots.plan.grace))]]
}

/// Fills a seed through its API.
pub async fn fill(api: &KubeApi, shoots: &LightShoots, filling: &Filling) -> Result<()> {
    let begin = tokio::time::Instant::now();
    let Filling { shoots: count, foreign_secrets, pods_take } = *filling;
    ensure!(count <= shoots.plan.shoots, "there are only {} light shoots", shoots.plan.shoots);
    let create = |(collection, object): Object| async move { api.create(&collection, &object).await };
    for stage in 0..3 {
        let objects = stream::iter(0..count)
            .flat_map(|number| stream::iter(shoot(shoots, number, pods_take).into_iter().nth(stage).unwrap_or_default()));
        objects.map(create).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    }
    progress(format!("{count} shoots with {} Machines after {:.0?}", count * shoots.plan.nodes, begin.elapsed()));
    let foreign = stream::iter(0..foreign_secrets).map(|number| foreign_secret(&namespace(number % count.max(1)), number));
    foreign.map(create).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    progress(format!("the seed is filled after {:.0?}", begin.elapsed()));
    Ok(())
}

/// As large as Gardener's.
fn machine(namespace: &str, node: &str) -> Value {
    let mut machine = gardener::machine(namespace, node);
    let metadata = &mut machine["metadata"];
    metadata["labels"]["name"] = "shoot--fleet--light-worker-z1".into();
    metadata["labels"]["machine-template-hash"] = "3452134521".into();
    metadata["annotations"] = json!({"machinepriority.machine.sapcloud.io": "3"});
    metadata["finalizers"] = json!(["machine.sapcloud.io/machine-controller-manager"]);
    machine["spec"] = json!({
        "class": {"apiGroup": "machine.sapcloud.io", "kind": "MachineClass", "name": "shoot--fleet--light-worker-z1-f2b5c"},
        "providerID": format!("aws:///eu-west-1/i-{node}"), "drainTimeout": "2h0m0s", "healthTimeout": "10m0s",
        "nodeTemplate": {"metadata": {"labels": {"worker.gardener.cloud/pool": "worker", "node.kubernetes.io/role": "node"}}, "spec": {}},
    });
    machine
}

fn cluster(name: &str, grace: u32) -> Value {
    // Machine types and images, a thing apart for each.
    let types: Vec<Value> = (0..BALLAST / 128)
        .map(|at| json!({"name": format!("m5.{at}xlarge"), "cpu": "8", "gpu": "0", "memory": "32Gi", "usable": true, "architecture": "amd64"}))
        .collect();
    let grace = (grace != USUAL_GRACE).then(|| format!("{grace}s"));
    let mut cluster = gardener::cluster(name, grace.as_deref());
    cluster["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "spec": {"machineTypes": types}});
    cluster
}

fn foreign_secret(namespace: &str, number: usize) -> Object {
    let value = STANDARD.encode(vec![b'x'; FOREIGN]);
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("foreign-{number:05}")}, "data": {"value": value}});
    (format!("/api/v1/namespaces/{namespace}/secrets"), object)
}
