mod lifecycle;

use prober_core::gardener::{OperationState, OperationType};
use serde_json::{Value, json};

use super::*;

/// As it comes from an API server.
fn read(cluster: Value) -> Cluster {
    serde_json::from_str(&cluster.to_string()).expect("a Cluster")
}

fn cluster(shoot: Value) -> Cluster {
    read(
        json!({"metadata": {"name": "shoot--p--s"}, "spec": {"shoot": shoot, "seed": {}, "cloudProfile": {"spec": []}}}),
    )
}

fn understood(shoot: Value) -> GardenerShoot {
    cluster(shoot)
        .spec
        .shoot
        .expect("a shoot")
        .expect("one that can be understood")
}

fn refused(shoot: Value) -> String {
    cluster(shoot)
        .spec
        .shoot
        .expect("a shoot")
        .expect_err("one that cannot be understood")
}

#[test]
fn a_cluster_without_a_shoot_says_so() {
    // D-13, fault 55
    assert!(cluster(Value::Null).spec.shoot.is_none());
    for cluster in [json!({"metadata": {}, "spec": {}}), json!({"metadata": {}})] {
        assert!(read(cluster).spec.shoot.is_none());
    }
}

#[test]
fn a_wrong_type_harms_the_shoot_and_not_its_cluster() {
    // Rule 30
    let wrong = [
        json!({"apiVersion": 8}),
        json!({"kind": false}),
        json!("text"),
        json!([1, 2]),
        json!(true),
        json!({"spec": "text"}),
        json!({"spec": {"provider": {"workers": {}}}}),
        json!({"spec": {"hibernation": {"enabled": "yes"}}}),
        json!({"status": {"hibernated": 1}}),
        json!({"metadata": {"deletionTimestamp": "yesterday"}}),
        json!({"status": {"lastOperation": "Create"}}),
        json!({"spec": {"kubernetes": {"kubeControllerManager": "40s"}}}),
        json!({"spec": {"provider": {"workers": [{"machineControllerManager": "a"}]}}}),
        json!({"metadata": "a"}),
        json!({"spec": {"seedName": 1}}),
        json!({"status": {"seedName": {}}}),
    ];
    for shoot in wrong {
        assert!(!refused(shoot.clone()).is_empty(), "{shoot}");
    }
}

#[test]
fn a_refusal_names_the_field() {
    let refusal = refused(json!({"spec": {"provider": {"workers": [{}, {"name": 8}]}}}));
    assert!(
        refusal.starts_with("spec.provider.workers[1].name: invalid type"),
        "{refusal}"
    );
}

#[test]
fn a_cluster_is_read_however_deep_that_is_nested_which_nobody_reads() {
    let cluster = json!({
        "metadata": {"name": "a", "managedFields": "nested"},
        "spec": {
            "shoot": {
                "spec": {"provider": {"infrastructureConfig": "nested", "workers": [{"name": "w1", "providerConfig": "nested"}]}},
                "status": {"advertisedAddresses": "nested"},
            },
            "seed": {"metadata": {"name": "nested", "uid": "b"}},
            "cloudProfile": "nested",
        },
    });
    let (begin, end) = (r#"{"f:a":["#, "]}");
    let nested = [begin.repeat(100_000), end.repeat(100_000)].concat();
    let text = cluster.to_string().replace(r#""nested""#, &nested);
    let ClusterSpec { shoot, seed } = serde_json::from_str::<Cluster>(&text).expect("it").spec;
    let shoot = shoot.expect("a shoot").expect("a readable one");
    assert_eq!(shoot.workers[0].name, "w1");
    assert_eq!((seed.name, seed.uid.as_deref()), (None, Some("b")));
}

#[test]
fn a_wrong_value_of_any_length_is_refused_in_a_few_words() {
    let refusal = refused(json!({"spec": {"hibernation": {"enabled": "x".repeat(100_000)}}}));
    assert!(refusal.len() <= 200, "{refusal}");
}

#[test]
fn a_null_among_the_pools_is_a_pool_without_a_name() {
    // As Go reads it.
    let shoot = understood(json!({"spec": {"provider": {"workers": [null]}}}));
    assert_eq!(
        shoot.workers.first().map(|worker| worker.name.as_str()),
        Some("")
    );
}

#[test]
fn null_is_absence_everywhere() {
    let shoots = [
        json!({}),
        json!({"apiVersion": null, "metadata": null, "spec": null, "status": null}),
        json!({"spec": {"hibernation": null, "kubernetes": null, "provider": null}}),
        json!({"spec": {"hibernation": {"enabled": null}, "kubernetes": {"kubeControllerManager": null}, "provider": {"workers": null}}}),
        json!({"spec": {"kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": null}}}}),
        json!({"metadata": {"deletionTimestamp": null}, "status": {"hibernated": null, "lastOperation": null}}),
        json!({"spec": {"seedName": null}, "status": {"seedName": null}}),
    ];
    for shoot in shoots {
        let understood = understood(shoot.clone());
        assert!(
            understood.deletion_timestamp.is_none() && !understood.is_hibernated,
            "{shoot}"
        );
        assert!(
            !understood.hibernation_enabled && understood.workers.is_empty(),
            "{shoot}"
        );
        assert!(
            understood.last_operation.is_none() && understood.node_monitor_grace.is_none(),
            "{shoot}"
        );
        assert_eq!(understood.responsible_seed(), None, "{shoot}");
    }
}

