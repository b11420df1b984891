//! What Gardener puts into a seed and a shoot: its objects, its names, and the rights it grants
//! (rules 81 to 84).

mod manifests;

pub(crate) use manifests::manifest;
pub use manifests::{
    Manifest, definitions, more_access, prober_access, seed_access, shoot_access, weeder_access,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::api::{Rule, User};
use crate::renewers::stamp;

/// Where Gardener's components live on a seed.
pub const GARDEN: &str = "garden";
/// The prober's ServiceAccount in [`GARDEN`].
pub const PROBER: &str = "dependency-watchdog-prober";
/// The prober's ServiceAccount in a shoot, in kube-system.
pub const PROBE: &str = "dependency-watchdog-probe";
/// The weeder's ServiceAccount in [`GARDEN`].
pub const WEEDER: &str = "dependency-watchdog-weeder";
/// The prober's name among the users of a seed.
pub const PROBER_USER: &str = "system:serviceaccount:garden:dependency-watchdog-prober";
/// The weeder's name among the users of a seed.
pub const WEEDER_USER: &str = "system:serviceaccount:garden:dependency-watchdog-weeder";
/// The prober's name among the users of a shoot.
pub const PROBE_USER: &str = "system:serviceaccount:kube-system:dependency-watchdog-probe";
/// The collection of Cluster resources.
pub const CLUSTERS: &str = "/apis/extensions.gardener.cloud/v1alpha1/clusters";
/// The API of Machines.
pub const MACHINES: &str = "/apis/machine.sapcloud.io/v1alpha1";
/// The API of the test bed's own custom resource with a scale subresource.
pub const SCALERS: &str = "/apis/bed.example.org/v1";

/// The Secret that holds a shoot's kubeconfig (rule 87).
pub const PROBE_SECRET: &str = "shoot-access-dependency-watchdog-probe";
/// The three Deployments that Gardener lets the prober scale.
pub const KCM: &str = "kube-controller-manager";
/// machine-controller-manager.
pub const MCM: &str = "machine-controller-manager";
/// cluster-autoscaler.
pub const CA: &str = "cluster-autoscaler";
/// The annotation that remembers replicas.
pub const REPLICAS: &str = "dependency-watchdog.gardener.cloud/replicas";
/// The annotation that marks a resource as held down.
pub const PROTECTED: &str = "dependency-watchdog.gardener.cloud/meltdown-protection-active";
/// The annotation that keeps the watchdog's hands off.
pub const IGNORE: &str = "dependency-watchdog.gardener.cloud/ignore-scaling";
/// Of a namespace: nothing is scaled in it, or, on `garden`, nowhere.
pub const PAUSE: &str = "dependency-watchdog.gardener.cloud/pause";

/// What one of our accounts may do, as the rules of its roles.
pub struct Rights {
    /// Of the ClusterRole.
    pub everywhere: Value,
    /// The Role's namespace, and its rules.
    pub inside: (&'static str, Value),
}

impl Rights {
    fn user(&self, name: &str) -> User {
        let (namespace, inside) = &self.inside;
        User::limited(
            name,
            [
                Rule::of_role(&self.everywhere, None),
                Rule::of_role(inside, Some(namespace)),
            ]
            .concat(),
        )
    }
}

/// The prober's in the seed (rules 81 and 83).
pub fn prober_rights() -> Rights {
    let read = json!(["get", "list", "watch"]);
    let everywhere = json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": read},
        {"apiGroups": [""], "resources": ["namespaces", "secrets"], "verbs": read},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"],
         "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machines"], "verbs": read},
    ]);
    Rights {
        everywhere,
        inside: in_garden("dwd-prober-leader-election"),
    }
}

/// The weeder's in the seed (rules 82 and 83).
pub fn weeder_rights() -> Rights {
    let everywhere = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]},
    ]);
    Rights {
        everywhere,
        inside: in_garden("dwd-weeder-leader-election"),
    }
}

/// The probe's in a shoot (rule 84).
pub fn probe_rights() -> Rights {
    let rule = |group: &str, resource: &str| json!([{"apiGroups": [group], "resources": [resource], "verbs": ["get", "list"]}]);
    Rights {
        everywhere: rule("", "nodes"),
        inside: ("kube-node-lease", rule("coordination.k8s.io", "leases")),
    }
}

/// What an agent may do in the namespace garden: elect its leader by this Lease, and tell (rule
/// 83).
fn in_garden(lease: &str) -> (&'static str, Value) {
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lease],
         "verbs": ["get", "watch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "update", "patch"]},
    ]);
    (GARDEN, rules)
}

/// The prober in the seed.
pub fn seed_prober() -> User {
    prober_rights().user(PROBER_USER)
}

/// The weeder in the seed.
pub fn seed_weeder() -> User {
    weeder_rights().user(WEEDER_USER)
}

/// The probe in a shoot.
pub fn shoot_probe() -> User {
    probe_rights().user(PROBE_USER)
}

/// A Cluster: one worker pool, not hibernated, last operation done. `grace` is
/// `nodeMonitorGracePeriod`, Kubernetes' default if `None`.
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

/// A healthy node of a worker pool.
pub fn node(name: &str, pool: &str) -> Value {
    let since = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastHeartbeatTime": since, "lastTransitionTime": since, "reason": "Kubelet", "message": ""});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": pool, "kubernetes.io/hostname": name},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"providerID": format!("local:///{name}")},
        "status": {"conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False"),
            condition("Ready", "True")], "addresses": [{"type": "Hostname", "address": name}]}})
}

/// The lease of a node that is renewed now, by a clock that is so far ahead of ours.
pub fn lease(node: &str, seconds: u64, ahead: TimeDelta) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": seconds, "renewTime": stamp(ahead)}})
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}})
}
