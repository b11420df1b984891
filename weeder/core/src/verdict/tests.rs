use chrono::{DateTime, TimeDelta};
use kube_core::Expression;
use serde_json::{Value, json};

use super::*;
use crate::selector::Selector;

/// A pod in words: `POLICY [PHASE] [sandbox STATUS]: CONTAINER, ...`, where a container is
/// `[init|sidecar] NAME[=POLICY]` and `runs`, `is lost`, `waits REASON` or
/// `ends EXIT_CODE after SECONDS restarts COUNT`.
fn pod(text: &str) -> Value {
    let (header, containers) = text.split_once(": ").expect("a header");
    let (header, sandbox) = header.split_once(" sandbox ").unwrap_or((header, "True"));
    let (policy, phase) = header.split_once(' ').unwrap_or((header, "Running"));
    let mut pod = json!({
        "metadata": {
            "uid": "pod", "resourceVersion": "7", "labels": {"role": "apiserver"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true},
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
            ],
        },
        "spec": {"restartPolicy": policy},
        "status": {"phase": phase, "conditions": [{"type": "PodReadyToStartContainers", "status": sandbox}]},
    });
    for container in containers.split(", ") {
        let words: Vec<&str> = container.split(' ').collect();
        let (spec, status, words) = match words[..] {
            ["init" | "sidecar", ref words @ ..] => {
                ("initContainers", "initContainerStatuses", words)
            }
            ref words => ("containers", "containerStatuses", words),
        };
        let (name, policy) = words[0].split_once('=').unzip();
        let name = name.unwrap_or(words[0]);
        let policy = policy.or(container.starts_with("sidecar").then_some("Always"));
        let (state, restarts) = state(&words[1..]);
        let mut add = |part: &str, list: &str, entry| match pod[part][list].as_array_mut() {
            Some(list) => list.push(entry),
            None => pod[part][list] = json!([entry]),
        };
        add("spec", spec, json!({"name": name, "restartPolicy": policy}));
        add(
            "status",
            status,
            json!({"name": name, "restartCount": restarts, "state": state}),
        );
    }
    pod
}

/// The state of a container, and its restarts.
fn state(words: &[&str]) -> (Value, i64) {
    let number = |word: &str| word.parse::<i64>().expect("a number");
    let end = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    match words {
        ["runs"] => (json!({"running": {}}), 4),
        ["waits", reason] => (json!({"waiting": {"reason": reason}}), 5),
        ["is", "lost"] => (
            json!({"terminated": {"exitCode": 137, "startedAt": null, "finishedAt": null}}),
            3,
        ),
        ["ends", exit_code, "after", seconds, "restarts", restarts] => {
            let started = end - TimeDelta::seconds(number(seconds));
            let ended =
                json!({"exitCode": number(exit_code), "startedAt": started, "finishedAt": end});
            (json!({"terminated": ended}), number(restarts))
        }
        _ => panic!("{words:?}"),
    }
}

const CRASHING: &str = "Always: fine runs, c waits CrashLoopBackOff";

/// Judges a pod by Services whose dependent pods are of certain roles.
fn judged(pod: &Value) -> Option<DeletionCandidate> {
    let is = |label: &str, value: &str| Expression::In(label.to_owned(), [value.to_owned()].into());
    let others = ["apiserver", "main"].map(str::to_owned);
    let others = Expression::NotIn("role".to_owned(), others.into());
    let services = [
        ("etcd", vec![is("role", "apiserver")]),
        ("api", vec![others, is("both", "yes")]),
        ("more", vec![is("a", "b")]),
    ];
    let services = services.map(|(name, selectors)| Service {
        name: name.into(),
        selectors: selectors
            .into_iter()
            .map(|any| Selector::all_of([any]))
            .chain([Selector::nothing()])
            .collect(),
    });
    let [metadata, spec, status] = ["metadata", "spec", "status"].map(|part| pod[part].clone());
    judge(
        &serde_json::from_value(metadata).expect("metadata"),
        &serde_json::from_value(spec).expect("a spec"),
        &serde_json::from_value(status).expect("a status"),
        &services,
    )
}

/// What shows that a pod crash-loops: `reported`, or its containers that are terminated with their
/// restarts.
fn evidence(pod: &Value) -> String {
    let ended = |ended: &Termination| format!("{} {}", ended.container, ended.restarts);
    match judged(pod).map(|candidate| candidate.crash_loop) {
        None => String::new(),
        Some(CrashLoop::Reported) => "reported".to_owned(),
        Some(CrashLoop::Terminated(all)) => all.iter().map(ended).collect::<Vec<_>>().join(", "),
    }
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (pod, expected) in rows {
        assert_eq!(evidence(&self::pod(pod)), *expected, "{pod}");
    }
}

