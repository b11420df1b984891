//! Pods that crash because a Service is away, as real kubelets run them: five shapes, and beside
//! each the same pod that the weeder does not know.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::{EndpointWatch, KubeApi, eventually};
use tokio::time::Instant;

use crate::images::TOOL;
use crate::workloads;

/// What the pods need.
const SERVICE: &str = "etcd-main-client";

/// How a pod goes on without its Service, and the script of its container.
pub const SHAPES: [(&str, &str); 5] = [
    ("ends-at-once", "asks && exec $serves; exit 1"),
    ("ends-soon", "tries 6"),
    ("ends-late", "tries 20"),
    (INIT, "asks"),
    (
        READY_BEFORE,
        "asks || exit 1; $serves & while asks; do sleep 1; done; exit 1",
    ),
];
/// This one's init container has the script.
const INIT: &str = "init-ends-at-once";
/// This one was ready before; it ends when the Service goes.
const READY_BEFORE: &str = "ready-before";

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// A container that runs a script: whether the Service answers, how it serves itself, and how it
/// tries for some seconds to.
fn container(name: &str, address: &str, script: &str) -> String {
    let script = format!(
        "asks() {{ nc -w 1 {address} 2379 -e /bin/true; }}; serves='httpd -f -p 6443'; \
         tries() {{ end=$(($(date +%s) + $1)); while [ $(date +%s) -lt $end ]; do asks && exec $serves; sleep 1; done; exit 1; }}; {script}"
    );
    format!(
        "name: {name}, image: {TOOL}, imagePullPolicy: Never, command: [/bin/sh, -c, {script:?}]"
    )
}

/// The pod's spec.
fn crashing(shape: &str, address: &str, script: &str) -> String {
    let is_init = shape == INIT;
    let server = if is_init { "exec $serves" } else { script };
    let init = if is_init {
        format!("{{{}}}", container("init", address, script))
    } else {
        String::new()
    };
    let server = container("server", address, server);
    format!(
        "
      initContainers: [{init}]
      containers:
      - {{{server}, readinessProbe: {{tcpSocket: {{port: 6443}}, periodSeconds: 1}}}}"
    )
}

/// Lets pods of this shape crash until their Service is back. The weeder's is ready soon after, the
/// other one much later.
pub async fn weeded(api: &KubeApi, (shape, script): (&str, &str)) -> Result<()> {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let namespace = &format!("shoot--weed--{shape}-{serial}");
    api.create_yaml(&workloads::namespace(namespace)).await?;
    let core = format!("/api/v1/namespaces/{namespace}");
    api.appears(&format!("{core}/serviceaccounts/default"))
        .await?;
    let service = workloads::service(namespace, SERVICE, "role: main", 2379);
    api.create_yaml(&service).await?;
    let endpoints = EndpointWatch::of(api, namespace, SERVICE);
    let service = api.get(&format!("{core}/services/{SERVICE}")).await?;
    let address = service["spec"]["clusterIP"].as_str();
    let address = address.context("no clusterIP")?;

    let was_ready = shape == READY_BEFORE;
    let etcd = format!(
        "
      containers:
      - name: etcd
        image: {TOOL}
        imagePullPolicy: Never
        command: [/bin/httpd, -f, -p, '2379']
        readinessProbe: {{tcpSocket: {{port: 2379}}, periodSeconds: 1}}"
    );
    let replicas = i64::from(was_ready);
    let etcd = workloads::deployment(namespace, "etcd-main", "main", replicas, &etcd);
    api.create_yaml(&etcd).await?;
    let scale = async |replicas: i64| {
        let etcd = format!("/apis/apps/v1/namespaces/{namespace}/deployments/etcd-main");
        let patch = json!({"spec": {"replicas": replicas}});
        api.merge(&etcd, &patch).await
    };
    let ready = async |role| {
        eventually("the pod is ready", async || {
            let status = pod(api, &core, role).await?["status"].take();
            ensure!(status["containerStatuses"][0]["ready"] == true, "{status}");
            Ok(())
        })
        .await
    };
    if was_ready {
        service_is(&endpoints, true).await?;
    }
    let spec = crashing(shape, address, script);
    for (name, role) in [
        ("kube-apiserver", "apiserver"),
        ("unknown-to-the-weeder", "other"),
    ] {
        let crashing = workloads::deployment(namespace, name, role, 1, &spec);
        api.create_yaml(&crashing).await?;
        if was_ready {
            ready(role).await?;
        }
    }
    if was_ready {
        scale(0).await?;
        service_is(&endpoints, false).await?;
    }
    // From the fourth crash on a kubelet waits for 40 s or more.
    eventually("both pods wait for their kubelet's back-off", async || {
        for (role, most) in [("apiserver", 15), ("other", 25)] {
            let status = status(&pod(api, &core, role).await?);
            let age = Utc::now() - ended(&status)?;
            let restarts = status["restartCount"].as_i64().unwrap_or_default();
            let runs = status["state"]["running"].is_object();
            ensure!(
                restarts >= 3 && !runs && age.num_seconds() < most,
                "{role}: {restarts} restarts, ended {age} ago, runs: {runs}"
            );
        }
        Ok(())
    })
    .await?;
    scale(1).await?;
    service_is(&endpoints, true).await?;
    let back = Instant::now();
    // It may be gone already, or be the next pod, whose container has not ended.
    let crashed = pod(api, &core, "apiserver").await;
    let crashed = crashed.and_then(|pod| ended(&status(&pod)));
    let ended = crashed.map_or(0, |ended| (Utc::now() - ended).num_seconds());
    ready("apiserver").await?;
    let with = back.elapsed();
    ready("other").await?;
    let without = back.elapsed();
    println!(
        "{shape}: ended {ended} s before the Service, ready {with:.1?} after it, {without:.1?} without the weeder"
    );
    // What has not been seen terminated for 4 s waits for the rest of that.
    let goal = Duration::from_secs(if ended >= 4 { 5 } else { 8 });
    ensure!(with <= goal, "{shape}: {with:?}, more than {goal:?}");
    ensure!(without > 3 * with, "{shape}: {with:?}, {without:?}");
    Ok(())
}

/// When a container ended last that does not run.
fn ended(status: &Value) -> Result<DateTime<Utc>> {
    let finished = |state: &str| status[state]["terminated"]["finishedAt"].as_str();
    let ended = finished("state").or_else(|| finished("lastState"));
    Ok(ended.context("it runs")?.parse()?)
}

/// The pod with this role.
async fn pod(api: &KubeApi, core: &str, role: &str) -> Result<Value> {
    let pods = format!("{core}/pods?labelSelector=role%3D{role}");
    let mut pods = api.list(&pods).await?;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods.pop().with_context(|| format!("no pod {role}"))
}

/// The status of the container that crashes.
fn status(pod: &Value) -> Value {
    let status = |kind: &str| pod["status"][kind][0].clone();
    match status("initContainerStatuses") {
        Value::Null => status("containerStatuses"),
        init => init,
    }
}

/// Waits until the Service has a ready endpoint, or none.
async fn service_is(endpoints: &EndpointWatch, wanted: bool) -> Result<()> {
    eventually("the Service is as it should be", async || {
        let ready = endpoints.get().ready();
        ensure!((ready > 0) == wanted, "{ready} ready endpoints");
        Ok(())
    })
    .await
}
