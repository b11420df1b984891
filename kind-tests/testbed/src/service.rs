//! A Service in a shoot, with a pod on each of some nodes, and which of these its EndpointSlices
//! call ready.
//!
//! ```text
//! kubelet --Ready--> pod --endpointslice-controller--> EndpointSlice --watch--> EndpointWatch
//!                     ^-- not Ready: node-lifecycle-controller, as soon as the node is Unknown
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use parking_lot::MutexGuard;
use serde_json::json;
use tokio::time::Instant;

use crate::followed::Followed;
use crate::kube_api::{KubeApi, ObjectChange};
use crate::objects::{items, name};
use crate::wait::eventually;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The Service of one shoot. Dropping it ends the watch.
pub struct WebService {
    api: KubeApi,
    /// Each is named for its node.
    pods: BTreeSet<String>,
    /// How many there ever were.
    serial: usize,
    endpoints: EndpointWatch,
}

impl WebService {
    /// Creates it, with no pod yet.
    pub async fn create(api: &KubeApi) -> Result<Self> {
        api.create_yaml(
            "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80}]}
",
        )
        .await?;
        Ok(Self {
            api: api.clone(),
            pods: BTreeSet::new(),
            serial: 0,
            endpoints: EndpointWatch::of(api, "default", "web"),
        })
    }

    /// Runs a pod on each of these nodes, and on no other, and waits until kube-controller-manager
    /// has made ready endpoints of all. From then on it is counted what is lost.
    pub async fn run_on(&mut self, nodes: &[String]) -> Result<()> {
        let nodes: BTreeSet<String> = nodes.iter().cloned().collect();
        for gone in &self.pods - &nodes {
            self.api.delete(&format!("{PODS}/{gone}")).await?;
        }
        for new in &nodes - &self.pods {
            self.run(&new).await?;
        }
        self.pods = nodes;
        self.report(&self.pods).await?;
        self.endpoints.all_ready(self.pods.len()).await
    }

    async fn run(&mut self, node: &str) -> Result<()> {
        // Static, so that a drain leaves it alone: no kubelet is there to confirm its end.
        let pod = format!(
            "
apiVersion: v1
kind: Pod
metadata:
  name: '{node}'
  namespace: default
  labels: {{app: web}}
  annotations: {{kubernetes.io/config.mirror: web}}
spec: {{nodeName: '{node}', containers: [{{name: web, image: web}}]}}
"
        );
        self.api.create_yaml(&pod).await?;
        self.serial += 1;
        let ip = format!("10.1.{}.{}", self.serial / 250, self.serial % 250 + 1);
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        let path = format!("{PODS}/{node}/status");
        self.api.merge(&path, &status).await
    }

    /// The kubelets report those pods as Ready again that others have set to not Ready.
    pub async fn report_lost(&self) -> Result<()> {
        let lost = self.endpoints().lost.clone();
        self.report(&lost).await
    }

    async fn report(&self, pods: &BTreeSet<String>) -> Result<()> {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let report = async |pod| {
            let path = format!("{PODS}/{pod}/status");
            self.api.merge(&path, &ready).await
        };
        try_join_all(pods.iter().map(report)).await.map(drop)
    }

    /// What its EndpointSlices have said.
    pub fn endpoints(&self) -> MutexGuard<'_, ReadyEndpoints> {
        self.endpoints.get()
    }
}

/// Follows the EndpointSlices of a Service. Dropping it ends the watch.
pub type EndpointWatch = Followed<ReadyEndpoints>;

/// What the EndpointSlices have said.
#[derive(Debug, Default)]
pub struct ReadyEndpoints {
    /// Whether each pod is ready, by EndpointSlice.
    slices: BTreeMap<String, BTreeMap<String, bool>>,
    /// The pods that were ever not ready.
    pub lost: BTreeSet<String>,
    /// Since when none is ready.
    none_since: Option<Instant>,
    /// How long none was, before that.
    without: Duration,
}

impl EndpointWatch {
    /// Follows a Service.
    pub fn of(api: &KubeApi, namespace: &str, service: &str) -> Self {
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
        );
        Self::start(api, slices, ReadyEndpoints::default(), |seen, change| {
            seen.apply(&change);
        })
    }

    /// Waits until `count` are ready, and counts from then on what is lost.
    pub async fn all_ready(&self, count: usize) -> Result<()> {
        eventually("all endpoints are ready", async || {
            let mut endpoints = self.get();
            let ready = endpoints.ready();
            ensure!(ready == count, "{ready} of {count}");
            *endpoints = ReadyEndpoints {
                slices: std::mem::take(&mut endpoints.slices),
                ..ReadyEndpoints::default()
            };
            endpoints.count();
            Ok(())
        })
        .await
    }
}

impl ReadyEndpoints {
    fn pods(&self) -> impl Iterator<Item = (&String, bool)> {
        let pods = self.slices.values().flatten();
        pods.map(|(name, is_ready)| (name, *is_ready))
    }

    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.pods().filter(|(_, is_ready)| *is_ready).count()
    }

    /// How long none was ready until now.
    pub fn without(&self, now: Instant) -> Duration {
        self.without + self.none_since.map_or(Duration::ZERO, |since| now - since)
    }

    fn apply(&mut self, change: &ObjectChange) {
        match change {
            ObjectChange::Gone(slice) => drop(self.slices.remove(name(slice))),
            ObjectChange::Set(slice) => {
                let pods = items(&slice["endpoints"]).filter_map(|endpoint| {
                    let pod = endpoint["targetRef"]["name"].as_str()?;
                    Some((pod.to_owned(), endpoint["conditions"]["ready"] == true))
                });
                self.slices.insert(name(slice).to_owned(), pods.collect());
            }
        }
        self.count();
    }

    fn count(&mut self) {
        let lost = self.pods().filter(|(_, is_ready)| !is_ready);
        let lost: Vec<String> = lost.map(|(pod, _)| pod.clone()).collect();
        self.lost.extend(lost);
        let now = Instant::now();
        if self.ready() == 0 {
            self.none_since.get_or_insert(now);
        } else if let Some(since) = self.none_since.take() {
            self.without += now - since;
        }
    }
}
