use kube_core::Expression;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::selector::Selector;

/// A Service whose dependent pods match all expressions of one of these lists.
fn service(name: &str, selectors: &[&[Expression]]) -> Service {
    let selectors = selectors
        .iter()
        .map(|expressions| Selector::all_of(expressions.to_vec()))
        .collect();
    Service {
        name: name.into(),
        selectors,
    }
}

fn is(label: &str, value: &str) -> Expression {
    Expression::In(label.to_owned(), [value.to_owned()].into())
}

fn judged(pod: &Value, services: &[Service]) -> Option<DeletionCandidate> {
    fn part<T: DeserializeOwned + Default>(of: &Value) -> T {
        serde_json::from_value::<Option<T>>(of.clone())
            .expect("a part of a pod")
            .unwrap_or_default()
    }
    judge(
        &part(&pod["metadata"]),
        &part(&pod["spec"]),
        &part(&pod["status"]),
        services,
    )
}

fn waiting(reason: &str) -> Value {
    json!([{"name": "fine", "state": {"running": {}}}, {"name": "c", "state": {"waiting": {"reason": reason}}}])
}

/// A pod that crash-loops, with these changes.
fn pod(change: impl FnOnce(&mut Value)) -> Option<DeletionCandidate> {
    let mut pod = json!({
        "metadata": {
            "name": "p", "uid": "pod", "resourceVersion": "7", "labels": {"role": "apiserver"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true},
            ],
        },
        "status": {"containerStatuses": waiting("CrashLoopBackOff")},
    });
    change(&mut pod);
    let is_not = Expression::NotIn("role".to_owned(), ["apiserver".to_owned()].into());
    let etcd = service(ETCD, &[&[is("role", "apiserver")]]);
    judged(
        &pod,
        &[etcd, service(API, &[&[is_not], &[is("both", "yes")]])],
    )
}

const ETCD: &str = "etcd-main-client";
const API: &str = "kube-apiserver";

fn candidate(services: &[&str]) -> Option<DeletionCandidate> {
    let [uid, resource_version, owner] = ["pod", "7", "owner"].map(str::to_owned);
    Some(DeletionCandidate {
        uid,
        resource_version,
        owner,
        services: services.iter().map(|name| (*name).into()).collect(),
        crash_loop: CrashLoop::Reported,
    })
}

#[test]
fn a_crash_looping_pod_that_waits_for_a_service_may_be_deleted() {
    assert_eq!(pod(|_| ()), candidate(&[ETCD]));
    assert_eq!(
        pod(|pod| pod["metadata"]["labels"] = json!({"role": "scheduler"})),
        candidate(&[API])
    );
    assert_eq!(
        pod(|pod| pod["metadata"]["labels"] = json!({"role": "apiserver", "both": "yes"})),
        candidate(&[ETCD, API])
    );
    assert_eq!(
        pod(|pod| pod["metadata"]["labels"] = Value::Null),
        candidate(&[API]),
        "no labels are labels too"
    );
}

#[test]
fn a_pod_that_no_selector_matches_is_left_alone() {
    let mut service = service("s", &[&[is("a", "b")]]);
    service.selectors.push(Selector::nothing());
    let services = [service];
    let judged = |labels: Value| {
        let owner =
            json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true});
        let status = json!({"containerStatuses": waiting("CrashLoopBackOff")});
        let pod =
            json!({"metadata": {"labels": labels, "ownerReferences": [owner]}, "status": status});
        judged(&pod, &services)
    };
    assert_eq!(judged(Value::Null), None);
    assert_eq!(judged(json!({"a": "c"})), None);
    assert_eq!(
        judged(json!({"a": "b"})).map(|candidate| candidate.services),
        Some(vec!["s".into()]),
        "all else is as it must be"
    );
}

#[test]
fn init_containers_count_and_ephemeral_ones_do_not() {
    let in_state =
        |field: &str| pod(|pod| pod["status"] = json!({field: waiting("CrashLoopBackOff")}));
    assert_eq!(in_state("initContainerStatuses"), candidate(&[ETCD]));
    assert_eq!(in_state("ephemeralContainerStatuses"), None);
}

