use prober_core::lifecycle::{StopReason, WaitReason};
use strum::VariantNames;

use super::*;

/// A shoot that is well.
const WELL: &str = r#"{
    "namespace": "n", "settings": [{"setting": "pause", "value": "false", "from": "default"}],
    "dependents": [{"kind": "Deployment", "name": "d", "apiVersion": "apps/v1", "condition": "running", "replicas": 2, "ready": 2}],
    "state": "probed", "probe": {"overdue": false, "found": {
        "secondsAgo": 5, "verdict": "scale_up", "candidates": 3, "expired": 0, "undecided": 0, "skewed": 0,
        "fraction": 0.6, "expiredAfterSeconds": 30, "unknownAfterSeconds": 40, "excluded": {}
    }}
}"#;

/// An outage 5 s after its probe.
const IN_3_S: &str =
    r#""scale_down", "leases": [{"node": "n", "ageSeconds": 32, "state": "expired"}]"#;
const SINCE_1_S: &str =
    r#""scale_down", "leases": [{"node": "n", "ageSeconds": 36, "state": "expired"}]"#;

/// A difference, how urgent it is, and the note on it.
#[rustfmt::skip]
const CONCERNS: [(&str, &str, Option<Tone>, &str); 21] = [
    ("scale_up", "scale_up_held_down", None, ""),
    (r#""probed", "probe""#, r#""hibernated", "no probe""#, None, ""),
    (r#""default""#, r#""namespace""#, None, "pause false (namespace)"),
    ("running", "ignored", None, "Deployment/d at 2, 2 ready: annotated with ignore-scaling: the watchdog leaves it as it is"),
    (r#""replicas": 2, "ready": 2"#, r#""replicas": 2, "ready": 1, "wouldBecome": 0"#, None, ""),
    ("running", "unknown", Some(Tone::Warn), "Deployment/d at 2, 2 ready: it could not be read"),
    (r#""false""#, r#""true""#, Some(Tone::Warn), "pause true (default): its operators want nothing written, in either direction"),
    (r#"[{"setting": "pause", "value": "false", "from": "default"}]"#, "[]", Some(Tone::Warn), "paused or not: the namespaces could not be read"),
    (r#""excluded": {}"#, r#""excluded": {}, "graceTooShort": true"#, Some(Tone::Warn), "its grace is too short: nodeMonitorGracePeriod (40s) is shorter than two renewals of the nodes' leases: they expire after 30s, so that protection may come too late"),
    ("scale_up", "hold_single_candidate", Some(Tone::Warn), "hold_single_candidate: only one node counts, and its lease is not known to be valid: nothing is concluded"),
    (r#""namespace": "n""#, r#""namespace": "n", "machines": 0"#, Some(Tone::Warn), "no Machine backs a node"),
    (r#""probed", "probe""#, r#""no_shoot", "no probe""#, Some(Tone::Warn), "no_shoot: its Cluster holds no shoot; a probe that ran before goes on"),
    (r#""overdue": false"#, r#""overdue": false, "failure": {"stage": "leases", "category": "timeout", "message": "no answer", "failedProbes": 2, "since": "2026-01-02T03:00:00Z"}"#, Some(Tone::Warn), "probes fail (timeout at leases), so nothing is concluded: no answer, 2 in a row since 2026-01-02 03:00:00 UTC"),
    (r#""overdue": false"#, r#""overdue": true"#, Some(Tone::Bad), "its probe is overdue"),
    (r#""namespace": "n""#, r#""namespace": "n", "owner": {"standing": "elsewhere"}"#, Some(Tone::Bad), "owned by another seed: no check has ended yet; the prober neither probes nor writes it"),
    (r#""probed", "probe""#, r#""probed", "decree": "scale_down", "owner": {"standing": "elsewhere"}, "no probe""#, Some(Tone::Bad), "owned by another seed: no check has ended yet; the prober does not probe it, and takes its controllers to 0"),
    (r#""running", "replicas": 2, "ready": 2"#, r#""held_down", "replicas": 0, "ready": 0"#, Some(Tone::Held), "being restored"),
    (r#""running", "replicas": 2"#, r#""held_down", "replicas": 2"#, Some(Tone::Warn), "Deployment/d at 2, 2 ready: runs, and still carries the marker of a protection: the next healthy probe removes it"),
    ("scale_up", "scale_down", Some(Tone::Bad), "scale_down: in an outage, the nodes have lost the way to their API server; Deployment/d at 2, 2 ready: not protected"),
    (r#""scale_up""#, IN_3_S, Some(Tone::Bad), "scale_down: in an outage, the nodes have lost the way to their API server; the first node is marked Unknown in 3s; Deployment/d at 2, 2 ready: not protected"),
    (r#""scale_up""#, SINCE_1_S, Some(Tone::Bad), "scale_down: in an outage, the nodes have lost the way to their API server; nodes are marked Unknown since 1s ago, unless kube-controller-manager was started later; Deployment/d at 2, 2 ready: not protected"),
];

fn shoot(given: &str, taken: &str) -> ShootView {
    let shoot = WELL.replacen(given, taken, 1);
    assert!(given == taken || shoot != WELL, "{given}");
    serde_json::from_str(&shoot).expect(&shoot)
}

#[test]
fn what_needs_attention_is_said_once() {
    for (given, taken, concern, note) in CONCERNS {
        let shoot = shoot(given, taken);
        let notes = shoot.notes().into_iter().map(|fact| fact.text);
        let notes: Vec<_> = notes.collect();
        assert_eq!(
            (shoot.concern(), &*notes.join("; ")),
            (concern, note),
            "{taken}"
        );
    }
}

#[test]
fn nothing_comes_back_without_a_probe() {
    let mut shoot = shoot(
        r#""running", "replicas": 2"#,
        r#""held_down", "replicas": 0"#,
    );
    shoot.probe = None;
    let facts = shoot.facts();
    let expected = "Deployment/d at 0, 2 ready: held down by the watchdog; it stays so while the shoot is not probed";
    assert_eq!(facts.last().map(|fact| &*fact.text), Some(expected));
}

/// A dependent in other words, and what is said of it.
#[rustfmt::skip]
const DEPENDENTS: [(&str, &str); 11] = [
    (r#""condition": "running", "replicas": 2, "ready": 1"#, "Deployment/d at 2, 1 ready: runs"),
    (r#""condition": "running", "wouldBecome": 0"#, "Deployment/d: runs; without the dry run it would be scaled to 0"),
    (r#""condition": "held_down", "replicas": 0, "ready": 0, "remembered": "2", "since": "2026-01-02T03:00:00Z""#, "Deployment/d at 0, 0 ready: held down by the watchdog; it comes back with 2 replicas (since 2026-01-02 03:00:00 UTC or longer)"),
    (r#""condition": "held_down", "replicas": 0, "ready": 0, "remembered": "some""#, r#"Deployment/d at 0, 0 ready: held down by the watchdog; it comes back with 1 replicas, since what is remembered ("some") cannot be used"#),
    (r#""condition": "held_down", "replicas": 0, "remembered": "2", "waits": {"for": "paused", "reason": "the pause to be lifted", "until": "2026-01-02T03:00:00Z"}"#, "Deployment/d: held down by the watchdog; it comes back with 2 replicas; its write waits for the pause to be lifted, until 2026-01-02 03:00:00 UTC"),
    (r#""condition": "held_down", "replicas": 2"#, "Deployment/d: runs, and still carries the marker of a protection: the next healthy probe removes it"),
    (r#""condition": "at_zero", "remembered": "2""#, "Deployment/d: scaled to 0 not by the watchdog: a healthy probe brings it back"),
    (r#""condition": "running", "refused": "no""#, "Deployment/d: runs; in an outage it would be refused: no"),
    (r#""condition": "missing", "refused": "not found""#, "Deployment/d: it does not exist, though it must: a restore waits for it, for its timeout at most, before those of later levels"),
    (r#""condition": "unscalable", "notScaled": "no such kind", "refused": "no such kind""#, "Deployment/d: it is not protected; it could not be scaled: no such kind"),
    (r#""condition": "colourful""#, "Deployment/d: it could not be read"),
];

#[test]
fn each_dependent_is_shown_with_its_cause() {
    let given = r#""condition": "running", "replicas": 2, "ready": 2"#;
    for (taken, expected) in DEPENDENTS {
        let facts = shoot(given, taken).facts();
        let last = facts.last().expect("a dependent");
        assert_eq!(last.text, expected);
    }
}

#[test]
fn nobody_marks_nodes_while_that_is_held_down() {
    let mut shoot = shoot(r#""scale_up""#, IN_3_S);
    let manager = &mut shoot.dependents[0];
    manager.resource.name = MARKS_NODES.to_owned();
    manager.condition = Condition::HeldDown;
    let mut notes = shoot.notes().into_iter();
    assert!(notes.any(|fact| fact.text.ends_with("not protected")));
    assert!(shoot.course().is_some());
    shoot.dependents[0].replicas = Some(0);
    assert!(shoot.course().is_none());
}

#[test]
fn every_state_has_a_meaning() {
    let states = [
        StopReason::VARIANTS,
        WaitReason::VARIANTS,
        &["probed", "no_shoot", "unreadable"],
    ];
    let unknown = meaning("another");
    for state in states.concat() {
        assert_ne!(meaning(state), unknown, "{state}");
    }
}

#[test]
fn what_holds_for_all_shoots_is_said_once() {
    let status = r#"{"unknown": "Machines", "shoots": [], "outages": [], "config": {}, "configRefused": true,
        "settings": [{"setting": "pause", "value": "true", "from": "garden"}]}"#;
    let status: ProberStatus = serde_json::from_str(status).expect("a status");
    let said = status.facts().into_iter().map(|fact| fact.text);
    let expected = [
        "the seed's Machines are not known: nothing is concluded without them",
        "the config file as it is now is refused (the log says why), an earlier one is in force",
        "pause true (garden)",
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}
