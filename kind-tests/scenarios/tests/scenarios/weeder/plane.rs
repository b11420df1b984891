//! The control plane of a shoot, as far as it matters to the weeder: two Services and three kinds
//! of pods.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::agent::RunningAgent;
use testbed::kube_api::KubeApi;
use testbed::{Testbed, eventually, gardener, unique};

use super::ground::{Ground, NODE, no_window};

/// The Service of etcd.
pub const ETCD: &str = "etcd-main-client";
/// The Service of kube-apiserver.
pub const API: &str = "kube-apiserver";

/// How a pod is.
#[derive(Clone, Copy, PartialEq)]
pub enum PodPhase {
    Ready,
    NotReady,
    /// It waits in CrashLoopBackOff, and its kubelet says so.
    Crashing,
    /// Its container has ended after a short run, and that is all that its kubelet says: it has not tried to start it
    /// since, or has and tries again at the end of the back-off.
    Terminated,
}

/// A control plane in a namespace of its own.
pub struct Plane {
    pub ground: Arc<Ground>,
    pub namespace: String,
}

impl Plane {
    /// A control plane on the shared ground.
    pub async fn create(bed: &'static Testbed, name: &str, etcd: usize) -> Result<Self> {
        Self::on(&Ground::shared(bed).await?, name, etcd).await
    }