#[test]
fn only_the_exact_reason_counts() {
    for reason in [
        "ImagePullBackOff",
        "ContainerCreating",
        "crashloopbackoff",
        "CrashLoopBackOff ",
        "",
    ] {
        assert_eq!(
            pod(|pod| pod["status"]["containerStatuses"] = waiting(reason)),
            None,
            "{reason}"
        );
    }
    for status in [
        json!(null),
        json!({}),
        json!({"containerStatuses": null}),
        json!({"containerStatuses": [{"state": null}]}),
    ] {
        assert_eq!(pod(|pod| pod["status"] = status), None);
    }
    let ended = json!([{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}]);
    assert_eq!(pod(|pod| pod["status"]["containerStatuses"] = ended), None);
}

#[test]
fn a_pod_that_ends_already_is_left_alone() {
    assert_eq!(
        pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
        None
    );
}

#[test]
fn a_pod_that_nobody_would_make_again_is_left_alone() {
    let node =
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true}]);
    for owners in [Value::Null, json!([]), node] {
        let judged = pod(|pod| pod["metadata"]["ownerReferences"] = owners.clone());
        assert_eq!(judged, None, "{owners}");
    }
}

#[test]
fn any_owner_but_a_node_would_make_another_pod_and_the_controller_comes_first() {
    let owner = |change: fn(&mut Value)| {
        let judged = pod(|pod| change(&mut pod["metadata"]["ownerReferences"]));
        judged.map(|candidate| candidate.owner)
    };
    assert_eq!(owner(|_| ()).as_deref(), Some("owner"));
    let no_controller = owner(|owners| owners[1]["controller"] = json!(false));
    assert!(no_controller.is_some());
    let one = owner(|owners| drop(owners.as_array_mut().expect("a list").pop()));
    assert_eq!(one.as_deref(), Some("other"));
}

#[test]
fn a_mirror_pod_is_left_alone_although_its_node_owns_it() {
    let annotations = json!({"kubernetes.io/config.mirror": "hash"});
    assert_eq!(
        pod(|pod| pod["metadata"]["annotations"] = annotations),
        None
    );
}

/// Status of a container that terminated with this exit code, after so many restarts and a short
/// run.
fn ended(container: &str, restarts: i32, exit_code: i32) -> Value {
    let terminated = json!({"exitCode": exit_code, "reason": "Error", "startedAt": "2026-06-01T00:00:00Z", "finishedAt": "2026-06-01T00:00:01Z"});
    json!({"name": container, "restartCount": restarts, "state": {"terminated": terminated}})
}

/// Containers with these names.
fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// Terminations that make a pod with this spec and status a crash loop if they last.
fn terminations(spec: Value, status: Value) -> Vec<(String, i32)> {
    let candidate = pod(|pod| (pod["spec"], pod["status"]) = (spec, status));
    match candidate.map(|candidate| candidate.crash_loop) {
        None => Vec::new(),
        Some(CrashLoop::Terminated(ended)) => ended
            .into_iter()
            .map(|ended| (ended.container, ended.restarts))
            .collect(),
        Some(CrashLoop::Reported) => panic!("nothing was reported"),
    }
}

/// True if a container that has terminated again counts as in backoff under these restart policies
/// of its pod and its own.
fn is_restarted(status: &str, of_pod: Value, own: Value, exit_code: i32) -> bool {
    let list = if status == "initContainerStatuses" {
        "initContainers"
    } else {
        "containers"
    };
    let spec = json!({"restartPolicy": of_pod, list: [{"name": "other"}, {"name": "c", "restartPolicy": own}]});
    !terminations(
        spec,
        json!({"phase": "Running", status: [ended("c", 1, exit_code)]}),
    )
    .is_empty()
}

