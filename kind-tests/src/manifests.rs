//! What Gardener brings into a seed and a shoot, as far as the prober meets it: resource definitions, and the roles exactly as
//! granted (rules 81 to 84).

use serde_json::{Value, json};

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
/// The prober's name among the users of a shoot.
pub const PROBE_USER: &str = "system:serviceaccount:kube-system:dependency-watchdog-probe";
/// The Secret with a shoot's kubeconfig.
pub const SECRET: &str = "shoot-access-dependency-watchdog-probe";

/// The collection of Cluster resources.
pub const CLUSTERS: &str = "/apis/extensions.gardener.cloud/v1alpha1/clusters";
/// The API of Machines.
pub const MACHINES: &str = "/apis/machine.sapcloud.io/v1alpha1";
/// The API of the test bed's own custom resource with a scale subresource.
pub const SCALERS: &str = "/apis/bed.example.org/v1";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// An object and the collection that it is created in.
pub type Manifest = (String, Value);

fn definition(group: &str, version: &str, plural: &str, kind: &str, scope: &str, subresources: Value) -> Manifest {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let manifest = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "scope": scope,
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    });
    (DEFINITIONS.into(), manifest)
}

/// The resource definitions of a seed.
pub fn definitions() -> Vec<Manifest> {
    let scaler = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    }});
    vec![
        definition("extensions.gardener.cloud", "v1alpha1", "clusters", "Cluster", "Cluster", json!({})),
        definition("machine.sapcloud.io", "v1alpha1", "machines", "Machine", "Namespaced", json!({"status": {}})),
        definition("bed.example.org", "v1", "scalers", "Scaler", "Namespaced", scaler),
    ]
}

fn namespace(name: &str) -> Manifest {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    ("/api/v1/namespaces".into(), manifest)
}

fn account(namespace: &str, name: &str) -> Manifest {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name},
    });
    (format!("/api/v1/namespaces/{namespace}/serviceaccounts"), manifest)
}

/// A role and its binding to one ServiceAccount; cluster-wide without a namespace.
fn grant(name: &str, namespace: Option<&str>, account: (&str, &str), rules: Value) -> [Manifest; 2] {
    let (prefix, base) = match namespace {
        Some(namespace) => ("", format!("{RBAC}/namespaces/{namespace}")),
        None => ("Cluster", RBAC.to_owned()),
    };
    let (role, binding) = (format!("{prefix}Role"), format!("{prefix}RoleBinding"));
    let metadata = json!({"name": name, "namespace": namespace});
    [
        (
            format!("{base}/{}s", role.to_lowercase()),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": role, "metadata": metadata, "rules": rules}),
        ),
        (
            format!("{base}/{}s", binding.to_lowercase()),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": binding, "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
                "subjects": [{"kind": "ServiceAccount", "namespace": account.0, "name": account.1}],
            }),
        ),
    ]
}

/// The prober's account and roles on a seed (rules 81 and 83).
pub fn seed_access() -> Vec<Manifest> {
    let read = json!(["get", "list", "watch"]);
    let everywhere = json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": read},
        {"apiGroups": [""], "resources": ["namespaces", "secrets"], "verbs": read},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"],
         "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machines"], "verbs": read},
    ]);
    let mut manifests = vec![namespace(GARDEN), account(GARDEN, PROBER)];
    manifests.extend(grant("gardener.cloud:dependency-watchdog-prober", None, (GARDEN, PROBER), everywhere));
    let garden = in_garden("dwd-prober-leader-election");
    manifests.extend(grant("gardener.cloud:dependency-watchdog-prober", Some(GARDEN), (GARDEN, PROBER), garden));
    manifests
}

/// The weeder's account and roles on a seed (rules 82 and 83).
pub fn weeder_access() -> Vec<Manifest> {
    let read = json!(["get", "list", "watch"]);
    let everywhere = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]);
    let mut manifests = vec![account(GARDEN, WEEDER)];
    manifests.extend(grant("gardener.cloud:dependency-watchdog-weeder", None, (GARDEN, WEEDER), everywhere));
    let garden = in_garden("dwd-weeder-leader-election");
    manifests.extend(grant("gardener.cloud:dependency-watchdog-weeder", Some(GARDEN), (GARDEN, WEEDER), garden));
    manifests
}

/// What an agent may do in the namespace garden: elect its leader by this Lease, and tell (rule 83).
fn in_garden(lease: &str) -> Value {
    json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lease],
         "verbs": ["get", "watch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "update", "patch"]},
    ])
}

/// What an operator grants beside that, who lets the prober scale StatefulSets and custom resources.
pub fn more_access() -> Vec<Manifest> {
    let verbs = json!(["get", "list", "watch", "update", "patch"]);
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["statefulsets", "statefulsets/scale"], "verbs": verbs},
        {"apiGroups": ["bed.example.org"], "resources": ["scalers", "scalers/scale"], "verbs": verbs},
    ]);
    grant("bed:more-dependents", None, (GARDEN, PROBER), rules).into()
}

/// The prober's account and roles in a shoot (rule 84).
pub fn shoot_access() -> Vec<Manifest> {
    let read = json!(["get", "list"]);
    let nodes = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": read}]);
    let leases = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": read}]);
    let who = ("kube-system", PROBE);
    let mut manifests = vec![namespace("kube-system"), namespace("kube-node-lease"), account("kube-system", PROBE)];
    manifests.extend(grant("gardener.cloud:target:dependency-watchdog-probe", None, who, nodes));
    manifests.extend(grant("gardener.cloud:target:dependency-watchdog-probe", Some("kube-node-lease"), who, leases));
    manifests
}

/// A shoot's namespace on a seed.
pub fn shoot_namespace(name: &str) -> Manifest {
    namespace(name)
}
