//! What Gardener puts into a seed and a shoot: its objects, its names, and the rights it grants
//! (rules 81 to 84), on a seed as we install them.

use api_server::{Resource, Rule, User};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::objects::{all, object};
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

/// The resources that Gardener adds to a seed: Clusters and Machines.
pub fn resources() -> Vec<Resource> {
    let clusters = Resource::custom("extensions.gardener.cloud/v1alpha1", "clusters", "Cluster");
    let machines = Resource::custom("machine.sapcloud.io/v1alpha1", "machines", "Machine");
    vec![clusters.cluster_wide(), machines]
}

/// The prober in the seed.
pub fn seed_prober() -> User {
    user(PROBER_USER, &seed_access())
}

/// The weeder in the seed.
pub fn seed_weeder() -> User {
    user(WEEDER_USER, &weeder_access())
}

/// The probe in a shoot.
pub fn shoot_probe() -> User {
    user(PROBE_USER, &shoot_access())
}

/// A user with the rights of the roles among these manifests.
fn user(name: &str, manifests: &[Value]) -> User {
    let roles = manifests.iter().filter(|object| object["rules"].is_array());
    let rules =
        |role: &Value| Rule::of_role(&role["rules"], role["metadata"]["namespace"].as_str());
    User::limited(name, roles.flat_map(rules).collect())
}

/// A Cluster: one worker pool, not hibernated, last operation done. `grace` is
/// `nodeMonitorGracePeriod`, Kubernetes' default if `None`.
pub fn cluster(namespace: &str, grace: Option<&str>) -> Value {
    let name = namespace.rsplit("--").next().unwrap_or_default();
    let mut cluster = object(&format!(
        r#"
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Cluster
metadata: {{name: "{namespace}"}}
spec:
  seed: {{}}
  cloudProfile: {{}}
  shoot:
    apiVersion: core.gardener.cloud/v1beta1
    kind: Shoot
    metadata: {{name: "{name}", namespace: garden-demo}}
    spec:
      kubernetes: {{version: 1.36.3}}
      provider:
        type: local
        workers: [{{name: worker, minimum: 1, maximum: 9}}]
    status:
      lastOperation: {{type: Reconcile, state: Succeeded, progress: 100}}
"#
    ));
    if let Some(grace) = grace {
        cluster["spec"]["shoot"]["spec"]["kubernetes"]["kubeControllerManager"] =
            json!({"nodeMonitorGracePeriod": grace});
    }
    cluster
}

/// A Cluster whose last operation is long over.
pub fn old_cluster(namespace: &str, grace: &str) -> Value {
    let mut cluster = cluster(namespace, Some(grace));
    let operation = &mut cluster["spec"]["shoot"]["status"]["lastOperation"];
    operation["lastUpdateTime"] = "2025-01-01T00:00:00Z".into();
    cluster
}

/// The Secret with a shoot's kubeconfig.
pub fn probe_secret(namespace: &str, kubeconfig: &str) -> Value {
    let kubeconfig = BASE64_STANDARD.encode(kubeconfig);
    object(&format!(
        r#"
apiVersion: v1
kind: Secret
type: Opaque
metadata: {{name: {PROBE_SECRET}, namespace: "{namespace}"}}
data: {{kubeconfig: "{kubeconfig}"}}
"#
    ))
}

/// A Deployment whose pods are all ready.
pub fn deployment(namespace: &str, name: &str, replicas: i64) -> Value {
    object(&format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: "{name}", namespace: "{namespace}", labels: {{app: "{name}"}}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: "{name}"}}}}
  template:
    metadata: {{labels: {{app: "{name}"}}}}
    spec: {{containers: [{{name: "{name}", image: "{name}"}}]}}
status: {{replicas: {replicas}, readyReplicas: {replicas}, availableReplicas: {replicas}}}
"#
    ))
}

/// A running Machine that stands for a node.
pub fn machine(namespace: &str, node: &str) -> Value {
    object(&format!(
        r#"
apiVersion: machine.sapcloud.io/v1alpha1
kind: Machine
metadata: {{name: "{node}", namespace: "{namespace}", labels: {{node: "{node}"}}}}
spec: {{class: {{kind: MachineClass, name: worker}}}}
status: {{currentStatus: {{phase: Running}}}}
"#
    ))
}

/// A healthy node of a worker pool.
pub fn node(name: &str, pool: &str) -> Value {
    let now = stamp(TimeDelta::zero());
    let since = format!(
        r#"lastHeartbeatTime: "{now}", lastTransitionTime: "{now}", reason: Kubelet, message: """#
    );
    object(&format!(
        r#"
apiVersion: v1
kind: Node
metadata:
  name: "{name}"
  labels: {{worker.gardener.cloud/pool: "{pool}", kubernetes.io/hostname: "{name}"}}
  annotations: {{node.alpha.kubernetes.io/ttl: "0"}}
spec: {{providerID: "local:///{name}"}}
status:
  conditions:
  - {{type: MemoryPressure, status: "False", {since}}}
  - {{type: DiskPressure, status: "False", {since}}}
  - {{type: PIDPressure, status: "False", {since}}}
  - {{type: Ready, status: "True", {since}}}
  addresses: [{{type: Hostname, address: "{name}"}}]
"#
    ))
}

/// The lease of a node that is renewed now, by a clock that is so far ahead of ours.
pub fn lease(node: &str, seconds: u64, ahead: TimeDelta) -> Value {
    let renewed = stamp(ahead);
    object(&format!(
        r#"
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {{name: "{node}", namespace: kube-node-lease}}
spec: {{holderIdentity: "{node}", leaseDurationSeconds: {seconds}, renewTime: "{renewed}"}}
"#
    ))
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}})
}

/// The resource definitions of a seed.
pub fn definitions() -> Vec<Value> {
    all(include_str!("../manifests/definitions.yaml"))
}

/// The namespace garden, and the prober's account and roles on a seed.
pub fn seed_access() -> Vec<Value> {
    let prober = all(include_str!(
        "../../../deploy/kustomize/base/prober-access.yaml"
    ));
    [vec![namespace(GARDEN)], prober].concat()
}

/// The weeder's account and roles on a seed.
pub fn weeder_access() -> Vec<Value> {
    all(include_str!(
        "../../../deploy/kustomize/base/weeder-access.yaml"
    ))
}

/// What an operator grants beside that, who lets the prober scale StatefulSets and custom
/// resources.
pub fn more_access() -> Vec<Value> {
    all(include_str!("../manifests/more-dependents.yaml"))
}

/// The prober's account and roles in a shoot.
pub fn shoot_access() -> Vec<Value> {
    all(include_str!("../manifests/shoot.yaml"))
}
