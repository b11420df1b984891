//! What Gardener brings into a seed and a shoot, as far as the prober meets it: resource
//! definitions, and accounts with their roles (rules 81 to 84).

use serde_json::Value;

use super::{GARDEN, PROBER, namespace};

/// The resource definitions of a seed.
pub fn definitions() -> Vec<Value> {
    read(include_str!("../../manifests/definitions.yaml"))
}

/// The namespace garden, and the prober's account and roles on a seed.
pub fn seed_access() -> Vec<Value> {
    [vec![namespace(GARDEN)], prober_access(PROBER)].concat()
}

/// The prober's rights on a seed for an account of this name.
pub fn prober_access(name: &str) -> Vec<Value> {
    read(&include_str!("../../manifests/prober.yaml").replace(PROBER, name))
}

/// The weeder's account and roles on a seed.
pub fn weeder_access() -> Vec<Value> {
    read(include_str!("../../manifests/weeder.yaml"))
}

/// What an operator grants beside that, who lets the prober scale StatefulSets and custom
/// resources.
pub fn more_access() -> Vec<Value> {
    read(include_str!("../../manifests/more-dependents.yaml"))
}

/// The prober's account and roles in a shoot.
pub fn shoot_access() -> Vec<Value> {
    read(include_str!("../../manifests/shoot.yaml"))
}

fn read(manifests: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(manifests).expect("the manifests of this crate are valid")
}
