//! Pods that crash because a Service is away, as real kubelets run them: one that the weeder deletes,
//! and beside it the same pod that the weeder does not know.

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

/// What runs in them. It ends when the Service goes, and at once while it is away.
const SCRIPT: &str = "asks() { nc -w 1 ADDRESS 2379 -e /bin/true; }; asks || exit 1; \
    httpd -f -p 6443 & while asks; do sleep 1; done; exit 1";

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// Lets pods crash until their Service is back. The weeder's is ready soon after, the other one much
/// later.
pub async fn weeded(api: &KubeApi) -> Result<()> {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let namespace = &format!("shoot--weed--{serial}");
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

    let etcd = pod("[/bin/httpd, -f, -p, '2379']", 2379);
    let etcd = workloads::deployment(namespace, "etcd-main", "main", 1, &etcd);
    api.create_yaml(&etcd).await?;
    let scale = async |replicas: i64| {
        let etcd = format!("/apis/apps/v1/namespaces/{namespace}/deployments/etcd-main");
        let patch = json!({"spec": {"replicas": replicas}});
        api.merge(&etcd, &patch).await
    };
    let ready = async |role| {
        eventually("the pod is ready", async || {
            let status = container(api, &core, role).await?;
            ensure!(status["ready"] == true, "{status}");
            Ok(())
        })
        .await
    };
    service_is(&endpoints, true).await?;
    let script = SCRIPT.replace("ADDRESS", address);
    let crashing = pod(&format!("[/bin/sh, -c, {script:?}]"), 6443);
    for (name, role) in [
        ("kube-apiserver", "apiserver"),
        ("unknown-to-the-weeder", "other"),
    ] {
        let crashing = workloads::deployment(namespace, name, role, 1, &crashing);
        api.create_yaml(&crashing).await?;
        ready(role).await?;
    }
    scale(0).await?;
    service_is(&endpoints, false).await?;
    // From the fourth crash on a kubelet waits for 40 s or more.
    eventually("both pods wait for their kubelet's back-off", async || {
        for (role, most) in [("apiserver", 15), ("other", 25)] {
            let status = container(api, &core, role).await?;
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
    let crashed = container(api, &core, "apiserver").await;
    let crashed = crashed.and_then(|status| ended(&status));
    let ended = crashed.map_or(0, |ended| (Utc::now() - ended).num_seconds());
    ready("apiserver").await?;
    let with = back.elapsed();
    ready("other").await?;
    let without = back.elapsed();
    println!(
        "ended {ended} s before the Service, ready {with:.1?} after it, {without:.1?} without the weeder"
    );
    // What has not been seen terminated for 4 s waits for the rest of that.
    let goal = Duration::from_secs(if ended >= 4 { 5 } else { 8 });
    ensure!(with <= goal, "{with:?}, more than {goal:?}");
    ensure!(without > 3 * with, "{with:?}, {without:?}");
    Ok(())
}

/// The spec of a pod with one container, which is ready when it listens at this port.
fn pod(command: &str, port: u16) -> String {
    format!(
        "
      containers:
      - name: it
        image: {TOOL}
        imagePullPolicy: Never
        command: {command}
        readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1}}"
    )
}

/// When a container ended last that does not run.
fn ended(status: &Value) -> Result<DateTime<Utc>> {
    let finished = |state: &str| status[state]["terminated"]["finishedAt"].as_str();
    let ended = finished("state").or_else(|| finished("lastState"));
    Ok(ended.context("it runs")?.parse()?)
}

/// The status of the container of the pod with this role.
async fn container(api: &KubeApi, core: &str, role: &str) -> Result<Value> {
    let pods = format!("{core}/pods?labelSelector=role%3D{role}");
    let mut pods = api.list(&pods).await?;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let pod = pods.pop().with_context(|| format!("no pod {role}"))?;
    // A pod that was just created has none.
    Ok(pod["status"]["containerStatuses"][0].clone())
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
