use std::sync::Arc;

use chrono::TimeDelta;
use common::status::Status as _;
use prober_core::config::Config;
use prober_core::judgement::Finding;
use prober_core::lease::LeaseState;
use prober_core::lifecycle::StopReason;
use prober_core::moment::Moment;
use prober_core::options::{Overrides, PAUSE, ResolvedOptions, STANDBY_PROTECTS};
use prober_core::plan::Direction;
use prober_core::replicas::{DependentState, Marks, Observed};
use prober_core::shoot::{Intended, Requirement, Waits};
use prober_core::verdict::Tally;

use super::*;
use crate::clock::Clock;
use crate::config;
use crate::observability::outcome::ProbeOutcome;
use crate::observability::shoot_statuses::tests::outage;
use crate::observability::shoot_statuses::{ShootStatus, ShootStatuses, StatusHandle};
use crate::observability::snapshot::SeedFacts;
use crate::tests::{found_with_grace, nothing_found, outcome, wall};

fn verdict(verdict: Verdict) -> Option<Arc<ProbeOutcome>> {
    Some(Arc::new(outcome(Finding {
        verdict,
        ..nothing_found()
    })))
}

fn lease(node: &str, seconds: i64, state: LeaseState) -> SeenLease {
    SeenLease {
        node: node.to_owned(),
        age: TimeDelta::seconds(seconds),
        state,
        skew: TimeDelta::zero(),
    }
}

/// Statuses with a shoot for each concern; the names say nothing of the order.
fn statuses() -> (ShootStatuses, Vec<StatusHandle>) {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    let all: [(_, fn(&mut ShootStatus)); 6] = [
        ("a-healthy", |status| {
            status.outcome = verdict(Verdict::ScaleUp)
        }),
        ("b-unclear", |status| {
            status.outcome = verdict(Verdict::HoldUndecided)
        }),
        ("c-paused", |status| status.options = Some(paused())),
        ("d-failing", |status| {
            status.failure = Some(Failure {
                stage: "leases".into(),
                category: "timeout".into(),
                message: "no answer <in time>".to_owned(),
                failed_probes: 3,
                since: wall(0.0),
            });
        }),
        ("e-outage", |status| {
            let tally = Tally {
                candidates: 5,
                expired: 4,
                undecided: 1,
            };
            let finding = Finding {
                verdict: Verdict::ScaleDown,
                tally,
                ..nothing_found()
            };
            let leases = vec![
                lease("node-1", 0, LeaseState::Expired),
                lease("node-2", 0, LeaseState::Undecided),
            ];
            status.outcome = Some(Arc::new(ProbeOutcome {
                leases,
                ..outcome(finding)
            }));
        }),
        ("f-held", |status| {
            status.held_down = [(dependent(), Moment::START)].into()
        }),
    ];
    let handles = all.map(|(namespace, change)| {
        statuses.set_state(namespace, Some(ShootState::Probed));
        let handle = statuses.register(namespace.to_owned(), clock.now());
        handle.update(change);
        handle
    });
    let unreadable = ShootState::Unreadable("spec: a number".to_owned());
    statuses.set_state("g-unreadable", Some(unreadable));
    let asleep = ShootState::Stopped(StopReason::Hibernated);
    statuses.set_state("h-asleep", Some(asleep));
    (statuses, handles.into())
}

/// A shoot that is probed.
fn one() -> (ShootStatuses, StatusHandle) {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    (statuses, handle)
}
/// Settings of a shoot that is paused.
fn paused() -> ResolvedOptions {
    let annotations = BTreeMap::from([(PAUSE.to_owned(), "true".to_owned())]);
    ResolvedOptions::resolve(&config(""), None, Some(&Overrides::of(&annotations)))
}

fn config(more: &str) -> Config {
    let dependent =
        "{ref: {kind: Deployment, name: d, apiVersion: apps/v1}, scaleUp: {}, scaleDown: {}}";
    config::parse(&format!(
        "kubeConfigSecretName: s\ndependentResourceInfos: [{dependent}]\n{more}"
    ))
    .unwrap()
    .config
}

/// The dependent of the config.
fn dependent() -> ResourceRef {
    config("").dependents.remove(0).resource
}