#[test]
fn null_inside_of_an_operation_or_a_pool_is_absence_too() {
    let shoot = understood(json!({
        "spec": {"provider": {"workers": [{"name": null, "machineControllerManager": null}, {"machineControllerManager": {"nodeConditions": null}}]}},
        "status": {"lastOperation": {"type": "Reconcile", "state": null}},
    }));
    assert_eq!(shoot.workers.len(), 2);
    let operation = shoot.last_operation.expect("an operation");
    assert_eq!(
        (operation.kind, operation.state),
        (OperationType::Reconcile, OperationState::Other)
    );
    let shoot = understood(json!({"status": {"lastOperation": {"type": null}}}));
    assert_eq!(
        shoot.last_operation.map(|operation| operation.kind),
        Some(OperationType::Other)
    );
}

#[test]
fn what_is_not_read_here_may_be_anything() {
    let shoot = understood(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"labels": 3, "name": []},
        "spec": {"dns": 5, "provider": {"type": 1, "workers": [{"name": "w1", "machine": 9}]}},
        "status": {"isHibernated": true, "conditions": "x", "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"}},
    }));
    assert!(!shoot.is_hibernated, "the field is called hibernated");
    assert_eq!(shoot.workers[0].name, "w1");
}

#[test]
fn the_seed_that_the_status_names_is_responsible_and_without_one_that_of_the_spec() {
    let responsible = |spec: Value, status: Value| {
        let shoot = understood(json!({"spec": {"seedName": spec}, "status": {"seedName": status}}));
        shoot.responsible_seed().map(str::to_owned)
    };
    assert_eq!(
        responsible(json!("to"), json!("from")).as_deref(),
        Some("from")
    );
    for absent in [json!(""), json!(null)] {
        assert_eq!(
            responsible(json!("to"), absent.clone()).as_deref(),
            Some("to"),
            "{absent}"
        );
        assert_eq!(
            responsible(absent.clone(), absent.clone()),
            None,
            "{absent}"
        );
    }
}

#[test]
fn the_seed_of_a_cluster_is_known_by_its_name_and_harms_no_shoot_whatever_it_is() {
    let with = |seed: Value| read(json!({"metadata": {}, "spec": {"seed": seed, "shoot": {}}}));
    assert_eq!(
        with(json!({"metadata": {"name": "a"}, "spec": 5}))
            .spec
            .seed
            .name
            .as_deref(),
        Some("a")
    );
    let nameless = [
        json!(null),
        json!({}),
        json!([]),
        json!("a"),
        json!(7),
        json!({"metadata": {"name": ["a"]}}),
        json!({"metadata": {"name": ""}}),
    ];
    for seed in nameless {
        let spec = with(seed.clone()).spec;
        assert!(
            spec.seed.name.is_none() && matches!(spec.shoot, Some(Ok(_))),
            "{seed}"
        );
    }
}

