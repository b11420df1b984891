//! What Gardener brings into a seed and a shoot, as far as the prober meets it: resource
//! definitions, and the roles (rules 81 to 84), whose rules are those of [`crate::gardener`].

use serde_json::{Value, json};

use super::{GARDEN, PROBE, PROBER, Rights, WEEDER};
use crate::gardener;
use crate::objects::collection;

/// An object and the collection that it is created in.
pub type Manifest = (String, Value);

pub(crate) fn manifest(object: Value) -> Manifest {
    (
        collection(&object).expect("it has an apiVersion and a kind"),
        object,
    )
}

fn definition(
    group: &str,
    version: &str,
    plural: &str,
    kind: &str,
    scope: &str,
    subresources: Value,
) -> Manifest {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    manifest(json!({
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
    }))
}

/// The resource definitions of a seed.
pub fn definitions() -> Vec<Manifest> {
    let scaler = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    }});
    vec![
        definition(
            "extensions.gardener.cloud",
            "v1alpha1",
            "clusters",
            "Cluster",
            "Cluster",
            json!({}),
        ),
        definition(
            "machine.sapcloud.io",
            "v1alpha1",
            "machines",
            "Machine",
            "Namespaced",
            json!({"status": {}}),
        ),
        definition(
            "bed.example.org",
            "v1",
            "scalers",
            "Scaler",
            "Namespaced",
            scaler,
        ),
    ]
}

fn account(namespace: &str, name: &str) -> Manifest {
    manifest(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}),
    )
}

/// A role and its binding to one ServiceAccount; cluster-wide without a namespace.
fn grant(
    name: &str,
    namespace: Option<&str>,
    account: (&str, &str),
    rules: Value,
) -> [Manifest; 2] {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let (role, binding) = (format!("{prefix}Role"), format!("{prefix}RoleBinding"));
    let metadata = json!({"name": name, "namespace": namespace});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name});
    let subject = json!({"kind": "ServiceAccount", "namespace": account.0, "name": account.1});
    let version = "rbac.authorization.k8s.io/v1";
    [
        json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}),
        json!({"apiVersion": version, "kind": binding, "metadata": metadata, "roleRef": reference, "subjects": [subject]}),
    ]
    .map(manifest)
}

/// The roles of an account and their bindings.
fn grants(name: &str, account: (&str, &str), rights: Rights) -> impl Iterator<Item = Manifest> {
    let (namespace, inside) = rights.inside;
    grant(name, None, account, rights.everywhere)
        .into_iter()
        .chain(grant(name, Some(namespace), account, inside))
}

/// The prober's account and roles on a seed (rules 81 and 83).
pub fn seed_access() -> Vec<Manifest> {
    [
        vec![manifest(gardener::namespace(GARDEN))],
        prober_access(PROBER),
    ]
    .concat()
}

/// The same rights for a prober with an account of its own.
pub fn prober_access(name: &str) -> Vec<Manifest> {
    agent_access(name, gardener::prober_rights())
}

/// The weeder's account and roles on a seed (rules 82 and 83).
pub fn weeder_access() -> Vec<Manifest> {
    agent_access(WEEDER, gardener::weeder_rights())
}

fn agent_access(name: &str, rights: Rights) -> Vec<Manifest> {
    let mut manifests = vec![account(GARDEN, name)];
    manifests.extend(grants(
        &format!("gardener.cloud:{name}"),
        (GARDEN, name),
        rights,
    ));
    manifests
}

/// What an operator grants beside that, who lets the prober scale StatefulSets and custom
/// resources.
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
    let mut manifests: Vec<_> = ["kube-system", "kube-node-lease"]
        .map(|name| manifest(gardener::namespace(name)))
        .into();
    manifests.push(account("kube-system", PROBE));
    let name = "gardener.cloud:target:dependency-watchdog";
    manifests.extend(grants(
        name,
        ("kube-system", PROBE),
        gardener::probe_rights(),
    ));
    manifests
}
