//! What Gardener puts into a seed and a shoot: its objects, its names, and the rights it grants (rules 81 to 84).

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::access::{Rule, User};

/// The Secret that holds a shoot's kubeconfig (rule 87).
pub const PROBE_SECRET: &str = "shoot-access-dependency-watchdog-probe";
/// The annotation that remembers replicas.
pub const REPLICAS: &str = "dependency-watchdog.gardener.cloud/replicas";
/// The annotation that marks a resource as held down.
pub const PROTECTED: &str = "dependency-watchdog.gardener.cloud/meltdown-protection-active";
/// The annotation that keeps the watchdog's hands off.
pub const IGNORE: &str = "dependency-watchdog.gardener.cloud/ignore-scaling";

/// The prober in the seed (rules 81 and 83).
pub fn seed_prober() -> User {
    let mut rules = vec![
        Rule::new("get,list,watch", "clusters.extensions.gardener.cloud,namespaces,secrets,machines.machine.sapcloud.io"),
        Rule::new("get,list,watch,update,patch", "deployments.apps,deployments.apps/scale"),
    ];
    rules.extend(election("dwd-prober-leader-election"));
    User::limited("system:serviceaccount:garden:dependency-watchdog-prober", rules)
}

/// The weeder in the seed (rules 82 and 83).
pub fn seed_weeder() -> User {
    let mut rules =
        vec![Rule::new("get,list,watch,delete", "pods"), Rule::new("get,list,watch", "endpointslices.discovery.k8s.io")];
    rules.extend(election("dwd-weeder-leader-election"));
    User::limited("system:serviceaccount:garden:dependency-watchdog-weeder", rules)
}

/// The probe in a shoot (rule 84).
pub fn shoot_probe() -> User {
    let leases = Rule::new("get,list", "leases.coordination.k8s.io").in_namespace("kube-node-lease");
    User::limited("system:serviceaccount:kube-system:dependency-watchdog-probe", vec![Rule::new("get,list", "nodes"), leases])
}

fn election(lock: &str) -> [Rule; 3] {
    let lease = "leases.coordination.k8s.io";
    [
        Rule::new("create", lease).in_namespace("garden"),
        Rule::new("get,watch,update", lease).in_namespace("garden").named(lock),
        Rule::new("create,get,update,patch", "events").in_namespace("garden"),
    ]
}

/// A Cluster: one worker pool, not hibernated, last operation done. `grace` is `nodeMonitorGracePeriod`, Kubernetes' default if `None`.
pub fn cluster(namespace: &str, grace: Option<&str>) -> Value {
    let mut kubernetes = json!({"version": "1.36.3"});
    if let Some(grace) = grace {
        kubernetes["kubeControllerManager"] = json!({"nodeMonitorGracePeriod": grace});
    }
    let shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": namespace.rsplit("--").next(), "namespace": "garden-demo"},
        "spec": {"kubernetes": kubernetes, "provider": {"type": "local", "workers": [{"name": "worker", "minimum": 1, "maximum": 9}]}},
        "status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100}},
    });
    json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": namespace},
        "spec": {"shoot": shoot, "seed": {}, "cloudProfile": {}}})
}

/// The Secret with a shoot's kubeconfig.
pub fn probe_secret(namespace: &str, kubeconfig: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": PROBE_SECRET, "namespace": namespace},
        "data": {"kubeconfig": BASE64_STANDARD.encode(kubeconfig)}})
}

/// A Deployment whose pods are all ready.
pub fn deployment(namespace: &str, name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": name}]}}},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}})
}

/// A running Machine that stands for a node.
pub fn machine(namespace: &str, node: &str) -> Value {
    json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": {"name": node, "namespace": namespace, "labels": {"node": node}},
        "spec": {"class": {"kind": "MachineClass", "name": "worker"}},
        "status": {"currentStatus": {"phase": "Running"}}})
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}})
}
