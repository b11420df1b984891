//! Pods that crash because a Service is away, as real kubelets run them: five shapes, and beside
//! each the same pod that the weeder does not know.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::{EndpointWatch, KubeApi, eventually, unique};
use tokio::time::Instant;

use crate::images::TOOL;
use crate::workloads::{create_namespace, deployment, service};

/// What the pods need.
const SERVICE: &str = "etcd-main-client";

/// How a pod goes on without its Service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrashShape {
    /// It ends at once.
    AtOnce,
    /// It ends after 6 s.
    Soon,
    /// It ends after 20 s.
    Late,
    /// Its init container ends at once.
    Init,
    /// It was ready before; it ends when the Service goes.
    ReadyBefore,
}

impl CrashShape {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AtOnce,
        Self::Soon,
        Self::Late,
        Self::Init,
        Self::ReadyBefore,
    ];

    fn namespace(self) -> String {
        format!(
            "shoot--weed--{}",
            unique(&format!("{self:?}").to_lowercase())
        )
    }

    fn containers(self, address: &str) -> Value {
        let asks = format!("nc -w 1 {address} 2379 -e /bin/true");
        let serves = "httpd -f -p 6443";
        let container = |name: &str, script: String| json!({"name": name, "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", script]});
        let tries = |seconds: u8| {
            format!(
                "end=$(($(date +%s) + {seconds})); while [ $(date +%s) -lt $end ]; do {asks} && exec {serves}; sleep 1; done; exit 1"
            )
        };
        let mut server = match self {
            Self::AtOnce => container("server", format!("{asks} && exec {serves}; exit 1")),
            Self::Soon => container("server", tries(6)),
            Self::Late => container("server", tries(20)),
            Self::Init => container("server", format!("exec {serves}")),
            Self::ReadyBefore => container(
                "server",
                format!("{asks} || exit 1; {serves} & while {asks}; do sleep 1; done; exit 1"),
            ),
        };
        server["readinessProbe"] = json!({"tcpSocket": {"port": 6443}, "periodSeconds": 1});
        let mut spec = json!({"containers": [server]});
        if self == Self::Init {
            spec["initContainers"] = json!([container("init", asks)]);
        }
        spec
    }
}

/// How pods came back that needed a Service.
pub struct Weeded {
    /// How long before the Service the container had ended that the weeder knows of.
    pub ended: Duration,
    /// How long the pods took to get ready after the Service, with the weeder and without.
    pub with: Duration,
    pub without: Duration,
}

impl Weeded {
    /// The longest that the weeder's pod may take: what has not been seen terminated for 4 s waits
    /// for the rest of that.
    pub const fn goal(&self) -> Duration {
        Duration::from_secs(if self.ended.as_secs() >= 4 { 5 } else { 8 })
    }
}

/// Lets pods of this shape crash until their Service is back.
pub async fn weeded(api: &KubeApi, shape: CrashShape) -> Result<Weeded> {
    let namespace = shape.namespace();
    create_namespace(api, &namespace).await?;
    eventually("there is a ServiceAccount", async || {
        api.get(&format!(
            "/api/v1/namespaces/{namespace}/serviceaccounts/default"
        ))
        .await
    })
    .await?;
    api.create(&service(&namespace, SERVICE, json!({"role": "main"}), 2379))
        .await?;
    let endpoints = EndpointWatch::of(api, &namespace, SERVICE);
    let service = api
        .get(&format!(
            "/api/v1/namespaces/{namespace}/services/{SERVICE}"
        ))
        .await?;
    let address = service["spec"]["clusterIP"]
        .as_str()
        .context("no clusterIP")?;

    let etcd = json!({"containers": [{"name": "etcd", "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/httpd", "-f", "-p", "2379"],
        "readinessProbe": {"tcpSocket": {"port": 2379}, "periodSeconds": 1}}]});
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let scale = async |replicas: i64| {
        let patch = json!({"spec": {"replicas": replicas}});
        api.merge(&format!("{deployments}/etcd-main"), &patch).await
    };
    let was_ready = shape == CrashShape::ReadyBefore;
    let etcd = deployment(&namespace, "etcd-main", "main", i64::from(was_ready), etcd);
    api.create(&etcd).await?;
    for (name, role) in [
        ("kube-apiserver", "apiserver"),
        ("unknown-to-the-weeder", "other"),
    ] {
        if was_ready {
            service_is(&endpoints, true).await?;
        }
        let crashing = deployment(&namespace, name, role, 1, shape.containers(address));
        api.create(&crashing).await?;
        if was_ready {
            ready(api, &namespace, role).await?;
        }
    }
    if was_ready {
        scale(0).await?;
        service_is(&endpoints, false).await?;
    }
    // From the fourth crash on a kubelet waits for 40 s or more.
    eventually("both pods wait for their kubelet's back-off", async || {
        for (role, most) in [("apiserver", 15), ("other", 25)] {
            let status = container(&pod(api, &namespace, role).await?);
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
    let crashed = pod(api, &namespace, "apiserver").await;
    let crashed = crashed.and_then(|pod| ended(&container(&pod)));
    let ended = crashed.map_or(Duration::ZERO, |ended| {
        (Utc::now() - ended).to_std().unwrap_or_default()
    });
    ready(api, &namespace, "apiserver").await?;
    let with = back.elapsed();
    ready(api, &namespace, "other").await?;
    Ok(Weeded {
        ended,
        with,
        without: back.elapsed(),
    })
}

/// When a container ended last that does not run.
fn ended(status: &Value) -> Result<DateTime<Utc>> {
    let ended = status["state"]["terminated"]
        .as_object()
        .or_else(|| status["lastState"]["terminated"].as_object());
    let ended = ended
        .and_then(|ended| ended["finishedAt"].as_str())
        .context("it runs")?;
    Ok(DateTime::parse_from_rfc3339(ended)?.to_utc())
}

/// The pod with this role.
async fn pod(api: &KubeApi, namespace: &str, role: &str) -> Result<Value> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=role%3D{role}");
    let mut pods = api.list(&path).await?;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods.pop()
        .with_context(|| format!("no pod with role {role}"))
}

/// The status of the container that crashes.
fn container(pod: &Value) -> Value {
    let status = |kind: &str| pod["status"][kind][0].clone();
    let init = status("initContainerStatuses");
    if init.is_object() {
        init
    } else {
        status("containerStatuses")
    }
}

async fn ready(api: &KubeApi, namespace: &str, role: &str) -> Result<()> {
    eventually("the pod is ready", async || {
        let pod = pod(api, namespace, role).await?;
        ensure!(
            pod["status"]["containerStatuses"][0]["ready"] == true,
            "{}",
            pod["status"]
        );
        Ok(())
    })
    .await
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