#[test]
fn the_status_of_hibernation_is_called_hibernated() {
    assert!(understood(json!({"status": {"hibernated": true}})).is_hibernated);
}

#[test]
fn a_grace_period_is_a_positive_duration_in_gos_syntax() {
    let grace = |text: Value| json!({"spec": {"kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": text}}}});
    for (text, seconds) in [("40s", 40), ("1m20s", 80), ("2m0s", 120)] {
        assert_eq!(
            understood(grace(json!(text))).node_monitor_grace,
            Some(TimeDelta::seconds(seconds))
        );
    }
    for wrong in [
        json!("0s"),
        json!("0"),
        json!("-40s"),
        json!("40"),
        json!("forty"),
        json!(""),
        json!(40),
    ] {
        let error = refused(grace(wrong.clone()));
        assert!(!error.is_empty(), "{wrong}");
    }
}

fn machine(labels: Value, status: Value) -> Machine {
    serde_json::from_value(json!({"metadata": {"name": "m", "labels": labels}, "status": status}))
        .expect("a Machine")
}

#[test]
fn a_machine_backs_its_node_unless_it_is_failed_or_terminating() {
    // Rule 44
    for (phase, usable) in [
        (json!("Running"), true),
        (json!("Unknown"), true),
        (json!("Pending"), true),
        (json!("CrashLoopBackOff"), true),
        (json!(""), true),
        (Value::Null, true),
        (json!("Failed"), false),
        (json!("Terminating"), false),
    ] {
        let machine = machine(
            json!({"node": "n1"}),
            json!({"currentStatus": {"phase": phase}}),
        );
        assert_eq!(machine.usable_node(), usable.then_some("n1"), "{phase}");
    }
    for status in [
        json!({}),
        json!({"currentStatus": null}),
        json!({"currentStatus": {}}),
        Value::Null,
    ] {
        assert_eq!(
            machine(json!({"node": "n1"}), status.clone()).usable_node(),
            Some("n1"),
            "{status}"
        );
    }
}

#[test]
fn a_machine_without_the_label_backs_no_node() {
    for labels in [json!({}), Value::Null, json!({"name": "n1"})] {
        assert_eq!(
            machine(labels.clone(), json!({})).usable_node(),
            None,
            "{labels}"
        );
    }
}

#[test]
fn the_internal_domain_and_the_seed_are_read_and_what_is_odd_harms_no_shoot() {
    let domain = |addresses: Value| {
        understood(json!({"status": {"advertisedAddresses": addresses}})).internal_domain
    };
    let external = json!({"name": "external", "url": "https://api.s.p.example.org"});
    let internal = |url: &str| json!([external, {"name": "internal", "url": url}]);
    assert_eq!(
        domain(internal("https://api.s.p.internal.example.org")).as_deref(),
        Some("s.p.internal.example.org")
    );
    for odd in ["http://api.a.b", "https://a.b", "https://api.", ""] {
        assert_eq!(domain(internal(odd)), None, "{odd}");
    }
    for odd in [
        Value::Null,
        json!([external]),
        json!(5),
        json!([5]),
        json!({"name": "internal"}),
        json!([{"name": "internal", "url": 5}]),
    ] {
        assert_eq!(domain(odd.clone()), None, "{odd}");
    }
    let of = |seed: Value| read(json!({"metadata": {}, "spec": {"seed": seed}}));
    let seed = of(json!({"metadata": {"name": "a", "uid": "b"}})).spec.seed;
    assert_eq!(
        (seed.name.as_deref(), seed.uid.as_deref()),
        (Some("a"), Some("b"))
    );
    assert_eq!(
        of(json!({"metadata": {"uid": 5}})).spec.seed,
        SeedRef::default()
    );
}
