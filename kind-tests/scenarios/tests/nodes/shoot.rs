//! A shoot: its control plane's pods on the seed's machine, its nodes machines, and a Service over
//! pods on them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::gardener::{self, CA, CLUSTERS, KCM, MACHINES, MCM, PROBE, shoot_access};
use testbed::kube_api::{Change, kubeconfig};
use testbed::seed::ControlPlane;
use testbed::{KubeApi, eventually};
use tokio::task::JoinHandle;

use crate::images::{CONTROLLER_MANAGER, TOOL};
use crate::machine::Machine;

/// What the prober scales.
pub const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// A shoot.
pub struct Shoot {
    /// Its namespace on the seed.
    pub namespace: &'static str,
    /// Its control plane.
    pub plane: ControlPlane,
    /// Its machines.
    pub machines: Vec<Machine>,
    seed: KubeApi,
    seen: Arc<Seen>,
    _watches: Vec<JoinHandle<Result<()>>>,
}

/// What has been seen of a shoot.
struct Seen {
    unknown: Mutex<BTreeSet<String>>,
    /// The least ready endpoints that the Service ever had.
    least: Mutex<usize>,
}

impl Shoot {
    /// Makes one whose nodes are registered, with no access for the prober.
    pub async fn create(
        seed: &KubeApi,
        namespace: &'static str,
        plane: ControlPlane,
        machines: Vec<Machine>,
    ) -> Result<Self> {
        let mut object = gardener::namespace(namespace);
        object["metadata"]["labels"] = json!({"gardener.cloud/role": "shoot"});
        seed.create("/api/v1/namespaces", &object).await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KCM, "namespace": namespace},
            "stringData": {"kubeconfig": plane.admin_kubeconfig()}});
        seed.create(&format!("/api/v1/namespaces/{namespace}/secrets"), &secret)
            .await?;
        for name in DEPENDENTS {
            let command = if name == KCM {
                controller_manager()
            } else {
                json!({"image": TOOL})
            };
            seed.create(
                &format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
                &deployment(name, &command),
            )
            .await?;
        }
        let api = plane.api();
        for (collection, object) in shoot_access() {
            api.create(&collection, &object).await?;
        }
        let nodes: Vec<&str> = machines.iter().map(Machine::name).collect();
        for node in &nodes {
            eventually("the node's kubelet registers it", async || {
                api.get(&format!("/api/v1/nodes/{node}")).await
            })
            .await?;
        }
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
        api.create("/api/v1/namespaces/default/services", &service)
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
            api.create("/api/v1/namespaces/default/pods", &web(node))
                .await?;
        }
        eventually("all endpoints of the Service are ready", async || {
            let ready = ready_endpoints(api).await?;
            ensure!(ready == nodes.len(), "{ready}");
            Ok(())
        })
        .await?;
        let seen = Arc::new(Seen {
            unknown: Mutex::default(),
            least: Mutex::new(nodes.len()),
        });
        let watches = [
            ("/api/v1/nodes", Seen::node as fn(&Seen, &Change)),
            (
                "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
                Seen::endpoints,
            ),
        ]
        .map(|(collection, see)| {
            let (api, seen) = (api.clone(), seen.clone());
            tokio::spawn(async move { api.follow(collection, |change| see(&seen, &change)).await })
        });
        Ok(Self {
            namespace,
            plane,
            machines,
            seed: seed.clone(),
            seen,
            _watches: watches.into(),
        })
    }

    /// Tells the watchdog of it: its Machines, the prober's access, its Cluster.
    pub async fn publish(&self) -> Result<()> {
        let namespace = self.namespace;
        for machine in &self.machines {
            let collection = format!("{MACHINES}/namespaces/{namespace}/machines");
            self.seed
                .create(&collection, &gardener::machine(namespace, machine.name()))
                .await?;
        }
        let token = self.plane.api().token("kube-system", PROBE).await?;
        let access = kubeconfig(&self.plane.url(), self.plane.authority(), &token);
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        self.seed
            .create(&secrets, &gardener::probe_secret(namespace, &access))
            .await?;
        let mut cluster = gardener::cluster(namespace, Some("40s"));
        cluster["spec"]["shoot"]["status"]["lastOperation"]["lastUpdateTime"] =
            "2025-01-01T00:00:00Z".into();
        self.seed.create(CLUSTERS, &cluster).await
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
            let object = self.seed.get(&path).await?;
            replicas.push((
                object["spec"]["replicas"].as_i64().unwrap_or(-1),
                object["status"]["readyReplicas"].as_i64().unwrap_or(0),
            ));
        }
        Ok(replicas)
    }

    /// The names of its nodes that are Unknown.
    pub async fn unknown(&self) -> Result<usize> {
        let list = self.plane.api().get("/api/v1/nodes").await?;
        Ok(list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|node| is_unknown(node))
            .count())
    }

    /// The Service's ready endpoints.
    pub async fn endpoints(&self) -> Result<usize> {
        ready_endpoints(self.plane.api()).await
    }

    /// The nodes that were ever Unknown, and the least ready endpoints that there ever were.
    pub fn seen(&self) -> (Vec<String>, usize) {
        let unknown = self
            .seen
            .unknown
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let least = self
            .seen
            .least
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (unknown.iter().cloned().collect(), *least)
    }
}

impl Seen {
    fn node(&self, change: &Change) {
        if let Change::Set(node) = change
            && is_unknown(node)
        {
            let name = node["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            self.unknown
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(name);
        }
    }

    fn endpoints(&self, change: &Change) {
        let Change::Set(slice) = change else { return };
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web" {
            let mut least = self.least.lock().unwrap_or_else(PoisonError::into_inner);
            *least = ready(slice).min(*least);
        }
    }
}

async fn ready_endpoints(shoot: &KubeApi) -> Result<usize> {
    let list = shoot
        .get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
        .await?;
    Ok(list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(ready)
        .sum())
}

fn is_unknown(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "Unknown")
}

fn ready(slice: &Value) -> usize {
    if slice["metadata"]["labels"]["kubernetes.io/service-name"] != "web" {
        return 0;
    }
    slice["endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|endpoint| endpoint["conditions"]["ready"] == true)
        .count()
}

fn controller_manager() -> Value {
    let controllers = "node-lifecycle-controller,taint-eviction-controller,endpointslice-controller,serviceaccount-controller";
    json!({"image": CONTROLLER_MANAGER,
        "args": ["--kubeconfig=/access/kubeconfig", format!("--controllers={controllers}"), "--node-monitor-grace-period=40s",
            "--leader-elect=false", "--secure-port=0"],
        "volumeMounts": [{"name": "access", "mountPath": "/access"}]})
}

fn deployment(name: &str, command: &Value) -> Value {
    let labels = json!({"app": "kubernetes", "role": name, "gardener.cloud/role": "controlplane"});
    let mut container = json!({"name": name, "imagePullPolicy": "Never"});
    for (key, value) in command.as_object().into_iter().flatten() {
        container[key] = value.clone();
    }
    let mut spec = json!({"terminationGracePeriodSeconds": 2, "automountServiceAccountToken": false, "containers": [container]});
    if name == KCM {
        spec["volumes"] = json!([{"name": "access", "secret": {"secretName": KCM}}]);
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})
}

/// A pod of the Service on this node.
fn web(node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{node}"), "labels": {"app": "web"}},
        "spec": {"nodeName": node, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "web", "image": TOOL, "imagePullPolicy": "Never", "command": ["/bin/httpd", "-f", "-p", "80"],
                "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}]}})
}