    /// A control plane with its Services and so many pods of etcd, kube-apiserver and
    /// kube-controller-manager each, none ready.
    pub async fn on(ground: &Arc<Ground>, name: &str, etcd: usize) -> Result<Self> {
        let plane = Self {
            ground: ground.clone(),
            namespace: format!("weeder-{}", unique(name)),
        };
        let api = plane.api();
        api.create(&gardener::namespace(&plane.namespace)).await?;
        let metadata = |name: &str| json!({"name": name, "namespace": plane.namespace});
        for (service, role) in [(ETCD, "main"), (API, "apiserver")] {
            let spec = json!({"selector": {"role": role}, "ports": [{"port": 443}]});
            api.create(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(service), "spec": spec}))
                .await?;
        }
        for (role, replicas) in [("main", etcd), ("apiserver", 1), ("controller-manager", 1)] {
            let labels = json!({"gardener.cloud/role": "controlplane", "role": role});
            let template = json!({"metadata": {"labels": labels}, "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "example.org/c"}]}});
            let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
            api.create(&json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(role), "spec": spec}))
                .await?;
            plane.count(role, replicas).await?;
        }
        Ok(plane)
    }

    pub fn api(&self) -> &KubeApi {
        self.ground.seed.api()
    }

    pub fn path(&self, api: &str, plural: &str) -> String {
        format!("{api}/namespaces/{}/{plural}", self.namespace)
    }

    /// Names and UIDs of the pods of a role that are not about to end.
    pub async fn pods(&self, role: &str) -> Result<Vec<(String, String)>> {
        let list = self
            .api()
            .get(&format!(
                "{}?labelSelector=role={role}",
                self.path("/api/v1", "pods")
            ))
            .await?;
        let pods = list["items"].as_array().context("a list")?.iter();
        let living = pods
            .map(|pod| &pod["metadata"])
            .filter(|metadata| metadata["deletionTimestamp"].is_null());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(living
            .map(|metadata| (text(&metadata["name"]), text(&metadata["uid"])))
            .collect())
    }

    /// Waits until a role has so many pods.
    pub async fn count(&self, role: &str, count: usize) -> Result<Vec<(String, String)>> {
        eventually(&format!("{count} pods of {role}"), async || {
            let pods = self.pods(role).await?;
            ensure!(pods.len() == count, "{pods:?}");
            Ok(pods)
        })
        .await
    }

    pub async fn scale(&self, role: &str, replicas: usize) -> Result<()> {
        let path = format!("{}/{role}", self.path("/apis/apps/v1", "replicasets"));
        self.api()
            .merge(&path, &json!({"spec": {"replicas": replicas}}))
            .await?;
        self.count(role, replicas).await.map(drop)
    }

    /// All pods of a role are so.
    pub async fn all(&self, role: &str, state: PodPhase) -> Result<()> {
        for (name, _) in self.pods(role).await? {
            self.set(&name, state).await?;
        }
        Ok(())
    }

    /// A pod is so.
    pub async fn set(&self, name: &str, state: PodPhase) -> Result<()> {
        self.report(name, state, 9).await
    }

    /// A pod is so, and its container has been restarted so often.
    pub async fn report(&self, name: &str, state: PodPhase, restarts: u32) -> Result<()> {
        let path = format!("{}/{name}/status", self.path("/api/v1", "pods"));
        self.api()
            .merge(&path, &json!({"status": status(state, restarts)}))
            .await
            .map(drop)
    }

    async fn slices(&self, service: &str) -> Result<Value> {
        let path = self.path("/apis/discovery.k8s.io/v1", "endpointslices");
        self.api()
            .get(&format!(
                "{path}?labelSelector=kubernetes.io/service-name={service}"
            ))
            .await
    }

    /// Waits until the Service has ready endpoints, or none.
    pub async fn service(&self, service: &str, ready: bool) -> Result<()> {
        eventually(&format!("{service} ready: {ready}"), async || {
            let slices = self.slices(service).await?;
            let endpoints = slices["items"]
                .as_array()
                .into_iter()
                .flatten()
                .flat_map(|slice| slice["endpoints"].as_array());
            let any = endpoints
                .flatten()
                .any(|endpoint| endpoint["conditions"]["ready"] != json!(false));
            ensure!(any == ready, "{slices}");
            Ok(())
        })
        .await
    }

    /// Waits until the Service has an endpoint that is not ready: that it becomes ready is noticed
    /// from now on.
    pub async fn unready(&self, service: &str) -> Result<()> {
        eventually(&format!("an endpoint of {service}"), async || {
            let slices = self.slices(service).await?;
            let ready = slices.pointer("/items/0/endpoints/0/conditions/ready");
            ensure!(ready == Some(&json!(false)), "{slices}");
            Ok(())
        })
        .await
    }

    /// etcd becomes unready, and kube-apiserver crash-loops; its pods. A weeder that has opened a
    /// window before is to know of the former first.
    pub async fn outage(&self, weeder: Option<&RunningAgent>) -> Result<Vec<(String, String)>> {
        self.all("main", PodPhase::NotReady).await?;
        self.unready(ETCD).await?;
        if let Some(weeder) = weeder {
            no_window(weeder).await?;
        }
        self.all("apiserver", PodPhase::Crashing).await?;
        self.pods("apiserver").await
    }

    /// etcd is ready again, and these pods of kube-apiserver are replaced.
    pub async fn recovery(&self, servers: &[(String, String)]) -> Result<()> {
        self.all("main", PodPhase::Ready).await?;
        self.replaced("apiserver", servers).await.map(drop)
    }

    /// Waits until a weeder says that it knows of the Service's outage.
    pub async fn left_alone(&self, service: &str) -> Result<()> {
        eventually(
            &format!("the dependants of {service} are left alone"),
            async || {
                let log = self.ground.logged(&self.namespace);
                let lines = log
                    .lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let mut ends =
                    lines.filter(|line| line["end"].is_string() && line["service"] == service);
                ensure!(ends.next().is_some(), "{log}");
                Ok(())
            },
        )
        .await
    }

    /// Waits until the only pod of a role is another one than this.
    pub async fn replaced(
        &self,
        role: &str,
        before: &[(String, String)],
    ) -> Result<Vec<(String, String)>> {
        eventually(&format!("new pods of {role}"), async || {
            let pods = self.pods(role).await?;
            ensure!(
                pods.len() == before.len() && pods.iter().all(|pod| !before.contains(pod)),
                "{pods:?}"
            );
            Ok(pods)
        })
        .await
        .with_context(|| self.ground.logged(&self.namespace))
    }

    /// Nothing but what was expected has been deleted by the weeder, and nothing was forbidden to
    /// it.
    pub async fn end(self, deleted: usize) -> Result<()> {
        self.ground.requests_within_rights()?;
        self.clear(deleted).await
    }

    /// Nothing but what was expected has been deleted by the weeder.
    pub async fn clear(self, deleted: usize) -> Result<()> {
        let deletes = self.ground.deletes(&self.namespace);
        ensure!(
            deletes.len() == deleted,
            "expected {deleted} deletions: {deletes:?}"
        );
        self.ground.seed.search_events().await?;
        for collection in [
            self.path("/apis/apps/v1", "replicasets"),
            self.path("/api/v1", "services"),
            self.path("/api/v1", "pods"),
        ] {
            for name in self.api().names(&collection).await? {
                self.api().delete(&format!("{collection}/{name}")).await?;
            }
        }
        Ok(())
    }

    /// The names and statuses of the weeders' DELETEs.
    pub fn answers(&self) -> Vec<(String, u64)> {
        self.ground
            .deletes(&self.namespace)
            .into_iter()
            .map(|asked| (asked.name, asked.code))
            .collect()
    }

    /// Waits until a pod that begins to crash now has been deleted: what happened before has been
    /// acted upon.
    pub async fn barrier(&self) -> Result<()> {
        let pods = self.pods("apiserver").await?;
        let own: Vec<_> = pods
            .into_iter()
            .filter(|(name, _)| name != "namesake")
            .collect();
        for (name, _) in &own {
            self.set(name, PodPhase::Crashing).await?;
        }
        eventually("the barrier's deletion", async || {
            let pods = self.pods("apiserver").await?;
            ensure!(pods.iter().all(|pod| !own.contains(pod)), "{pods:?}");
            Ok(())
        })
        .await
    }
}

/// What a kubelet says of a pod.
fn status(state: PodPhase, restarts: u32) -> Value {
    static ADDRESSES: AtomicU32 = AtomicU32::new(1);
    let number = ADDRESSES.fetch_add(1, Ordering::Relaxed);
    let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    let container = match state {
        PodPhase::Crashing => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        PodPhase::Terminated => {
            json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:20Z"}})
        }
        PodPhase::Ready | PodPhase::NotReady => {
            json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        }
    };
    let ready = state == PodPhase::Ready;
    json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "containerStatuses": [{"name": "c", "image": "example.org/c", "imageID": "", "restartCount": restarts, "ready": ready, "state": container}],
    })
}