/// The status of a prober whose seed shows one shoot held down.
fn status(statuses: &ShootStatuses) -> ProberStatus {
    let facts = |namespace: &str| {
        let held_down = namespace == "f-held";
        let marks = Marks {
            replicas: held_down.then(|| "2".to_owned()),
            held_down,
            ignored: false,
        };
        let observed = Observed {
            replicas: (!held_down).into(),
            marks,
            ..Observed::default()
        };
        SeedFacts {
            machines: Some(3),
            options: None,
            dependents: vec![DependentState::Present(Arc::new(observed))],
        }
    };
    ProberStatus::default().with_shoots(statuses, &config(""), facts)
}

/// What the page says.
fn page(statuses: &ShootStatuses) -> String {
    status(statuses).body().into_string()
}

fn assert_says(page: &str, expected: &[&str]) {
    for text in expected {
        assert!(page.contains(text), "no {text:?} in {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_most_urgent_comes_first_and_the_page_says_what_each_suffers_from() {
    let (statuses, _handles) = statuses();
    let status = status(&statuses);
    let order: Vec<_> = status
        .shoots
        .iter()
        .map(|shoot| &*shoot.namespace)
        .collect();
    let expected = [
        "f-held",
        "e-outage",
        "d-failing",
        "c-paused",
        "b-unclear",
        "g-unreadable",
        "a-healthy",
        "h-asleep",
    ];
    assert_eq!(order, expected);
    let by_state = [("hibernated", 1), ("probed", 6), ("unreadable", 1)];
    let by_state = by_state.map(|(state, count)| (state.into(), count));
    assert_eq!(status.shoots_by_state, by_state.into());
    let page = status.body().into_string();
    assert_says(
        &page,
        &[
            "held down by the watchdog while too few leases are renewed; it comes back with 2 replicas (since ",
            "4 of 5 leases expired, 1 undecided (expired after 30s, an outage from 60% on)",
            "3 in a row since 2023-11-14 22:13:20 UTC (timeout at leases), so nothing is concluded: no answer &lt;in time&gt;",
            "its operators want nothing written",
            "hold_undecided",
            "its Cluster cannot be understood (spec: a number)",
        ],
    );
    assert!(!page.contains("Nothing is held down"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn ages_states_and_verdict_are_of_the_same_moment() {
    let (statuses, handle) = one();
    let finding = Finding {
        judged_at: statuses.clock.now(),
        ..nothing_found()
    };
    let outcome = ProbeOutcome {
        leases: vec![lease("node-1", 20, LeaseState::Valid)],
        ..outcome(finding)
    };
    handle.update(|status| status.outcome = Some(Arc::new(outcome)));
    tokio::time::advance(std::time::Duration::from_secs(23)).await;
    let json = serde_json::to_value(status(&statuses)).expect("JSON");
    let found = &json["shoots"][0]["probe"]["found"];
    assert_eq!(found["secondsAgo"], 23);
    let lease = serde_json::json!({ "node": "node-1", "ageSeconds": 20.0, "state": "valid" });
    assert_eq!(found["leases"], serde_json::json!([lease]));
    let ages = [&found["expiredAfterSeconds"], &found["unknownAfterSeconds"]];
    assert_eq!(ages, [30.0, 40.0]);
    handle.update(|status| status.options = Some(paused()));
    let expected = ["probed 23s ago", "<td data-label=\"Age\">20.0s</td>"];
    assert_says(&page(&statuses), &expected);
}

#[tokio::test(start_paused = true)]
async fn a_lost_zone_and_too_short_a_grace_are_shown_with_what_becomes_of_them() {
    let (statuses, handle) = one();
    let shown = |outcome| {
        handle.update(|status| status.outcome = Some(Arc::new(outcome)));
        let status = status(&statuses);
        let json = serde_json::to_value(&status).expect("JSON");
        let found = json["shoots"][0]["probe"]["found"].clone();
        (found, status.body().into_string())
    };
    let lost = LostZone {
        zone: "eu-1a".to_owned(),
        candidates: 5,
        expired: 4,
    };
    let (found, page) = shown(ProbeOutcome {
        lost_zones: vec![lost],
        ..outcome(nothing_found())
    });
    let zone = "Zone: eu-1a is lost: 4 of its 5 leases expired; nothing is scaled for that";
    assert_says(&page, &[zone, "What needs attention"]);
    let expected = serde_json::json!([{ "zone": "eu-1a", "candidates": 5, "expired": 4 }]);
    assert_eq!(found["lostZones"], expected);
    let (found, page) = shown(outcome(found_with_grace(10)));
    assert_eq!(found["graceTooShort"], true);
    let short = "nodeMonitorGracePeriod (10s) is shorter than two renewals of the nodes' leases: they expire after 15s";
    assert_says(
        &page,
        &[short, "(expired after 15s", "with too short a grace"],
    );
    let (found, page) = shown(outcome(found_with_grace(20)));
    assert_eq!(found["graceTooShort"], serde_json::Value::Null);
    assert!(!page.contains("shorter than two renewals"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn outages_are_shown_with_their_shoots_the_newest_first() {
    let (statuses, handle) = one();
    assert_says(&page(&statuses), &["None since this process began"]);
    let [first, second] = ["2026-01-02T03:00:00+00:00", "2026-01-02T04:00:00+00:00"];
    handle.keep(outage("shoot--a--b", first));
    handle.update(|status| status.outage = Some(Box::new(outage("shoot--a--b", second))));
    let status = status(&statuses);
    let began = status
        .outages
        .iter()
        .map(|outage| outage.began.to_rfc3339());
    assert_eq!(began.collect::<Vec<_>>(), [second, first]);
    let told = "begun before this process could tell; not over yet";
    assert_says(&page(&statuses), &["<code>shoot--a--b</code>", told]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_says_whether_it_protects() {
    let garden = [(STANDBY_PROTECTS.to_owned(), "false".to_owned())];
    let garden = Overrides::of(&BTreeMap::from(garden));
    let annotated = ResolvedOptions::resolve(&config(""), Some(&garden), None);
    for (config, settings, says) in [
        (
            config("standbyProtects: true"),
            None,
            "protects those for which the leader does not act",
        ),
        (config("standbyProtects: false"), None, "writes nothing"),
        (
            config("standbyProtects: true"),
            Some(annotated),
            "writes nothing",
        ),
    ] {
        let settings = settings.iter().flat_map(ShownOption::overruled);
        let status = ProberStatus {
            settings: settings.collect(),
            config: config::to_json(&config),
            ..ProberStatus::default()
        };
        assert!(status.without_lead().contains(says));
    }
    let (statuses, handles) = statuses();
    handles[3].update(|status| status.options = Some(annotated));
    let status = ProberStatus {
        settings: ShownOption::overruled(&annotated).collect(),
        ..status(&statuses)
    };
    assert_says(
        &status.body().into_string(),
        &["standbyProtects false (garden)"],
    );
}

#[tokio::test(start_paused = true)]
async fn many_healthy_shoots_are_folded_away_and_a_seed_that_is_not_known_is_said_to_be() {
    let (statuses, _handle) = one();
    for number in 1..100 {
        statuses.set_state(&format!("shoot--a--{number}"), Some(ShootState::Probed));
    }
    let status = ProberStatus {
        unknown: Some("Machines".into()),
        config_refused: true,
        ..status(&statuses)
    };
    let expected = [
        "100 shoots</summary>",
        "The seed's Machines are not known",
        "is refused",
    ];
    assert_says(&status.body().into_string(), &expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_read_again_as_it_was() {
    let (statuses, handles) = statuses();
    handles[5].update(|status| {
        let until = Some(statuses.clock.now() + TimeDelta::seconds(5));
        let requirement = Requirement::NotPaused;
        status.options = Some(ResolvedOptions::resolve(&config(""), None, None));
        status.waits = vec![(dependent(), Waits { requirement, until })];
        status.not_scaled = [(dependent(), "access is denied (403)".to_owned())].into();
        status.scaling = Some(Direction::Down);
        status.outage = Some(Box::new(outage("f-held", "2026-01-02T03:00:00Z")));
        status.intended = vec![Intended {
            kind: "Deployment".into(),
            name: "d".into(),
            before: 1,
            after: 0,
        }];
    });
    let refused = RefusedSetting {
        namespace: "garden".to_owned(),
        problem: "no".to_owned(),
    };
    let status = ProberStatus {
        refused: vec![refused],
        ..status(&statuses)
    };
    let json = serde_json::to_value(&status).expect("JSON");
    let read: ProberStatus = serde_json::from_value(json.clone()).expect("the same types");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), json);
    let (tone, why) = read.shoots[0].dependents[0].why();
    assert_eq!(tone, Tone::Bad);
    assert_says(
        &why,
        &[
            "; it could not be scaled: access is denied (403)",
            "; its write waits for the pause to be lifted, until ",
            "; without the dry run it would be scaled to 0",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_should_have_ended_is_overdue() {
    let (statuses, _handle) = one();
    for is_overdue in [false, true] {
        tokio::time::advance(config("").probe_timeout).await;
        assert_eq!(status(&statuses).shoots[0].is_overdue(), is_overdue);
    }
}
