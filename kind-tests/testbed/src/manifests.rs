//! What Gardener brings into a seed and a shoot, as far as the prober meets it: resource definitions, and the roles (rules 81 to
//! 84), whose rules are those of [`crate::api::gardener`].

use crate::api::gardener::{self, Rights};
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
pub const SECRET: &str = gardener::PROBE_SECRET;

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

/// The roles of an account and their bindings.
fn grants(name: &str, account: (&str, &str), rights: Rights) -> impl Iterator<Item = Manifest> {
    let (namespace, inside) = rights.inside;
    grant(name, None, account, rights.everywhere).into_iter().chain(grant(name, Some(namespace), account, inside))
}

/// The prober's account and roles on a seed (rules 81 and 83).
pub fn seed_access() -> Vec<Manifest> {
    [vec![namespace(GARDEN)], prober_access(PROBER)].concat()
}

/// The same rights for a prober with an account of its own.
pub fn prober_access(name: &str) -> Vec<Manifest> {
    let mut manifests = vec![account(GARDEN, name)];
    manifests.extend(grants(&format!("gardener.cloud:{name}"), (GARDEN, name), gardener::prober_rights()));
    manifests
}

/// The weeder's account and roles on a seed (rules 82 and 83).
pub fn weeder_access() -> Vec<Manifest> {
    let mut manifests = vec![account(GARDEN, WEEDER)];
    manifests.extend(grants("gardener.cloud:dependency-watchdog-weeder", (GARDEN, WEEDER), gardener::weeder_rights()));
    manifests
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
    let mut manifests = vec![namespace("kube-system"), namespace("kube-node-lease"), account("kube-system", PROBE)];
    let name = "gardener.cloud:target:dependency-watchdog";
    manifests.extend(grants(name, ("kube-system", PROBE), gardener::probe_rights()));
    manifests
}

/// A shoot's namespace on a seed.
pub fn shoot_namespace(name: &str) -> Manifest {
    namespace(name)
}
