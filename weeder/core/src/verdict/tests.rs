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
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true},
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
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
fn crash_looping_pod_may_be_deleted() {
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
fn unselected_pod_is_left_alone() {
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
fn only_ephemeral_ones_do_not_count() {
    let in_state =
        |field: &str| pod(|pod| pod["status"] = json!({field: waiting("CrashLoopBackOff")}));
    assert_eq!(in_state("initContainerStatuses"), candidate(&[ETCD]));
    assert_eq!(in_state("ephemeralContainerStatuses"), None);
}

#[test]
fn only_the_exact_reason_counts() {
    let containers = |statuses| json!({"containerStatuses": statuses});
    for status in [
        containers(waiting("ImagePullBackOff")),
        containers(waiting("ContainerCreating")),
        containers(waiting("crashloopbackoff")),
        containers(waiting("CrashLoopBackOff ")),
        containers(waiting("")),
        containers(json!([{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}])),
        containers(json!([{"state": null}])),
        containers(json!(null)),
        json!({}),
        json!(null),
    ] {
        assert_eq!(pod(|pod| pod["status"] = status.clone()), None, "{status}");
    }
}

#[test]
fn no_successor_means_no_deletion() {
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true});
    let deleted = json!("2026-01-01T00:00:00Z");
    let mirror = json!({"kubernetes.io/config.mirror": "hash"});
    for (what, field, value) in [
        ("it ends already", "deletionTimestamp", deleted),
        ("it has no owners", "ownerReferences", Value::Null),
        ("nobody owns it", "ownerReferences", json!([])),
        ("its node owns it", "ownerReferences", json!([node])),
        ("its kubelet runs it from a file", "annotations", mirror),
    ] {
        assert_eq!(pod(|pod| pod["metadata"][field] = value), None, "{what}");
    }
}

#[test]
fn controller_comes_first() {
    let owner = |change: fn(&mut Value)| {
        let judged = pod(|pod| change(&mut pod["metadata"]["ownerReferences"]));
        judged.map(|candidate| candidate.owner)
    };
    assert_eq!(owner(|_| ()).as_deref(), Some("owner"));
    let no_controller = owner(|owners| owners[0]["controller"] = json!(false));
    assert!(no_controller.is_some());
    let one = owner(|owners| drop(owners.as_array_mut().expect("a list").remove(0)));
    assert_eq!(one.as_deref(), Some("other"));
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
fn ended_again_may_be_back_off() {
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
fn first_end_is_no_back_off() {
    let spec = json!({"containers": named(&["c"]), "initContainers": named(&["i"])});
    for init_exit_code in [0, 1] {
        let status = json!({"phase": "Running", "containerStatuses": [ended("c", 0, 1)], "initContainerStatuses": [ended("i", 0, init_exit_code)]});
        assert!(terminations(spec.clone(), status).is_empty());
    }
}

#[test]
fn reported_crash_loop_is_believed() {
    let status = json!({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff"), "initContainerStatuses": [ended("i", 2, 1)]});
    assert_eq!(pod(|pod| pod["status"] = status), candidate(&[ETCD]));
}

#[test]
fn container_is_restarted_by_policy() {
    let (init, usual) = ("initContainerStatuses", "containerStatuses");
    for (status, of_pod, own, after_failure, after_success) in [
        (usual, None, None, true, true),
        (usual, Some("Always"), None, true, true),
        (usual, Some("OnFailure"), None, true, false),
        (usual, Some("Never"), None, false, false),
        (usual, Some("Never"), Some("Always"), true, true),
        (usual, Some("Always"), Some("OnFailure"), true, false),
        (usual, Some("Always"), Some("Never"), false, false),
        (usual, Some("Always"), Some("of another time"), false, false),
        // One that has succeeded is done, but for a sidecar.
        (init, Some("Always"), None, true, false),
        (init, Some("OnFailure"), None, true, false),
        (init, Some("Never"), None, false, false),
        (init, Some("Always"), Some("Always"), true, true),
        (init, Some("Never"), Some("Always"), true, true),
        (init, Some("Always"), Some("Never"), false, false),
    ] {
        let restarted =
            [1, 0].map(|exit_code| is_restarted(status, json!(of_pod), json!(own), exit_code));
        let expected = [after_failure, after_success];
        assert_eq!(restarted, expected, "{status} {of_pod:?} {own:?}");
    }
}

#[test]
fn ended_pod_restarts_nothing() {
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
