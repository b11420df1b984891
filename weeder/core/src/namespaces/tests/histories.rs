//! Histories of pods as kubelets report them, while the Service they depend on is ready (D-64):
//! which are crash loops.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::*;
use crate::verdict::judge;

const DAY: u64 = 24 * 60 * 60;

/// A time on the node's clock.
fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::seconds(seconds)
}

fn running(name: &str, restarts: i32) -> Value {
    json!({"name": name, "ready": true, "restartCount": restarts, "state": {"running": {"startedAt": time(0)}}})
}

/// A container that terminated after a run of so many seconds.
fn ended(name: &str, restarts: i32, exit_code: i32, ran: u64) -> Value {
    let started = time(-i64::try_from(ran).expect("a few days"));
    let state = json!({"terminated": {"exitCode": exit_code, "reason": "Error", "startedAt": started, "finishedAt": time(0)}});
    json!({"name": name, "ready": false, "restartCount": restarts, "state": state})
}

/// A container that its kubelet lost.
fn lost(name: &str, restarts: i32) -> Value {
    let state = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": null, "finishedAt": null}});
    json!({"name": name, "ready": false, "restartCount": restarts, "state": state})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "ready": false, "restartCount": 5, "state": {"waiting": {"reason": reason}}})
}

fn status(phase: &str, init: &[Value], containers: &[Value]) -> Value {
    json!({"phase": phase, "initContainerStatuses": init, "containerStatuses": containers})
}

/// A pod with these init containers, including sidecars, and containers.
fn spec(policy: &str, init: &[(&str, bool)], containers: &[&str]) -> Value {
    let init: Vec<Value> = init
        .iter()
        .map(|(name, is_sidecar)| json!({"name": name, "restartPolicy": is_sidecar.then_some("Always")}))
        .collect();
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name}))
        .collect();
    json!({"restartPolicy": policy, "initContainers": init, "containers": containers})
}

/// A pod with one container, which is restarted.
fn server() -> Value {
    spec("Always", &[], &["server"])
}

/// True if the pod is deleted that is reported so, each time for so many seconds.
fn is_deleted(spec: &Value, history: &[(f64, Value)]) -> bool {
    let mut seed = TestSeed::recovered(None);
    let config = config(&[ETCD], None);
    let mut deleted = false;
    for (version, (seconds, status)) in history.iter().enumerate() {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"});
        let metadata =
            json!({"uid": "1", "resourceVersion": version.to_string(), "ownerReferences": [owner]});
        let [metadata, spec, status] = [&metadata, spec, status].map(Value::clone);
        let judged = judge(
            &serde_json::from_value(metadata).expect("metadata"),
            &serde_json::from_value(spec).expect("a spec"),
            &serde_json::from_value(status).expect("a status"),
            &config.services,
        );
        match judged {
            Some(candidate) => seed.show("a", candidate),
            None => seed.pod_is_fine("a"),
        }
        let end = seed.now + Duration::from_secs_f64(*seconds);
        loop {
            deleted |= !seed.deleted().is_empty();
            match seed.next() {
                Some(next) if next < end => seed.now = next,
                _ => break,
            }
        }
        seed.now = end;
    }
    deleted
}

/// One container is reported as terminated for so long, and runs again.
fn restarted(seconds: f64, ended: Value) -> [(f64, Value); 2] {
    let again = running("server", 2);
    [
        (seconds, status("Running", &[], &[ended])),
        (30.0, status("Running", &[], &[again])),
    ]
}

#[test]
fn ordinary_restart_is_no_crash_loop() {
    for seconds in [0.8, 1.02, 1.3, 2.0, 3.9, 4.1, 60.0] {
        let after_weeks = restarted(seconds, ended("server", 1, 1, 30 * DAY));
        assert!(!is_deleted(&server(), &after_weeks), "{seconds} s");
        let after_minutes = restarted(seconds, ended("server", 1, 1, 601));
        assert!(!is_deleted(&server(), &after_minutes), "{seconds} s");
        let for_the_first_time = restarted(seconds, ended("server", 0, 1, 5));
        assert!(!is_deleted(&server(), &for_the_first_time), "{seconds} s");
    }
    for seconds in [0.8, 1.02, 1.3, 2.0, 3.9] {
        let after_a_short_run = restarted(seconds, ended("server", 1, 1, 60));
        assert!(!is_deleted(&server(), &after_a_short_run), "{seconds} s");
    }
}

