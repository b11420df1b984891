//! A Service in a shoot, with a pod on each of some nodes, and which of these its EndpointSlices
//! call ready.
//!
//! ```text
//! kubelet --Ready--> pod --endpointslice-controller--> EndpointSlice --watch--> EndpointWatch
//!                     ^-- not Ready: node-lifecycle-controller, as soon as the node is Unknown
//! ```

use std::collections::BTreeSet;

use anyhow::Result;
use futures::future::try_join_all;
use parking_lot::MutexGuard;
use serde_json::json;

use crate::endpoints::{EndpointWatch, ReadyEndpoints};
use crate::kube_api::KubeApi;

const NAMESPACE: &str = "default";
const NAME: &str = "web";
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
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {"selector": {"app": NAME}, "ports": [{"port": 80}]},
        });
        api.create(&service).await?;
        Ok(Self {
            api: api.clone(),
            pods: BTreeSet::new(),
            serial: 0,
            endpoints: EndpointWatch::of(api, NAMESPACE, NAME),
        })
    }

    /// Creates it with pods on these nodes, see [`WebService::run_on`].
    pub async fn over(api: &KubeApi, nodes: &[String]) -> Result<Self> {
        let mut service = Self::create(api).await?;
        service.run_on(nodes).await?;
        Ok(service)
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
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            // Static, so that a drain leaves it alone: no kubelet is there to confirm its end.
            "metadata": {"name": node, "namespace": NAMESPACE, "labels": {"app": NAME},
                "annotations": {"kubernetes.io/config.mirror": NAME}},
            "spec": {"nodeName": node, "containers": [{"name": NAME, "image": NAME}]},
        });
        self.api.create(&pod).await?;
        self.serial += 1;
        let ip = format!("10.1.{}.{}", self.serial / 250, self.serial % 250 + 1);
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        self.api
            .merge(&format!("{PODS}/{node}/status"), &status)
            .await
    }

    /// The kubelets report those pods as Ready again that others have set to not Ready.
    pub async fn report_lost(&self) -> Result<()> {
        let lost = self.endpoints().lost.clone();
        self.report(&lost).await
    }

    async fn report(&self, pods: &BTreeSet<String>) -> Result<()> {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let report = async |pod| {
            self.api
                .merge(&format!("{PODS}/{pod}/status"), &ready)
                .await
        };
        try_join_all(pods.iter().map(report)).await.map(drop)
    }

    /// What its EndpointSlices have said.
    pub fn endpoints(&self) -> MutexGuard<'_, ReadyEndpoints> {
        self.endpoints.get()
    }
}
