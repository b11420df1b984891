//! A seed for weeders whose ReplicaSets and EndpointSlices are kept by Kubernetes' own controllers.
//! The scenarios are the kubelets: they say which pods are ready and which crash-loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::agent::RunningAgent;
use testbed::audit::Asked;
use testbed::gardener::{self, WEEDER_USER, weeder_access};
use testbed::kube_api::KubeApi;
use testbed::objects::metadata;
use testbed::process::Process;
use testbed::{SeedCluster, Testbed, eventually, unique};

/// The roles of the pods: etcd,
pub const ETCD: &str = "main";
/// kube-apiserver
pub const SERVER: &str = "apiserver";
/// and kube-controller-manager.
pub const MANAGER: &str = "controller-manager";
/// Their Services, each with the role of its pods.
const SERVICES: [(&str, &str); 2] = [("etcd-main-client", ETCD), ("kube-apiserver", SERVER)];
/// The node of all pods: without one none becomes an endpoint.
const NODE: &str = "weeder";

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

/// The control plane of a shoot, as far as it matters to the weeder, on a seed whose controllers
/// run: two Services, and three ReplicaSets of a pod each.
pub struct Plane {
    pub namespace: String,
    _controllers: Process,
    /// The last to be dropped, since another scenario has it then.
    pub seed: Arc<SeedCluster>,
}

/// A pod, by its role, name and UID.
#[derive(Debug, PartialEq)]
pub struct RolePod {
    role: &'static str,
    name: String,
    uid: String,
}

impl Plane {
    /// Makes one, with no pod ready.
    pub async fn create(bed: &'static Testbed, name: &str) -> Result<Self> {
        let seed = bed.own_seed().await?;
        let plane = Self {
            namespace: format!("weeder-{}", unique(name)),
            _controllers: controllers(bed, &seed).await?,
            seed,
        };
        let api = plane.api();
        api.create_all(&weeder_access()).await?;
        api.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"bed": "weeder"}}}))
            .await?;
        api.create(&gardener::namespace(&plane.namespace)).await?;
        let metadata = |name: &str| json!({"name": name, "namespace": plane.namespace});
        for (service, role) in SERVICES {
            let spec = json!({"selector": {"role": role}, "ports": [{"port": 443}]});
            api.create(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(service), "spec": spec}))
                .await?;
        }
        for role in [ETCD, SERVER, MANAGER] {
            let labels = json!({"gardener.cloud/role": "controlplane", "role": role});
            let template = json!({"metadata": {"labels": labels}, "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "example.org/c"}]}});
            let spec = json!({"selector": {"matchLabels": labels}, "template": template});
            api.create(&json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(role), "spec": spec}))
                .await?;
        }
        Ok(plane)
    }

    pub fn api(&self) -> &KubeApi {
        self.seed.api()
    }

    /// What weeders have asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.seed.asked_by(WEEDER_USER)
    }

    /// Waits until a weeder leads and has watched both kinds of objects.
    pub async fn watched(&self, weeder: &RunningAgent) -> Result<()> {
        eventually("the weeder leads and watches", async || {
            let asked = self.asked().into_iter();
            let watches = asked.filter(|asked| asked.verb == "watch" && asked.code == 200);
            let watched: BTreeSet<String> = watches.map(|asked| asked.resource).collect();
            let both = ["pods", "endpointslices"]
                .iter()
                .all(|it| watched.contains(*it));
            let leads = !weeder.log("\"leading\"").is_empty();
            ensure!(both && leads, "{watched:?}\n{}", weeder.tail(20));
            Ok(())
        })
        .await
    }

    /// The answers to weeders' deletions here. No Event may tell a credential.
    pub async fn deletions(&self) -> Result<Vec<u64>> {
        self.seed.search_events().await?;
        let deletions = self
            .asked()
            .into_iter()
            .filter(|asked| asked.verb == "delete");
        Ok(deletions.map(|asked| asked.code).collect())
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// Waits for the pod of a role, of those that are not about to end.
    pub async fn pod(&self, role: &'static str) -> Result<RolePod> {
        let path = format!("{}?labelSelector=role={role}", self.pods());
        eventually(&format!("a pod of {role}"), async || {
            let mut pods = self.api().list(&path).await?;
            pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            let pod = pods.first().context("there is none")?;
            let [name, uid] = ["name", "uid"].map(|field| metadata(pod, field).to_owned());
            Ok(RolePod { role, name, uid })
        })
        .await
    }

    /// The pod of a role is so.
    pub async fn set(&self, role: &'static str, phase: PodPhase) -> Result<()> {
        let path = format!("{}/{}/status", self.pods(), self.pod(role).await?.name);
        let status = json!({"status": status(role, phase)});
        self.api().merge(&path, &status).await
    }

    /// etcd is unready, and its Service knows: that it becomes ready is noticed from now on. The
    /// pod of kube-apiserver, which crash-loops.
    pub async fn outage(&self) -> Result<RolePod> {
        self.set(ETCD, PodPhase::NotReady).await?;
        let (service, _) = SERVICES[0];
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io/service-name={service}",
            self.namespace
        );
        eventually(&format!("an endpoint of {service}"), async || {
            let slices = Value::from(self.api().list(&slices).await?);
            let ready = slices.pointer("/0/endpoints/0/conditions/ready");
            ensure!(ready == Some(&json!(false)), "{slices}");
            Ok(())
        })
        .await?;
        self.set(SERVER, PodPhase::Crashing).await?;
        self.pod(SERVER).await
    }

    /// Waits until the pod of a role is another one than this.
    pub async fn replaced(&self, before: &RolePod) -> Result<()> {
        eventually(&format!("another pod than {before:?}"), async || {
            ensure!(self.pod(before.role).await? != *before);
            Ok(())
        })
        .await
    }
}

/// Starts those controllers.
async fn controllers(bed: &Testbed, seed: &SeedCluster) -> Result<Process> {
    let file = |name: &str| seed.folder().join(name);
    std::fs::write(file("admin"), seed.plane().admin_kubeconfig())?;
    let args = [
        format!("--kubeconfig={}", file("admin").display()),
        "--controllers=endpointslice-controller,replicaset-controller".into(),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
    ];
    let name = "kube-controller-manager";
    let program = bed.programs().await?.join(name);
    Process::start(name, &program, &args, &file("controllers-log"))
}

/// What a kubelet says of a pod.
fn status(role: &str, phase: PodPhase) -> Value {
    let ip = match role {
        ETCD => "10.1.0.1",
        SERVER => "10.1.0.2",
        _ => "10.1.0.3",
    };
    let container = match phase {
        PodPhase::Crashing => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        PodPhase::Terminated => {
            json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:20Z"}})
        }
        PodPhase::Ready | PodPhase::NotReady => {
            json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        }
    };
    let ready = phase == PodPhase::Ready;
    json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "containerStatuses": [{"name": "c", "image": "example.org/c", "imageID": "", "restartCount": 9, "ready": ready, "state": container}],
    })
}
