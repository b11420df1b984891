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

/// The Service that pods need, in the namespace of a shoot, and the pod behind it.
pub struct NeededService<'a> {
    api: &'a KubeApi,
    namespace: String,
    endpoints: EndpointWatch,
    address: String,
}

impl<'a> NeededService<'a> {
    /// Makes all of it; the shoot is named after what crashes in it.
    pub async fn create(api: &'a KubeApi, shoot: &str, is_ready: bool) -> Result<Self> {
        let namespace = format!("shoot--weed--{}", unique(shoot));
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
        let path = format!("/api/v1/namespaces/{namespace}/services/{SERVICE}");
        let service = api.get(&path).await?;
        let address = service["spec"]["clusterIP"].as_str();
        let etcd = json!({"containers": [{"name": "etcd", "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/httpd", "-f", "-p", "2379"],
            "readinessProbe": {"tcpSocket": {"port": 2379}, "periodSeconds": 1}}]});
        let etcd = deployment(&namespace, "etcd-main", "main", usize::from(is_ready), etcd);
        api.create(&etcd).await?;
        let created = Self {
            api,
            endpoints,
            address: address.context("no clusterIP")?.to_owned(),
            namespace,
        };
        created.becomes(is_ready).await?;
        Ok(created)
    }

    /// Makes it ready, or takes its pod away.
    pub async fn set(&self, is_ready: bool) -> Result<()> {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/etcd-main",
            self.namespace
        );
        let patch = json!({"spec": {"replicas": i64::from(is_ready)}});
        self.api.merge(&path, &patch).await?;
        self.becomes(is_ready).await
    }

    async fn becomes(&self, is_ready: bool) -> Result<()> {
        eventually("the Service is as it should be", async || {
            let ready = self.endpoints.get().ready();
            ensure!((ready > 0) == is_ready, "{ready} ready endpoints");
            Ok(())
        })
        .await
    }

    /// The shell command that succeeds if the Service is ready.
    pub fn asks(&self) -> String {
        format!("nc -w 1 {} 2379 -e /bin/true", self.address)
    }

    /// Creates pods that need it.
    pub async fn deploy(&self, name: &str, role: &str, pods: usize, spec: Value) -> Result<()> {
        let pods = deployment(&self.namespace, name, role, pods, spec);
        self.api.create(&pods).await.map(drop)
    }

    /// The pods with this role that nobody has deleted.
    pub async fn list(&self, role: &str) -> Result<Vec<Value>> {
        let mut pods = self.api.list(&self.pods(role)).await?;
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        Ok(pods)
    }

    /// The path of the pods with this role.
    pub fn pods(&self, role: &str) -> String {
        format!(
            "/api/v1/namespaces/{}/pods?labelSelector=role%3D{role}",
            self.namespace
        )
    }
}

/// A container that runs a shell script.
pub fn container(name: &str, script: String) -> Value {
    json!({"name": name, "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", script]})
}

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

    /// The pod, which asks so for its Service.
    fn pod_spec(self, asks: &str) -> Value {
        let serves = "httpd -f -p 6443";
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
            spec["initContainers"] = json!([container("init", asks.into())]);
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
    let was_ready = shape == CrashShape::ReadyBefore;
    let name = format!("{shape:?}").to_lowercase();
    let service = NeededService::create(api, &name, was_ready).await?;
    for (name, role) in [
        ("kube-apiserver", "apiserver"),
        ("unknown-to-the-weeder", "other"),
    ] {
        let spec = shape.pod_spec(&service.asks());
        service.deploy(name, role, 1, spec).await?;
        if was_ready {
            ready(&service, role).await?;
        }
    }
    if was_ready {
        service.set(false).await?;
    }
    // From the fourth crash on a kubelet waits for 40 s or more.
    eventually("both pods wait for their kubelet's back-off", async || {
        for (role, most) in [("apiserver", 15), ("other", 25)] {
            let status = status(&pod(&service, role).await?);
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
    service.set(true).await?;
    let back = Instant::now();
    // It may be gone already, or be the next pod, whose container has not ended.
    let crashed = pod(&service, "apiserver").await;
    let crashed = crashed.and_then(|pod| ended(&status(&pod)));
    let ended = crashed.map_or(Duration::ZERO, |ended| {
        (Utc::now() - ended).to_std().unwrap_or_default()
    });
    ready(&service, "apiserver").await?;
    let with = back.elapsed();
    ready(&service, "other").await?;
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
async fn pod(service: &NeededService<'_>, role: &str) -> Result<Value> {
    let pod = service.list(role).await?.pop();
    pod.with_context(|| format!("no pod with role {role}"))
}

/// The status of the container that crashes.
fn status(pod: &Value) -> Value {
    let status = |kind: &str| pod["status"][kind][0].clone();
    let init = status("initContainerStatuses");
    if init.is_object() {
        init
    } else {
        status("containerStatuses")
    }
}

async fn ready(service: &NeededService<'_>, role: &str) -> Result<()> {
    eventually("the pod is ready", async || {
        let pod = pod(service, role).await?;
        ensure!(
            pod["status"]["containerStatuses"][0]["ready"] == true,
            "{}",
            pod["status"]
        );
        Ok(())
    })
    .await
}
