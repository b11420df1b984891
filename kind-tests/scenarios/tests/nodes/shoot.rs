//! A shoot: its control plane's pods on the seed's machine, its nodes machines, and a Service over
//! pods on them.

use std::collections::BTreeSet;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::control_plane::ControlPlane;
use testbed::followed::{Followed, unknown_nodes};
use testbed::gardener::{self, CA, KCM, MCM, PROBE, shoot_access};
use testbed::kube_api::kubeconfig;
use testbed::objects::is_unknown;
use testbed::seed::ReplicaState;
use testbed::{EndpointWatch, KubeApi, eventually};

use crate::images::{CONTROLLER_MANAGER, TOOL};
use crate::machine::NodeMachine;
use crate::workloads::{create_namespace, deployment, service};

/// What the prober scales.
pub const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// A shoot.
pub struct NodeShoot {
    /// Its namespace on the seed.
    pub namespace: &'static str,
    /// Its control plane.
    pub plane: ControlPlane,
    /// Its machines.
    pub machines: Vec<NodeMachine>,
    /// What its Service's EndpointSlices say.
    pub endpoints: EndpointWatch,
    seed: KubeApi,
    /// The nodes that were ever Unknown.
    pub ever_unknown: Followed<BTreeSet<String>>,
}

impl NodeShoot {
    /// Makes one whose nodes are registered, with no access for the prober.
    pub async fn create(
        seed: &KubeApi,
        namespace: &'static str,
        plane: ControlPlane,
        machines: Vec<NodeMachine>,
    ) -> Result<Self> {
        create_namespace(seed, namespace).await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KCM, "namespace": namespace},
            "stringData": {"kubeconfig": plane.admin_kubeconfig()}});
        seed.create(&secret).await?;
        for name in DEPENDENTS {
            let spec = if name == KCM {
                controller_manager()
            } else {
                json!({"containers": [{"name": name, "image": TOOL, "imagePullPolicy": "Never"}]})
            };
            seed.create(&deployment(namespace, name, name, 1, spec))
                .await?;
        }
        let api = plane.api();
        api.create_all(&shoot_access()).await?;
        let nodes: Vec<&str> = machines.iter().map(NodeMachine::name).collect();
        for node in &nodes {
            eventually("the node's kubelet registers it", async || {
                api.get(&format!("/api/v1/nodes/{node}")).await
            })
            .await?;
        }
        api.create(&service("default", "web", json!({"app": "web"}), 80))
            .await?;
        eventually(
            "the shoot's controllers have made its ServiceAccount",
            async || {
                api.get("/api/v1/namespaces/default/serviceaccounts/default")
                    .await
            },
        )
        .await?;
        for node in &nodes {
            api.create(&web(node)).await?;
        }
        let endpoints = EndpointWatch::of(api, "default", "web");
        endpoints.all_ready(nodes.len()).await?;
        Ok(Self {
            ever_unknown: unknown_nodes(api),
            namespace,
            plane,
            machines,
            endpoints,
            seed: seed.clone(),
        })
    }

    /// Tells the watchdog of it: its Machines, the prober's access, its Cluster.
    pub async fn publish(&self) -> Result<()> {
        let namespace = self.namespace;
        for machine in &self.machines {
            let machine = gardener::machine(namespace, machine.name());
            self.seed.create(&machine).await?;
        }
        let token = self.plane.api().token("kube-system", PROBE).await?;
        let access = kubeconfig(&self.plane.url(), self.plane.authority(), &token);
        let secret = gardener::probe_secret(namespace, &access);
        self.seed.create(&secret).await?;
        let mut cluster = gardener::cluster(namespace, Some("40s"));
        cluster["spec"]["shoot"]["status"]["lastOperation"]["lastUpdateTime"] =
            "2025-01-01T00:00:00Z".into();
        self.seed.create(&cluster).await
    }

    /// Pulls its machines' cables, or puts them in again.
    pub async fn plug(&self, plugged: bool) -> Result<()> {
        try_join_all(self.machines.iter().map(|machine| machine.plug(plugged)))
            .await
            .map(drop)
    }

    /// Desired and ready replicas of what the prober scales.
    pub async fn replicas(&self) -> Result<Vec<(i64, i64)>> {
        let mut replicas = Vec::new();
        for name in DEPENDENTS {
            let path = format!(
                "/apis/apps/v1/namespaces/{}/deployments/{name}",
                self.namespace
            );
            let ReplicaState {
                replicas: desired,
                ready,
                ..
            } = ReplicaState::of(&self.seed.get(&path).await?);
            replicas.push((desired, ready));
        }
        Ok(replicas)
    }

    /// How many of its nodes are Unknown.
    pub async fn unknown(&self) -> Result<usize> {
        let nodes = self.plane.api().list("/api/v1/nodes").await?;
        Ok(nodes.iter().filter(|node| is_unknown(node)).count())
    }
}

/// The pod of kube-controller-manager.
fn controller_manager() -> Value {
    let controllers = "node-lifecycle-controller,taint-eviction-controller,endpointslice-controller,serviceaccount-controller";
    let container = json!({"name": KCM, "image": CONTROLLER_MANAGER, "imagePullPolicy": "Never",
        "args": ["--kubeconfig=/access/kubeconfig", format!("--controllers={controllers}"), "--node-monitor-grace-period=40s",
            "--leader-elect=false", "--secure-port=0"],
        "volumeMounts": [{"name": "access", "mountPath": "/access"}]});
    json!({"containers": [container], "volumes": [{"name": "access", "secret": {"secretName": KCM}}]})
}

/// A pod of the Service on this node.
fn web(node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{node}"), "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": node, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "web", "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/httpd", "-f", "-p", "80"],
                "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}]}})
}