#[test]
fn crash_looping_pod_may_be_deleted() {
    for (labels, services) in [
        (json!({"role": "apiserver"}), &["etcd"][..]),
        (json!({"role": "scheduler"}), &["api"]),
        (
            json!({"role": "apiserver", "both": "yes"}),
            &["etcd", "api"],
        ),
        (json!({"role": "main", "a": "c"}), &[]),
        (json!({"role": "main", "a": "b"}), &["more"]),
        (Value::Null, &["api"]),
    ] {
        let mut pod = pod(CRASHING);
        pod["metadata"]["labels"] = labels.clone();
        let expected = (!services.is_empty()).then(|| DeletionCandidate {
            uid: "pod".to_owned(),
            resource_version: "7".to_owned(),
            owner: "owner".to_owned(),
            services: services.iter().map(|name| (*name).into()).collect(),
            crash_loop: CrashLoop::Reported,
        });
        assert_eq!(judged(&pod), expected, "{labels}");
    }
}

#[test]
fn only_ephemeral_ones_do_not_count() {
    check(&[("Always: init i waits CrashLoopBackOff", "reported")]);
    let mut pod = pod(CRASHING);
    pod["status"]["ephemeralContainerStatuses"] = pod["status"]["containerStatuses"].take();
    assert_eq!(evidence(&pod), "");
}

#[test]
fn only_the_exact_reason_counts() {
    for reason in [
        "ImagePullBackOff",
        "ContainerCreating",
        "crashloopbackoff",
        "CrashLoopBackOffs",
        "",
    ] {
        check(&[(&format!("Always: c waits {reason}"), "")]);
    }
    for (field, value) in [
        (
            "containerStatuses",
            json!([{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}]),
        ),
        ("containerStatuses", json!([{"state": null}])),
        ("containerStatuses", Value::Null),
    ] {
        let mut pod = pod(CRASHING);
        pod["status"][field] = value;
        assert_eq!(evidence(&pod), "", "{pod}");
    }
}

#[test]
fn no_successor_means_no_deletion() {
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true});
    for (what, field, value) in [
        (
            "it ends already",
            "deletionTimestamp",
            json!("2026-01-01T00:00:00Z"),
        ),
        ("it has no owners", "ownerReferences", Value::Null),
        ("nobody owns it", "ownerReferences", json!([])),
        ("its node owns it", "ownerReferences", json!([node])),
        (
            "its kubelet runs it from a file",
            "annotations",
            json!({"kubernetes.io/config.mirror": "hash"}),
        ),
    ] {
        let mut pod = pod(CRASHING);
        pod["metadata"][field] = value;
        assert_eq!(judged(&pod), None, "{what}");
    }
}

#[test]
fn controller_comes_first() {
    let mut pod = pod(CRASHING);
    let mut owner = |change: fn(&mut Vec<Value>)| {
        change(
            pod["metadata"]["ownerReferences"]
                .as_array_mut()
                .expect("a list"),
        );
        judged(&pod).map(|candidate| candidate.owner)
    };
    assert_eq!(owner(|_| ()).as_deref(), Some("owner"));
    assert!(owner(|owners| owners[0]["controller"] = false.into()).is_some());
    assert_eq!(
        owner(|owners| drop(owners.remove(0))).as_deref(),
        Some("other")
    );
}

#[test]
fn ordinary_restart_is_no_crash_loop() {
    check(&[
        ("Always: c ends 1 after 2592000 restarts 1", ""),
        ("Always: c ends 1 after 601 restarts 1", ""),
        ("Always: c ends 1 after 5 restarts 0", ""),
        (
            "Always: init i ends 1 after 5 restarts 0, c ends 1 after 5 restarts 0",
            "",
        ),
        (
            "Always: init i ends 0 after 5 restarts 0, c ends 1 after 5 restarts 0",
            "",
        ),
    ]);
}

