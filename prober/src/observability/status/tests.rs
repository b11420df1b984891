use std::sync::Arc;

use chrono::TimeDelta;
use prober_core::config::Config;
use prober_core::judgement::Finding;
use prober_core::lease::LeaseState;
use prober_core::lifecycle::StopReason;
use prober_core::moment::Moment;
use prober_core::options::{Overrides, PAUSE, ResolvedOptions};
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
use crate::tests::{nothing_found, outcome, wall};

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

#[tokio::test(start_paused = true)]
async fn what_is_most_urgent_comes_first() {
    let (statuses, _handles) = statuses();
    let shoots = status(&statuses).shoots;
    let order = shoots.iter().map(|shoot| shoot.namespace.split('-').nth(1));
    let expected = "held outage failing paused unclear unreadable healthy asleep";
    assert!(order.flatten().eq(expected.split(' ')));
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
    let dry_run = "; without the dry run it would be scaled to 0";
    assert!(why.contains(dry_run), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_should_have_ended_is_overdue() {
    let (statuses, _handle) = one();
    for is_overdue in [false, true] {
        tokio::time::advance(config("").probe_timeout).await;
        assert_eq!(status(&statuses).shoots[0].is_overdue(), is_overdue);
    }
}