#[test]
fn containers_that_have_ended_again_and_are_restarted_may_be_in_back_off() {
    let running = json!({"name": "fine", "restartCount": 4, "state": {"running": {}}});
    let status = json!({
        "phase": "Running",
        "initContainerStatuses": [ended("init", 1, 2), ended("done", 1, 0)],
        "containerStatuses": [running, ended("a", 3, 1), ended("b", 12, 137)],
    });
    let spec = json!({"restartPolicy": "Always", "initContainers": named(&["done", "init"]), "containers": named(&["fine", "a", "b"])});
    let expected = |all: &[(&str, i32)]| -> Vec<(String, i32)> {
        let owned = all
            .iter()
            .map(|(name, restarts)| ((*name).to_owned(), *restarts));
        owned.collect()
    };
    let waited_for = terminations(spec.clone(), status.clone());
    assert_eq!(
        waited_for,
        expected(&[("init", 1)]),
        "all others wait for it"
    );
    let mut status = status;
    status["initContainerStatuses"] = json!([ended("init", 1, 0), ended("done", 1, 0)]);
    assert_eq!(terminations(spec, status), expected(&[("a", 3), ("b", 12)]));
}

#[test]
fn a_container_that_has_ended_for_the_first_time_is_restarted_at_once() {
    let spec = json!({"containers": named(&["c"]), "initContainers": named(&["i"])});
    for init_exit_code in [0, 1] {
        let status = json!({"phase": "Running", "containerStatuses": [ended("c", 0, 1)], "initContainerStatuses": [ended("i", 0, init_exit_code)]});
        assert!(terminations(spec.clone(), status).is_empty());
    }
}

#[test]
fn a_kubelet_that_reports_a_crash_loop_is_believed_at_once_whatever_else_has_ended() {
    let status = json!({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff"), "initContainerStatuses": [ended("i", 2, 1)]});
    assert_eq!(pod(|pod| pod["status"] = status), candidate(&[ETCD]));
}

#[test]
fn a_container_is_restarted_as_its_policy_says_or_else_its_pods() {
    for (of_pod, own, after_failure, after_success) in [
        (json!(null), json!(null), true, true),
        (json!("Always"), json!(null), true, true),
        (json!("OnFailure"), json!(null), true, false),
        (json!("Never"), json!(null), false, false),
        (json!("Never"), json!("Always"), true, true),
        (json!("Always"), json!("OnFailure"), true, false),
        (json!("Always"), json!("Never"), false, false),
        (json!("Always"), json!("of another time"), false, false),
    ] {
        let restarted = [1, 0].map(|exit_code| {
            is_restarted("containerStatuses", of_pod.clone(), own.clone(), exit_code)
        });
        assert_eq!(restarted, [after_failure, after_success], "{of_pod} {own}");
    }
}

#[test]
fn an_init_container_that_has_succeeded_is_done_and_a_sidecar_is_restarted() {
    for (of_pod, own, after_failure, after_success) in [
        (json!("Always"), json!(null), true, false),
        (json!("OnFailure"), json!(null), true, false),
        (json!("Never"), json!(null), false, false),
        (json!("Always"), json!("Always"), true, true),
        (json!("Never"), json!("Always"), true, true),
        (json!("Always"), json!("Never"), false, false),
    ] {
        let restarted = [1, 0].map(|exit_code| {
            is_restarted(
                "initContainerStatuses",
                of_pod.clone(),
                own.clone(),
                exit_code,
            )
        });
        assert_eq!(restarted, [after_failure, after_success], "{of_pod} {own}");
    }
}

#[test]
fn a_pod_that_has_ended_or_is_being_deleted_restarts_nothing() {
    let shown = |phase: &str, deleted: Value| {
        pod(|pod| {
            pod["metadata"]["deletionTimestamp"] = deleted;
            pod["spec"] = json!({"containers": named(&["c"])});
            pod["status"] = json!({"phase": phase, "containerStatuses": [ended("c", 5, 1)]});
        })
    };
    for phase in ["Running", "Pending"] {
        assert!(shown(phase, Value::Null).is_some(), "{phase}");
        assert!(
            shown(phase, json!("2026-01-01T00:00:00Z")).is_none(),
            "{phase}"
        );
    }
    for phase in ["Succeeded", "Failed"] {
        assert!(shown(phase, Value::Null).is_none(), "{phase}");
        let status = json!({"phase": phase, "containerStatuses": waiting("CrashLoopBackOff")});
        assert_eq!(pod(|pod| pod["status"] = status), None, "{phase}");
    }
}