#[test]
fn back_off_is_a_crash_loop() {
    check(&[
        (CRASHING, "reported"),
        (
            "Always: init i ends 1 after 1 restarts 2, c waits CrashLoopBackOff",
            "reported",
        ),
        ("Always: c ends 1 after 0 restarts 1", "c 1"),
        ("Always: c ends 1 after 600 restarts 1", "c 1"),
        ("Always Pending: c ends 1 after 600 restarts 1", "c 1"),
        // It could not be started, so that it has a start time of 1970.
        ("Always: c ends 128 after 1728000000 restarts 1", "c 1"),
        // The node's clock was set back.
        ("Always: c ends 1 after -3600 restarts 1", "c 1"),
        (
            "Always: fine runs, a ends 1 after 1 restarts 3, b ends 137 after 1 restarts 12",
            "a 3, b 12",
        ),
        // All others wait for the first init container that has not succeeded.
        (
            "Always: init done ends 0 after 1 restarts 1, init i ends 2 after 1 restarts 1, c ends 1 after 1 restarts 3",
            "i 1",
        ),
        (
            "Always: init done ends 0 after 1 restarts 1, c ends 1 after 1 restarts 3",
            "c 3",
        ),
        (
            "Always Pending: init i ends 1 after 1 restarts 2, c waits PodInitializing",
            "i 2",
        ),
    ]);
}

#[test]
fn helper_costs_no_serving_pod() {
    check(&[
        ("Always: c runs, helper ends 1 after 1728000 restarts 3", ""),
        (
            "Always: c runs, helper ends 1 after 2 restarts 3",
            "helper 3",
        ),
    ]);
}

#[test]
fn rebooted_node_is_no_crash_loop() {
    check(&[
        ("Always: c ends 255 after 86400 restarts 3", ""),
        ("Always: c is lost", ""),
        // It was rebooted twice: the last run was short.
        ("Always sandbox False: c ends 255 after 300 restarts 3", ""),
        (
            "Always sandbox True: c ends 255 after 300 restarts 3",
            "c 3",
        ),
        (
            "Always Pending: init i runs, sidecar s ends 255 after 300 restarts 2, c ends 255 after 300 restarts 3",
            "",
        ),
        (
            "Always Pending: init i waits PodInitializing, sidecar s ends 255 after 300 restarts 2",
            "",
        ),
        (
            "Always: init i ends 0 after 1 restarts 0, sidecar s ends 255 after 300 restarts 2, c ends 255 after 300 restarts 3",
            "s 2, c 3",
        ),
    ]);
}

#[test]
fn sidecar_costs_no_work() {
    for policy in ["Never", "OnFailure"] {
        for (work, expected) in [
            ("sidecar log runs, work runs", ""),
            ("sidecar log runs, work ends 0 after 30 restarts 0", ""),
            (
                "sidecar log ends 143 after 2 restarts 2, work ends 0 after 30 restarts 0",
                "",
            ),
            ("sidecar log runs, work waits PodInitializing", "s 2"),
        ] {
            let pod = format!("{policy}: sidecar s ends 143 after 2 restarts 2, {work}");
            check(&[(&pod, expected)]);
        }
    }
    check(&[("OnFailure: work ends 1 after 30 restarts 2", "work 2")]);
}

#[test]
fn container_is_restarted_by_policy() {
    for (pod, after_failure, after_success) in [
        ("Always: c", true, true),
        ("OnFailure: c", true, false),
        ("Never: c", false, false),
        ("Unknown: c", false, false),
        ("Never: c=Always", true, true),
        ("Always: c=OnFailure", true, false),
        ("Always: c=Never", false, false),
        ("Always: c=Unknown", false, false),
        // One that has succeeded is done, but for a sidecar.
        ("Always: init c", true, false),
        ("OnFailure: init c", true, false),
        ("Never: init c", false, false),
        ("Always: init c=Never", false, false),
        ("Always: sidecar c", true, true),
        ("Never: sidecar c", true, true),
    ] {
        for (exit_code, is_restarted) in [(1, after_failure), (0, after_success)] {
            let expected = if is_restarted { "c 1" } else { "" };
            check(&[(
                &format!("{pod} ends {exit_code} after 1 restarts 1"),
                expected,
            )]);
        }
    }
    let mut unsaid = pod("Always: c ends 0 after 1 restarts 1");
    unsaid["spec"]["restartPolicy"] = Value::Null;
    assert_eq!(evidence(&unsaid), "c 1");
}

#[test]
fn evicted_pod_is_left_alone() {
    for phase in ["Succeeded", "Failed"] {
        check(&[
            (&format!("Always {phase}: c waits CrashLoopBackOff"), ""),
            (&format!("Always {phase}: c ends 1 after 1 restarts 3"), ""),
        ]);
    }
}
