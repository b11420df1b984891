//! What is read of Gardener's objects; that it is what Gardener's own decoder reads, and a null an
//! absence, random Clusters show (`kind-tests/readers`).

mod lifecycle;

use serde_json::{Value, json};

use super::*;

/// As it comes from an API server.
fn read(cluster: &Value) -> ClusterSpec {
    let cluster: Cluster = serde_json::from_str(&cluster.to_string()).expect("a Cluster");
    cluster.spec
}

fn embedded(shoot: Value) -> Option<Result<GardenerShoot, String>> {
    let spec = json!({"shoot": shoot, "seed": {}, "cloudProfile": {"spec": []}});
    read(&json!({"metadata": {"name": "shoot--p--s"}, "spec": spec})).shoot
}

fn understood(shoot: Value) -> GardenerShoot {
    let shoot = embedded(shoot).expect("a shoot");
    shoot.expect("one that can be understood")
}

fn refused(shoot: Value) -> String {
    let shoot = embedded(shoot).expect("a shoot");
    shoot.expect_err("one that cannot be understood")
}

#[test]
fn a_wrong_type_harms_the_shoot_and_not_its_cluster() {
    // Rule 30
    let long = "x".repeat(100_000);
    let workers = |workers: Value| json!({"spec": {"provider": {"workers": workers}}});
    let grace = |text: Value| json!({"spec": {"kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": text}}}});
    for (shoot, field) in [
        (json!("text"), ""),
        (json!({"kind": false}), "kind"),
        (
            json!({"metadata": {"deletionTimestamp": "yesterday"}}),
            "metadata.deletionTimestamp",
        ),
        (
            json!({"spec": {"hibernation": {"enabled": long}}}),
            "spec.hibernation.enabled",
        ),
        (
            workers(json!([{}, {"name": 8}])),
            "spec.provider.workers[1].name",
        ),
        (
            grace(json!("0s")),
            "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod",
        ),
        (
            grace(json!("-40s")),
            "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod",
        ),
        (
            grace(json!("40")),
            "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod",
        ),
    ] {
        let refusal = refused(shoot);
        assert!(
            refusal.starts_with(field) && refusal.len() <= 200,
            "{field}: {refusal}"
        );
    }
    let read = understood(grace(json!("1m20s")));
    assert_eq!(read.node_monitor_grace, Some(TimeDelta::seconds(80)));
}

#[test]
fn what_is_not_read_here_may_be_anything() {
    let operation =
        json!({"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"});
    let shoot = understood(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"labels": 3, "name": []},
        "spec": {"dns": 5, "provider": {"type": 1, "workers": [{"name": "w1", "machine": 9}, null]}},
        "status": {"isHibernated": true, "conditions": "x", "lastOperation": operation},
    }));
    assert!(!shoot.is_hibernated, "the field is called hibernated");
    let names: Vec<_> = shoot.workers.iter().map(|pool| &*pool.name).collect();
    assert_eq!(names, ["w1", ""], "as Go reads a null");
}

#[test]
fn the_seed_of_a_cluster_is_known_by_its_name_and_harms_no_shoot_whatever_it_is() {
    let text = |text: &str| Some(text.to_owned());
    for (seed, name, uid) in [
        (
            json!({"metadata": {"name": "a", "uid": "b"}, "spec": 5}),
            text("a"),
            text("b"),
        ),
        (json!({"metadata": {"name": "", "uid": 5}}), None, None),
        (json!({"metadata": {"name": ["a"]}}), None, None),
        (json!({}), None, None),
        (json!([]), None, None),
        (json!(7), None, None),
    ] {
        let spec = read(&json!({"metadata": {}, "spec": {"seed": seed, "shoot": {}}}));
        assert_eq!(spec.seed, SeedRef { name, uid }, "{seed}");
        assert!(matches!(spec.shoot, Some(Ok(_))), "{seed}");
    }
}

#[test]
fn a_machine_backs_its_node_unless_it_is_failed_or_terminating() {
    // Rule 44
    let node = json!({"node": "n1"});
    let phase = |phase: &str| json!({"currentStatus": {"phase": phase}});
    for (labels, status, usable) in [
        (&node, phase("Running"), Some("n1")),
        (&node, phase("Unknown"), Some("n1")),
        (&node, phase("Pending"), Some("n1")),
        (&node, phase("CrashLoopBackOff"), Some("n1")),
        (&node, phase(""), Some("n1")),
        (&node, phase("Failed"), None),
        (&node, phase("Terminating"), None),
        (&node, json!({"currentStatus": {"phase": null}}), Some("n1")),
        (&node, json!({"currentStatus": null}), Some("n1")),
        (&node, Value::Null, Some("n1")),
        (&json!({"name": "n1"}), phase("Running"), None),
        (&Value::Null, phase("Running"), None),
    ] {
        let machine = json!({"metadata": {"name": "m", "labels": labels}, "status": status});
        let machine: Machine = serde_json::from_value(machine).expect("a Machine");
        assert_eq!(machine.usable_node(), usable, "{labels} {status}");
    }
}

#[test]
fn the_internal_domain_is_read_and_what_is_odd_harms_no_shoot() {
    let external = json!({"name": "external", "url": "https://api.s.p.example.org"});
    let internal = |url: &str| json!([external, 5, {"name": "internal", "url": url}]);
    for (addresses, domain) in [
        (
            internal("https://api.s.p.internal.example.org"),
            Some("s.p.internal.example.org"),
        ),
        (internal("http://api.a.b"), None),
        (internal("https://a.b"), None),
        (internal("https://api."), None),
        (json!([external]), None),
        (json!(5), None),
        (json!({"name": "internal"}), None),
        (json!([{"name": "internal", "url": 5}]), None),
    ] {
        let shoot = understood(json!({"status": {"advertisedAddresses": addresses}}));
        assert_eq!(shoot.internal_domain.as_deref(), domain, "{addresses}");
    }
}
