//! What is read of Gardener's objects; that it is what Gardener's own decoder reads, and a null an
//! absence, random Clusters show (`kind-tests/readers`).

mod lifecycle;

use super::*;

/// A Cluster with these fields in its spec.
fn read(spec: &str) -> ClusterSpec {
    let cluster = format!(
        r#"{{"metadata": {{"name": "shoot--p--s"}}, "spec": {{"cloudProfile": {{"spec": []}}, {spec}}}}}"#
    );
    let cluster: Cluster = serde_json::from_str(&cluster).expect(&cluster);
    cluster.spec
}

fn embedded(shoot: &str) -> Result<GardenerShoot, String> {
    let spec = read(&format!(r#""seed": {{}}, "shoot": {shoot}"#));
    spec.shoot.expect("a shoot")
}

fn understood(shoot: &str) -> GardenerShoot {
    embedded(shoot).expect(shoot)
}

#[test]
fn a_wrong_type_harms_the_shoot_and_not_its_cluster() {
    // Rule 30
    let long = format!(
        r#"{{"spec": {{"hibernation": {{"enabled": "{}"}}}}}}"#,
        "x".repeat(100_000)
    );
    let grace = |text: &str| {
        format!(
            r#"{{"spec": {{"kubernetes": {{"kubeControllerManager": {{"nodeMonitorGracePeriod": {text}}}}}}}}}"#
        )
    };
    let period = "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod";
    for (shoot, field) in [
        (r#"{"kind": false}"#, "kind"),
        (
            r#"{"metadata": {"deletionTimestamp": "yesterday"}}"#,
            "metadata.deletionTimestamp",
        ),
        (&*long, "spec.hibernation.enabled"),
        (
            r#"{"spec": {"provider": {"workers": [{}, {"name": 8}]}}}"#,
            "spec.provider.workers[1].name",
        ),
        (&grace(r#""0s""#), period),
        (&grace(r#""40""#), period),
    ] {
        let refusal = embedded(shoot).expect_err(shoot);
        assert!(
            refusal.starts_with(field) && refusal.len() <= 200,
            "{refusal}"
        );
    }
}

#[test]
fn what_is_not_read_here_may_be_anything() {
    let shoot = understood(
        r#"{"metadata": {"labels": 3, "name": []},
            "spec": {"dns": 5, "provider": {"type": 1, "workers": [{"name": "w1", "machine": 9}, null]}},
            "status": {"isHibernated": true, "conditions": "x", "lastOperation": {"progress": 100}}}"#,
    );
    assert!(!shoot.is_hibernated, "the field is called hibernated");
    let names = shoot.workers.iter().map(|pool| &*pool.name);
    assert!(names.eq(["w1", ""]), "as Go reads a null");
    for (seed, name, uid) in [
        (
            r#"{"metadata": {"name": "a", "uid": "b"}, "spec": 5}"#,
            Some("a"),
            Some("b"),
        ),
        (r#"{"metadata": {"name": 5, "uid": 5}}"#, None, None),
        ("7", None, None),
    ] {
        let spec = read(&format!(r#""seed": {seed}, "shoot": {{}}"#));
        let found = (spec.seed.name.as_deref(), spec.seed.uid.as_deref());
        assert_eq!(found, (name, uid), "{seed}");
    }
    for (addresses, domain) in [
        (
            r#"[{"name": "external", "url": "https://api.b"}, 5, {"name": "internal", "url": "https://api.s.p"}]"#,
            Some("s.p"),
        ),
        (r#"[{"name": "internal", "url": "http://api.a.b"}]"#, None),
        (r#"[{"name": "internal", "url": "https://a.b"}]"#, None),
        (r#"[{"name": "external", "url": "https://api.b"}]"#, None),
    ] {
        let shoot = understood(&format!(
            r#"{{"status": {{"advertisedAddresses": {addresses}}}}}"#
        ));
        assert_eq!(shoot.internal_domain.as_deref(), domain, "{addresses}");
    }
}

#[test]
fn a_machine_backs_its_node_unless_it_is_failed_or_terminating() {
    // Rule 44
    for (labels, status, node) in [
        (
            r#"{"node": "n1"}"#,
            r#"{"currentStatus": {"phase": null}}"#,
            Some("n1"),
        ),
        (r#"{"node": "n1"}"#, "null", Some("n1")),
        (
            r#"{"node": "n1"}"#,
            r#"{"currentStatus": {"phase": "Unknown"}}"#,
            Some("n1"),
        ),
        (
            r#"{"node": "n1"}"#,
            r#"{"currentStatus": {"phase": "Failed"}}"#,
            None,
        ),
        (
            r#"{"node": "n1"}"#,
            r#"{"currentStatus": {"phase": "Terminating"}}"#,
            None,
        ),
        (
            r#"{"name": "n1"}"#,
            r#"{"currentStatus": {"phase": "Running"}}"#,
            None,
        ),
        ("null", r#"{"currentStatus": {"phase": "Running"}}"#, None),
    ] {
        let machine =
            format!(r#"{{"metadata": {{"name": "m", "labels": {labels}}}, "status": {status}}}"#);
        let machine: Machine = serde_json::from_str(&machine).expect(&machine);
        assert_eq!(machine.usable_node(), node, "{labels} {status}");
    }
}
