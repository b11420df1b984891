use super::*;

/// A shoot that is well.
const WELL: &str = r#"{
    "namespace": "n", "because": "", "paused": false, "settings": [],
    "dependents": [{"kind": "Deployment", "name": "d", "apiVersion": "apps/v1", "condition": "running", "because": ""}],
    "state": "probed", "probe": {"nextProbeInSeconds": 5, "overdue": false, "found": {
        "secondsAgo": 5, "verdict": "scale_up", "candidates": 3, "expired": 0, "undecided": 0, "skewed": 0,
        "fraction": 0.6, "expiredAfterSeconds": 30, "unknownAfterSeconds": 40, "excluded": {}
    }}
}"#;

/// What is otherwise, and why that needs attention, the most urgent first.
#[rustfmt::skip]
const CONCERNS: [(&str, &str, &str); 13] = [
    ("running", "held_down", "held down"),
    ("scale_up", "scale_down", "in an outage"),
    ("running", "missing", "without a controller that the config names"),
    (r#""overdue": false"#, r#""overdue": true"#, "probes overdue"),
    (r#""overdue": false"#, r#""overdue": false, "failure": {"stage": "leases", "category": "timeout", "message": "", "failedProbes": 1, "since": "2026-01-02T03:00:00Z"}"#, "probes failing"),
    (r#""because": "","#, r#""because": "", "owner": {"standing": "elsewhere"},"#, "not ours, or not known to be"),
    (r#""paused": false"#, r#""paused": true"#, "paused"),
    (r#""probed", "probe""#, r#""unreadable", "no probe""#, "unclear"),
    (r#""probed", "probe""#, r#""no_shoot", "no probe""#, "unclear"),
    ("scale_up", "hold_undecided", "unclear"),
    (r#""excluded": {}"#, r#""excluded": {}, "graceTooShort": true"#, "with too short a grace"),
    (r#""probed", "probe""#, r#""hibernated", "no probe""#, ""),
    ("scale_up", "scale_up_held_down", ""),
];

#[test]
fn what_is_most_urgent_comes_first() {
    let rows = CONCERNS.iter().rev().enumerate();
    let shoots = rows.map(|(number, (given, taken, _))| {
        let shoot = WELL
            .replacen(given, taken, 1)
            .replace(r#""n""#, &format!(r#""{number}""#));
        serde_json::from_str::<ShootEntry>(&shoot).expect(&shoot)
    });
    let status = ProberStatus::default().with_entries(shoots);
    let concerns = status
        .shoots
        .iter()
        .map(|shoot| shoot.concern().map_or("", |concern| concern.label));
    assert!(concerns.eq(CONCERNS.map(|(_, _, label)| label)));
}
