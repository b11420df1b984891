//! Leases, nodes and Machines as large as on a real API server, with all the fields that kubelets
//! and controllers leave there and a probe skips.

use std::sync::LazyLock;

use serde_json::Value;

static LEASE: LazyLock<Value> = LazyLock::new(|| read(include_str!("full_size/lease.yaml")));
static NODE: LazyLock<Value> = LazyLock::new(|| read(include_str!("full_size/node.yaml")));
static MACHINE: LazyLock<Value> = LazyLock::new(|| read(include_str!("full_size/machine.yaml")));

fn read(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("the objects of this crate are valid")
}

/// The name of a node, of a usual length. With the numbers ascending, names come in the order of an
/// API server.
pub fn node_name(number: usize) -> String {
    format!("shoot--fleet--light-worker-z1-6d8f9-{number:05}")
}

/// The lease of a node, without its renewTime.
pub fn lease(number: usize) -> Value {
    let mut lease = LEASE.clone();
    identify(&mut lease, number, 1);
    let owner = &mut lease["metadata"]["ownerReferences"][0];
    (owner["name"], owner["uid"]) = (node_name(number).into(), uid(2, number).into());
    lease["spec"]["holderIdentity"] = node_name(number).into();
    lease
}

/// A healthy node.
pub fn node(number: usize) -> Value {
    let mut node = NODE.clone();
    identify(&mut node, number, 2);
    node["metadata"]["labels"]["kubernetes.io/hostname"] = node_name(number).into();
    node["spec"]["providerID"] = format!("aws:///eu-west-1/{}", node_name(number)).into();
    node
}

/// The Machine of a node in a shoot's namespace.
pub fn machine(namespace: &str, node: &str) -> Value {
    let mut machine = MACHINE.clone();
    let metadata = &mut machine["metadata"];
    (metadata["name"], metadata["namespace"]) = (node.into(), namespace.into());
    metadata["labels"]["node"] = node.into();
    machine["spec"]["providerID"] = format!("aws:///eu-west-1/i-{node}").into();
    machine
}

/// Names the object of a node; `kind` tells one node's objects apart.
fn identify(object: &mut Value, number: usize, kind: usize) {
    let metadata = &mut object["metadata"];
    metadata["name"] = node_name(number).into();
    metadata["uid"] = uid(kind, number).into();
    metadata["resourceVersion"] = (1_000_000 * kind + number).to_string().into();
}

fn uid(kind: usize, number: usize) -> String {
    format!("{kind:08x}-3dfa-46d8-9ee4-{number:012x}")
}
