use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};

use super::*;

/// A pod in words: `POLICY [PHASE] [sandbox STATUS]: CONTAINER, ... [| PART FIELD JSON]`, where a
/// container is `[init|sidecar] NAME[=POLICY]` and `runs`, `is lost`, `waits REASON` or
/// `ends EXIT_CODE after SECONDS restarts COUNT`; the field is put into the pod at last.
fn pod(text: &str) -> Value {
    let (text, field) = text.split_once(" | ").unwrap_or((text, ""));
    let (header, containers) = text.split_once(": ").expect(text);
    let (header, sandbox) = header.split_once(" sandbox ").unwrap_or((header, "True"));
    let (policy, phase) = header.split_once(' ').unwrap_or((header, "Running"));
    let pod = r#"{
        "metadata": {
            "uid": "pod", "resourceVersion": "7", "labels": {"role": "apiserver"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true},
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"}
            ]
        },
        "spec": {"restartPolicy": "POLICY", "containers": [], "initContainers": []},
        "status": {
            "phase": "PHASE", "conditions": [{"type": "PodReadyToStartContainers", "status": "SANDBOX"}],
            "containerStatuses": [], "initContainerStatuses": []
        }
    }"#;
    let pod = pod
        .replace("POLICY", policy)
        .replace("PHASE", phase)
        .replace("SANDBOX", sandbox);
    let mut pod: Value = serde_json::from_str(&pod).expect("a pod");
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
        let mut add = |part: &str, list: &str, entry| {
            pod[part][list].as_array_mut().expect(list).push(entry);
        };
        add("spec", spec, json!({"name": name, "restartPolicy": policy}));
        add(
            "status",
            status,
            json!({"name": name, "restartCount": restarts, "state": state}),
        );
    }
    if let [part, field, value] = field.splitn(3, ' ').collect::<Vec<_>>()[..] {
        pod[part][field] = serde_json::from_str(value).expect(value);
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

/// Judges a pod by Services whose dependent pods are of certain roles.
fn judged(pod: &Value) -> Result<DeletionCandidate, Spared> {
    let services = json!({
        "etcd": {"podSelectors": [{"matchLabels": {"role": "apiserver"}}, null]},
        "api": {"podSelectors": [
            {"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["apiserver", "main"]}]},
            {"matchLabels": {"both": "yes"}},
        ]},
        "more": {"podSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let services: Services = serde_json::from_value(services).expect("Services");
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
fn evidence(pod: &DeletionCandidate) -> String {
    let ended = |ended: &Termination| format!("{} {}", ended.container, ended.restarts);
    match &pod.crash_loop {
        CrashLoop::Reported => "reported".to_owned(),
        CrashLoop::Terminated(all) => all.iter().map(ended).collect::<Vec<_>>().join(", "),
    }
}

/// Checks lines of a pod and what shows that it crash-loops, or why it is left alone.
#[track_caller]
fn check(rows: &str) {
    check_by(rows, evidence);
}

#[track_caller]
fn check_by(rows: &str, show: impl Fn(&DeletionCandidate) -> String) {
    for row in rows.lines().filter(|row| row.contains(" -> ")) {
        let (text, expected) = row.split_once(" -> ").expect("a result");
        let judged = judged(&pod(text));
        let found = judged.map_or_else(|why| why.into_str().to_owned(), |pod| show(&pod));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn crash_looping_pod_may_be_deleted() {
    let all = |pod: &DeletionCandidate| {
        let DeletionCandidate {
            uid,
            resource_version,
            owner,
            services,
            ..
        } = pod;
        format!(
            "{uid} {resource_version} of {owner}, {} for {}",
            evidence(pod),
            services.join(" ")
        )
    };
    check_by(
        r#"
Always: fine runs, c waits CrashLoopBackOff | metadata labels {"role": "apiserver"} -> pod 7 of owner, reported for etcd
Always: c waits CrashLoopBackOff | metadata labels {"role": "scheduler"} -> pod 7 of owner, reported for api
Always: c waits CrashLoopBackOff | metadata labels {"role": "apiserver", "both": "yes"} -> pod 7 of owner, reported for api etcd
Always: c waits CrashLoopBackOff | metadata labels {"role": "main", "a": "c"} -> no_selector_matches
Always: c waits CrashLoopBackOff | metadata labels {"role": "main", "a": "b"} -> pod 7 of owner, reported for more
Always: c waits CrashLoopBackOff | metadata labels null -> pod 7 of owner, reported for api
"#,
        all,
    );
}

#[test]
fn only_the_exact_reason_counts() {
    check(
        r#"
Always: c waits CrashLoopBackOff -> reported
Always: c waits ImagePullBackOff -> does_not_crash_loop
Always: c waits crashloopbackoff -> does_not_crash_loop
Always: c waits CrashLoopBackOffs -> does_not_crash_loop
Always: c waits  -> does_not_crash_loop
Always: c runs | status containerStatuses [{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}] -> does_not_crash_loop
Always: c runs | status containerStatuses [{"state": null}] -> does_not_crash_loop
Always: c runs | status containerStatuses null -> does_not_crash_loop
"#,
    );
}

#[test]
fn only_ephemeral_ones_do_not_count() {
    check(
        r#"
Always: init i waits CrashLoopBackOff -> reported
Always: c runs | status ephemeralContainerStatuses [{"name": "e", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}] -> does_not_crash_loop
"#,
    );
}

#[test]
fn no_successor_means_no_deletion() {
    check(
        r#"
Always: c waits CrashLoopBackOff | metadata deletionTimestamp "2026-01-01T00:00:00Z" -> is_being_deleted
Always: c runs | metadata deletionTimestamp "2026-01-01T00:00:00Z" -> does_not_crash_loop
Always: c waits CrashLoopBackOff | metadata ownerReferences null -> nobody_recreates_it
Always: c waits CrashLoopBackOff | metadata ownerReferences [] -> nobody_recreates_it
Always: c waits CrashLoopBackOff | metadata ownerReferences [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true}] -> nobody_recreates_it
Always: c waits CrashLoopBackOff | metadata annotations {"kubernetes.io/config.mirror": "hash"} -> nobody_recreates_it
OnFailure: c waits CrashLoopBackOff | metadata ownerReferences [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}] -> is_of_job
"#,
    );
}

#[test]
fn controller_comes_first() {
    let owner = |pod: &DeletionCandidate| pod.owner.clone();
    check_by(
        r#"
Always: c waits CrashLoopBackOff -> owner
Always: c waits CrashLoopBackOff | metadata ownerReferences [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a"}, {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "b", "controller": true}] -> b
Always: c waits CrashLoopBackOff | metadata ownerReferences [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a", "controller": false}] -> a
"#,
        owner,
    );
}

#[test]
fn ordinary_restart_is_no_crash_loop() {
    check(
        "
Always: c ends 1 after 2592000 restarts 1 -> does_not_crash_loop
Always: c ends 1 after 601 restarts 1 -> does_not_crash_loop
Always: c ends 1 after 5 restarts 0 -> does_not_crash_loop
Always: init i ends 1 after 5 restarts 0, c ends 1 after 5 restarts 0 -> does_not_crash_loop
Always: init i ends 0 after 5 restarts 0, c ends 1 after 5 restarts 0 -> does_not_crash_loop
",
    );
}

#[test]
fn back_off_is_a_crash_loop() {
    check(
        "
Always: init i ends 1 after 1 restarts 2, c waits CrashLoopBackOff -> reported
Always: c ends 1 after 0 restarts 1 -> c 1
Always: c ends 1 after 600 restarts 1 -> c 1
Always Pending: c ends 1 after 600 restarts 1 -> c 1
Always: fine runs, a ends 1 after 1 restarts 3, b ends 137 after 1 restarts 12 -> a 3, b 12

It could not be started, so that it has a start time of 1970; the node's clock was set back:
Always: c ends 128 after 1728000000 restarts 1 -> c 1
Always: c ends 1 after -3600 restarts 1 -> c 1

All others wait for the first init container that has not succeeded:
Always: init done ends 0 after 1 restarts 1, init i ends 2 after 1 restarts 1, c ends 1 after 1 restarts 3 -> i 1
Always: init done ends 0 after 1 restarts 1, c ends 1 after 1 restarts 3 -> c 3
Always Pending: init i ends 1 after 1 restarts 2, c waits PodInitializing -> i 2
",
    );
}

#[test]
fn helper_costs_no_serving_pod() {
    check(
        "
Always: c runs, helper ends 1 after 1728000 restarts 3 -> does_not_crash_loop
Always: c runs, helper ends 1 after 2 restarts 3 -> helper 3
",
    );
}

#[test]
fn rebooted_node_is_no_crash_loop() {
    check(
        "
Always: c ends 255 after 86400 restarts 3 -> does_not_crash_loop
Always: c is lost -> does_not_crash_loop
Always Pending: init i runs, sidecar s ends 255 after 300 restarts 2, c ends 255 after 300 restarts 3 -> does_not_crash_loop
Always Pending: init i waits PodInitializing, sidecar s ends 255 after 300 restarts 2 -> does_not_crash_loop
Always: init i ends 0 after 1 restarts 0, sidecar s ends 255 after 300 restarts 2, c ends 255 after 300 restarts 3 -> s 2, c 3

It was rebooted twice, so that the last run was short:
Always sandbox False: c ends 255 after 300 restarts 3 -> does_not_crash_loop
Always sandbox True: c ends 255 after 300 restarts 3 -> c 3
",
    );
}

#[test]
fn sidecar_costs_no_work() {
    for policy in ["Never", "OnFailure"] {
        let rows = "
POLICY: sidecar s ends 143 after 2 restarts 2, sidecar log runs, work runs -> does_not_crash_loop
POLICY: sidecar s ends 143 after 2 restarts 2, sidecar log runs, work ends 0 after 30 restarts 0 -> does_not_crash_loop
POLICY: sidecar s ends 143 after 2 restarts 2, sidecar log ends 143 after 2 restarts 2, work ends 0 after 30 restarts 0 -> does_not_crash_loop
POLICY: sidecar s ends 143 after 2 restarts 2, sidecar log runs, work waits PodInitializing -> s 2
";
        check(&rows.replace("POLICY", policy));
    }
    check("OnFailure: work ends 1 after 30 restarts 2 -> work 2");
}

#[test]
fn container_is_restarted_by_policy() {
    let rows = "
Always: c -> after failure, after success
OnFailure: c -> after failure
Never: c -> never
Unknown: c -> never
Never: c=Always -> after failure, after success
Always: c=OnFailure -> after failure
Always: c=Never -> never
Always: c=Unknown -> never
Always: init c -> after failure
OnFailure: init c -> after failure
Never: init c -> never
Always: init c=Never -> never
Always: sidecar c -> after failure, after success
Never: sidecar c -> after failure, after success
";
    for (pod, restarted) in rows.lines().filter_map(|row| row.split_once(" -> ")) {
        for (exit_code, after) in [(1, "after failure"), (0, "after success")] {
            let expected = if restarted.contains(after) {
                "c 1"
            } else {
                "does_not_crash_loop"
            };
            check(&format!(
                "{pod} ends {exit_code} after 1 restarts 1 -> {expected}"
            ));
        }
    }
    check("Always: c ends 0 after 1 restarts 1 | spec restartPolicy null -> c 1");
}

#[test]
fn evicted_pod_is_left_alone() {
    check(
        "
Always Succeeded: c waits CrashLoopBackOff -> does_not_crash_loop
Always Succeeded: c ends 1 after 1 restarts 3 -> does_not_crash_loop
Always Failed: c waits CrashLoopBackOff -> does_not_crash_loop
Always Failed: c ends 1 after 1 restarts 3 -> does_not_crash_loop
",
    );
}