#[test]
fn back_off_is_a_crash_loop() {
    for ran in [0, 1, 60, 600] {
        let history = restarted(4.1, ended("server", 1, 1, ran));
        assert!(is_deleted(&server(), &history), "{ran} s");
    }
    let mut never_started = ended("server", 1, 128, 0);
    never_started["state"]["terminated"]["startedAt"] = json!(DateTime::UNIX_EPOCH);
    assert!(is_deleted(&server(), &restarted(4.1, never_started)));
    let reported = status("Running", &[], &[waiting("server", "CrashLoopBackOff")]);
    assert!(is_deleted(&server(), &[(0.1, reported)]));
    let mut clock_set_back = ended("server", 1, 1, 0);
    clock_set_back["state"]["terminated"]["startedAt"] = json!(time(3600));
    assert!(is_deleted(&server(), &restarted(4.1, clock_set_back)));
}

#[test]
fn helper_costs_no_serving_pod() {
    let spec = spec("Always", &[], &["server", "helper"]);
    let beside = |helper: Value| {
        (
            20.0,
            status("Running", &[], &[running("server", 0), helper]),
        )
    };
    assert!(!is_deleted(
        &spec,
        &[beside(ended("helper", 3, 1, 20 * DAY))]
    ));
    let crash_loops = beside(ended("helper", 3, 1, 2));
    assert!(
        is_deleted(&spec, &[crash_loops]),
        "as CrashLoopBackOff would"
    );
}

#[test]
fn rebooted_node_is_no_crash_loop() {
    let rebooted = |containers: &[Value]| (60.0, status("Running", &[], containers));
    assert!(!is_deleted(
        &server(),
        &[rebooted(&[ended("server", 3, 255, DAY)])]
    ));
    assert!(!is_deleted(&server(), &[rebooted(&[lost("server", 3)])]));
    // It was rebooted twice: the last run was short.
    let server_ended = ended("server", 3, 255, 300);
    let mut without_sandbox = rebooted(std::slice::from_ref(&server_ended));
    without_sandbox.1["conditions"] =
        json!([{"type": "PodReadyToStartContainers", "status": "False"}]);
    assert!(!is_deleted(&server(), &[without_sandbox.clone()]));
    without_sandbox.1["conditions"][0]["status"] = json!("True");
    assert!(
        is_deleted(&server(), &[without_sandbox]),
        "all else is a crash loop"
    );

    let spec = spec("Always", &[("setup", false), ("proxy", true)], &["server"]);
    let proxy_ended = ended("proxy", 2, 255, 300);
    for setup in [running("setup", 0), waiting("setup", "PodInitializing")] {
        let again = status(
            "Pending",
            &[setup, proxy_ended.clone()],
            std::slice::from_ref(&server_ended),
        );
        assert!(!is_deleted(&spec, &[(60.0, again)]));
    }
    let initialized = status(
        "Running",
        &[ended("setup", 0, 0, 1), proxy_ended],
        &[server_ended],
    );
    assert!(is_deleted(&spec, &[(60.0, initialized)]));
}

#[test]
fn failing_init_is_a_crash_loop() {
    let spec = spec("Always", &[("setup", false)], &["server"]);
    let server_waits = waiting("server", "PodInitializing");
    let fails = status("Pending", &[ended("setup", 2, 1, 1)], &[server_waits]);
    assert!(is_deleted(&spec, &[(5.0, fails)]));
}

#[test]
fn sidecar_costs_no_work() {
    for policy in ["Never", "OnFailure"] {
        let spec = spec(policy, &[("proxy", true), ("log", true)], &["work"]);
        let [proxy, log] = ["proxy", "log"].map(|name| ended(name, 2, 143, 2));
        let sidecars = [proxy.clone(), running("log", 0)];
        for work in [running("work", 0), ended("work", 0, 0, 30)] {
            let history = [(20.0, status("Running", &sidecars, &[work]))];
            assert!(!is_deleted(&spec, &history), "{policy}");
        }
        let all_ended = status("Running", &[proxy, log], &[ended("work", 0, 0, 30)]);
        assert!(!is_deleted(&spec, &[(20.0, all_ended)]), "{policy}");
        let not_begun = status("Pending", &sidecars, &[waiting("work", "PodInitializing")]);
        assert!(is_deleted(&spec, &[(20.0, not_begun)]), "{policy}");
    }
    let fails = status("Running", &[], &[ended("work", 2, 1, 30)]);
    let retried = spec("OnFailure", &[], &["work"]);
    assert!(is_deleted(&retried, &[(20.0, fails)]), "nothing is lost");
}

#[test]
fn evicted_pod_is_left_alone() {
    for container in [
        waiting("server", "CrashLoopBackOff"),
        ended("server", 3, 1, 1),
    ] {
        let evicted = status("Failed", &[], &[container]);
        assert!(!is_deleted(&server(), &[(20.0, evicted)]));
    }
}
