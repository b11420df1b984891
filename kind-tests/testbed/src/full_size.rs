//! Leases, nodes and Machines as large as on a real API server, with all the fields that kubelets
//! and controllers leave there and a probe skips.

use serde_json::Value;

use crate::objects::object;

/// The name of a node, of a usual length. With the numbers ascending, names come in the order of an
/// API server.
pub fn node_name(number: usize) -> String {
    format!("shoot--fleet--light-worker-z1-6d8f9-{number:05}")
}

fn of_node(yaml: &str, number: usize) -> Value {
    let yaml = yaml.replace("NAME", &node_name(number));
    object(&yaml.replace("NUMBER", &format!("{number:06}")))
}

/// The lease of a node, without its renewTime.
pub fn lease(number: usize) -> Value {
    of_node(include_str!("full_size/lease.yaml"), number)
}

/// A healthy node.
pub fn node(number: usize) -> Value {
    of_node(include_str!("full_size/node.yaml"), number)
}

/// The Machine of a node in a shoot's namespace.
pub fn machine(namespace: &str, node: &str) -> Value {
    let yaml = include_str!("full_size/machine.yaml").replace("NAMESPACE", namespace);
    object(&yaml.replace("NAME", node))
}
