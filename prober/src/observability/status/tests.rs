use common::status::Status as _;
use prober_core::config::ResourceRef;
use prober_core::judgement::Finding;
use prober_core::lease::LeaseState;
use prober_core::lifecycle::StopReason;
use prober_core::options::{Overrides, ResolvedOptions, STANDBY_PROTECTS};
use prober_core::verdict::Tally;

use super::*;
use crate::observability::outcome::SeenLease;
use crate::observability::zones::LostZone;
use crate::tests::{found_with_grace, nothing_found, outcome};
use std::sync::Arc;

use chrono::TimeDelta;

use crate::observability::shoot_statuses::tests::outage;

fn found(verdict: Verdict) -> Option<Arc<ProbeOutcome>> {
    Some(Arc::new(outcome(Finding {
        verdict,
        ..nothing_found()
    })))
}

fn failure() -> Option<Failure> {
    Some(Failure {
        stage: "leases",
        category: "timeout",
        message: "no answer <in time>".to_owned(),
        failed_probes: 3,
    })
}

/// Statuses with a shoot for each concern; the names say nothing of the order.
fn statuses(
    clock: Clock,
) -> (
    ShootStatuses,
    Vec<crate::observability::shoot_statuses::StatusHandle>,
) {
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
        ("c-paused", |status| status.paused = true),
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
            let kcm = ResourceRef {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                name: "kube-controller-manager".into(),
            };
            status.held_down = [(kcm, Moment::START)].into();
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

fn config(more: &str) -> Config {
    let dependent =
        "{ref: {kind: Deployment, name: d, apiVersion: apps/v1}, scaleUp: {}, scaleDown: {}}";
    config::parse(&format!(
        "kubeConfigSecretName: s\ndependentResourceInfos: [{dependent}]\n{more}"
    ))
    .unwrap()
    .config
}

fn status(statuses: &ShootStatuses, clock: Clock) -> ProberStatus {
    ProberStatus::new(statuses, clock, SeedStatus::default(), &config(""), false)
}

#[tokio::test(start_paused = true)]
async fn what_is_most_urgent_comes_first() {
    let clock = Clock::start();
    let (statuses, _handles) = statuses(clock);
    let status = status(&statuses, clock);
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
        [("hibernated", 1), ("probed", 6), ("unreadable", 1)].into()
    );
}

#[tokio::test(start_paused = true)]
async fn the_page_says_what_each_shoot_suffers_from() {
    let clock = Clock::start();
    let (statuses, _handles) = statuses(clock);
    let page = status(&statuses, clock).body().into_string();
    for expected in [
        "Held down: Deployment/kube-controller-manager since ",
        "4 of 5 leases expired, 1 undecided (expired after 30s, an outage from 60% on)",
        "3 in a row (timeout at leases), so nothing is concluded: no answer &lt;in time&gt;",
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
    let status = status(&statuses, clock);
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
    handle.update(|status| status.paused = true);
    let page = self::status(&statuses, clock).body().into_string();
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
    let status = status(&statuses, clock);
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
        let status = status(&statuses, clock);
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
        status(&statuses, clock)
            .body()
            .into_string()
            .contains("None since this process began")
    );
    let (first, second) = ("2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z");
    let handle = statuses.register("shoot--a--b".to_owned(), clock.now());
    handle.keep(outage("shoot--a--b", first));
    handle.update(|status| status.outage = Some(Box::new(outage("shoot--a--b", second))));
    let status = status(&statuses, clock);
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
    let (statuses, clock) = (ShootStatuses::new(Clock::start(), false), Clock::start());
    let says = |protects: bool| {
        let config = config(&format!("standbyProtects: {protects}"));
        ProberStatus::new(&statuses, clock, SeedStatus::default(), &config, false).without_lead()
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
    let status = status(&statuses, clock);
    assert!(status.without_lead().contains("writes nothing"));
    let page = status.body().into_string();
    assert!(
        page.contains("Settings: standbyProtects false (garden)"),
        "{page}"
    );
}

#[tokio::test(start_paused = true)]
async fn many_healthy_shoots_are_folded_away_and_a_seed_that_is_not_known_is_said_to_be() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    for number in 0..100 {
        statuses.set_state(&format!("shoot--a--{number}"), Some(ShootState::Probed));
    }
    let seed = SeedStatus {
        unknown: Some("Machines"),
        missing_rights: vec!["patch deployments.apps".to_owned()],
    };
    let page = ProberStatus::new(&statuses, clock, seed, &config(""), true)
        .body()
        .into_string();
    assert!(page.contains("100 shoots</summary>"), "{page}");
    assert!(
        page.contains("The seed's Machines are not known") && page.contains("is refused"),
        "{page}"
    );
}
