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

fn found(verdict: Verdict) -> Option<Arc<ProbeOutcome>> {
    Some(Arc::new(outcome(Finding {
        verdict,
        ..nothing_found()
    })))
}

fn failure() -> Option<Failure> {
    Some(Failure {
        stage: "leases".into(),
        category: "timeout".into(),
        message: "no answer <in time>".to_owned(),
        failed_probes: 3,
        since: wall(0.0),
    })
}

/// Statuses with a shoot for each concern; the names say nothing of the order.
fn statuses(clock: Clock) -> (ShootStatuses, Vec<StatusHandle>) {
    let statuses = ShootStatuses::new(clock, false);
    let mut handles = Vec::new();
    for (namespace, change) in [
        (
            "a-healthy",
            (|status: &mut ShootStatus| status.outcome = found(Verdict::ScaleUp))
                as fn(&mut ShootStatus),
        ),
        ("b-unclear", |status| {
            status.outcome = found(Verdict::HoldUndecided)
        }),
        ("c-paused", |status| status.options = Some(paused())),
        ("d-failing", |status| status.failure = failure()),
        ("e-outage", |status| {
            let lease = |node: &str, state| SeenLease {
                node: node.to_owned(),
                age: TimeDelta::zero(),
                state,
                skew: TimeDelta::zero(),
            };
            let finding = Finding {
                verdict: Verdict::ScaleDown,
                tally: Tally {
                    candidates: 5,
                    expired: 4,
                    undecided: 1,
                },
                ..nothing_found()
            };
            status.outcome = Some(Arc::new(ProbeOutcome {
                leases: vec![
                    lease("node-1", LeaseState::Expired),
                    lease("node-2", LeaseState::Undecided),
                ],
                ..outcome(finding)
            }));
        }),
        ("f-held", |status| {
            status.held_down = [(dependent(), Moment::START)].into();
        }),
    ] {
        statuses.set_state(namespace, Some(ShootState::Probed));
        let handle = statuses.register(namespace.to_owned(), clock.now());
        handle.update(change);
        handles.push(handle);
    }
    statuses.set_state(
        "g-unreadable",
        Some(ShootState::Unreadable("spec: a number".to_owned())),
    );
    statuses.set_state(
        "h-asleep",
        Some(ShootState::Stopped(StopReason::Hibernated)),
    );
    (statuses, handles)
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

#[tokio::test(start_paused = true)]
async fn what_is_most_urgent_comes_first() {
    let clock = Clock::start();
    let (statuses, _handles) = statuses(clock);
    let status = status(&statuses);
    let order: Vec<_> = status
        .shoots
        .iter()
        .map(|shoot| shoot.namespace.as_str())
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
    assert_eq!(
        status.shoots_by_state,
        [("hibernated", 1), ("probed", 6), ("unreadable", 1)]
            .map(|(state, count)| (state.into(), count))
            .into()
    );
}

#[tokio::test(start_paused = true)]
async fn the_page_says_what_each_shoot_suffers_from() {
    let clock = Clock::start();
    let (statuses, _handles) = statuses(clock);
    let page = status(&statuses).body().into_string();
    for expected in [
        "held down by the watchdog while too few leases are renewed; it comes back with 2 replicas (since ",
        "4 of 5 leases expired, 1 undecided (expired after 30s, an outage from 60% on)",
        "3 in a row since 2023-11-14 22:13:20 UTC (timeout at leases), so nothing is concluded: no answer &lt;in time&gt;",
        "its operators want nothing written",
        "hold_undecided",
        "its Cluster cannot be understood (spec: a number)",
    ] {
        assert!(page.contains(expected), "no {expected:?} in {page}");
    }
    assert!(!page.contains("Nothing is held down"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn ages_states_and_verdict_are_of_the_same_moment() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    let age = TimeDelta::seconds(20);
    let lease = SeenLease {
        node: "node-1".to_owned(),
        age,
        state: LeaseState::Valid,
        skew: TimeDelta::zero(),
    };
    let finding = Finding {
        judged_at: clock.now(),
        ..nothing_found()
    };
    let outcome = ProbeOutcome {
        leases: vec![lease],
        ..outcome(finding)
    };
    handle.update(|status| status.outcome = Some(Arc::new(outcome)));
    tokio::time::advance(std::time::Duration::from_secs(23)).await;
    let status = status(&statuses);
    let found = &serde_json::to_value(&status).expect("JSON")["shoots"][0]["probe"]["found"];
    assert_eq!(found["secondsAgo"], 23);
    assert_eq!(
        found["leases"],
        serde_json::json!([{ "node": "node-1", "ageSeconds": 20.0, "state": "valid" }])
    );
    assert_eq!(
        (&found["expiredAfterSeconds"], &found["unknownAfterSeconds"]),
        (&30.0.into(), &40.0.into())
    );
    handle.update(|status| status.options = Some(paused()));
    let page = self::status(&statuses).body().into_string();
    for expected in [
        "probed 23s ago",
        "<td data-label=\"Age\">20.0s</td>",
        "20.0s; expired after 30s, Unknown after 40s",
    ] {
        assert!(page.contains(expected), "no {expected:?} in {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_zone_is_shown_and_said_not_to_be_acted_on() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    let lost = LostZone {
        zone: "eu-1a".to_owned(),
        candidates: 5,
        expired: 4,
    };
    let outcome = ProbeOutcome {
        lost_zones: vec![lost],
        ..outcome(nothing_found())
    };
    handle.update(|status| status.outcome = Some(Arc::new(outcome)));
    let status = status(&statuses);
    let page = status.body().into_string();
    assert!(
        page.contains("Zone: eu-1a is lost: 4 of its 5 leases expired; nothing is scaled for that"),
        "{page}"
    );
    assert!(page.contains("What needs attention"), "{page}");
    let json = serde_json::to_value(&status).expect("JSON");
    let zones = &json["shoots"][0]["probe"]["found"]["lostZones"];
    assert_eq!(
        *zones,
        serde_json::json!([{ "zone": "eu-1a", "candidates": 5, "expired": 4 }])
    );
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_is_too_short_is_shown_with_what_it_costs() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    let shown = |seconds| {
        let outcome = Arc::new(outcome(found_with_grace(seconds)));
        handle.update(|status| status.outcome = Some(outcome));
        let status = status(&statuses);
        let json = serde_json::to_value(&status).expect("JSON");
        let found = &json["shoots"][0]["probe"]["found"];
        (found["graceTooShort"].clone(), status.body().into_string())
    };
    let (short, page) = shown(10);
    assert_eq!(short, true);
    let says = "nodeMonitorGracePeriod (10s) is shorter than two renewals of the nodes' leases: they expire after 15s";
    assert!(
        page.contains(says) && page.contains("(expired after 15s"),
        "{page}"
    );
    assert!(page.contains("with too short a grace"), "{page}");
    let (short, page) = shown(20);
    assert_eq!(short, serde_json::Value::Null);
    assert!(!page.contains("shorter than two renewals"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn outages_are_shown_with_their_shoots_the_newest_first() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    assert!(
        status(&statuses)
            .body()
            .into_string()
            .contains("None since this process began")
    );
    let (first, second) = ("2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z");
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    handle.keep(outage("shoot--a--b", first));
    handle.update(|status| status.outage = Some(Box::new(outage("shoot--a--b", second))));
    let status = status(&statuses);
    assert_eq!(
        status
            .outages
            .iter()
            .map(|outage| outage.began.to_rfc3339())
            .collect::<Vec<_>>(),
        [second, first].map(|at| at.replace('Z', "+00:00"))
    );
    let page = status.body().into_string();
    for expected in [
        "<code>shoot--a--b</code>",
        "begun before this process could tell; not over yet",
    ] {
        assert!(page.contains(expected), "no {expected:?} in {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_says_whether_it_protects() {
    let says = |protects: bool| {
        let config = config(&format!("standbyProtects: {protects}"));
        let status = ProberStatus {
            config: config::to_json(&config),
            ..ProberStatus::default()
        };
        status.without_lead()
    };
    assert!(says(true).contains("protects those for which the leader does not act"));
    assert!(says(false).contains("writes nothing"));
}

#[tokio::test(start_paused = true)]
async fn what_annotations_set_is_shown_and_decides_what_a_replica_says_that_does_not_lead() {
    let clock = Clock::start();
    let (statuses, handles) = statuses(clock);
    let garden = Overrides::of(&BTreeMap::from([(
        STANDBY_PROTECTS.to_owned(),
        "false".to_owned(),
    )]));
    let options = ResolvedOptions::resolve(&config(""), Some(&garden), None);
    handles
        .iter()
        .for_each(|handle| handle.update(|status| status.options = Some(options)));
    let status = ProberStatus {
        settings: ShownOption::overruled(&options).collect(),
        ..status(&statuses)
    };
    assert!(status.without_lead().contains("writes nothing"));
    let page = status.body().into_string();
    assert!(page.contains("standbyProtects false (garden)"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn many_healthy_shoots_are_folded_away_and_a_seed_that_is_not_known_is_said_to_be() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    for number in 0..100 {
        statuses.set_state(&format!("shoot--a--{number}"), Some(ShootState::Probed));
    }
    let status = ProberStatus {
        unknown: Some("Machines".into()),
        missing_rights: vec!["patch deployments.apps".to_owned()],
        config_refused: true,
        ..status(&statuses)
    };
    let page = status.body().into_string();
    assert!(page.contains("100 shoots</summary>"), "{page}");
    assert!(
        page.contains("The seed's Machines are not known") && page.contains("is refused"),
        "{page}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_read_again_as_it_was() {
    let clock = Clock::start();
    let (statuses, handles) = statuses(clock);
    let requirement = Requirement::NotPaused;
    handles[5].update(|status| {
        let until = Some(clock.now() + TimeDelta::seconds(5));
        let waits = Waits { requirement, until };
        status.options = Some(ResolvedOptions::resolve(&config(""), None, None));
        status.waits = vec![(dependent(), waits)];
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
    let status = ProberStatus {
        refused: vec![RefusedSetting {
            namespace: "garden".to_owned(),
            problem: "no".to_owned(),
        }],
        ..status(&statuses)
    };
    let json = serde_json::to_value(&status).expect("JSON");
    let read: ProberStatus = serde_json::from_value(json.clone()).expect("the same types");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), json);
    let (tone, why) = read.shoots[0].dependents[0].why();
    assert_eq!(tone, Tone::Bad);
    for part in [
        "; it could not be scaled: access is denied (403)",
        "; its write waits for the pause to be lifted, until ",
        "; without the dry run it would be scaled to 0",
    ] {
        assert!(why.contains(part), "no {part:?} in {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_should_have_ended_is_overdue() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let _handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    let timeout = config("").probe_timeout;
    tokio::time::advance(timeout).await;
    assert!(!status(&statuses).shoots[0].is_overdue());
    tokio::time::advance(timeout).await;
    assert!(status(&statuses).shoots[0].is_overdue());
}
