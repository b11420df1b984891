use std::sync::Arc;

use super::super::judgement::{Judge, Rules};
use super::super::tests::scene::{GRACE, lease, times};
use super::super::verdict::{NodeRecord, NodeTraits, PoolConditions, Verdict};
use super::LeaseState::{Expired, Undecided, Valid};
use super::*;

fn lost_of(states: &[LeaseState]) -> Vec<LostZone> {
    lost(states.iter().map(|state| ("a", *state)))
}

#[test]
fn a_zone_is_lost_when_three_of_five_leases_are_expired_and_two_at_least() {
    assert_eq!(
        lost_of(&[Expired, Expired, Expired, Valid, Valid]),
        [LostZone {
            zone: "a".into(),
            candidates: 5,
            expired: 3
        }]
    );
    assert_eq!(lost_of(&[Expired, Expired]).len(), 1);
    for safe in [
        &[Expired, Expired, Valid, Valid][..],
        &[Expired],
        &[Undecided, Undecided, Expired],
        &[],
    ] {
        assert!(lost_of(safe).is_empty(), "{safe:?}");
    }
}

/// Six nodes, node by node in zone (or pool) and with the moment of the last renewal, as found 100
/// s after the start.
fn found(
    nodes: [(&str, f64); 6],
    record: impl Fn(usize, &str) -> NodeRecord,
) -> (Verdict, Vec<LostZone>) {
    let names: Vec<String> = (0..6).map(|number| format!("node-{number}")).collect();
    let mut judge = Judge::default();
    let rules = Rules {
        grace: GRACE,
        fraction: 0.6,
        pool_conditions: &PoolConditions::default(),
        renewed_after: None,
    };
    for (now, renewed) in [(70.0, 65.0), (90.0, 85.0), (100.0, 95.0)] {
        let leases = names
            .iter()
            .zip(&nodes)
            .map(|(name, (_, last))| lease(name, last.min(renewed)));
        judge.observe(times(now), leases, GRACE);
    }
    judge.set_machines(Arc::new(
        names.iter().map(|name| Some(name.as_str())).collect(),
    ));
    judge.set_nodes(
        nodes
            .iter()
            .enumerate()
            .map(|(at, (zone, _))| record(at, zone))
            .collect(),
    );
    let finding = judge.judge(&rules);
    (finding.verdict, finding.lost_zones)
}

fn in_zone(at: usize, zone: &str) -> NodeRecord {
    let traits = NodeTraits {
        zone: Some(zone.to_owned()),
        pool: Some("worker".to_owned()),
        ..NodeTraits::default()
    };
    NodeRecord::new(&format!("node-{at}"), traits)
}

fn in_pool(at: usize, pool: &str) -> NodeRecord {
    let traits = NodeTraits {
        pool: Some(pool.to_owned()),
        ..NodeTraits::default()
    };
    NodeRecord::new(&format!("node-{at}"), traits)
}

const OLD: f64 = 10.0;
const NEW: f64 = 95.0;

#[test]
fn a_lost_zone_is_shown_while_the_shoot_is_not_lost() {
    let third = [
        ("a", NEW),
        ("a", NEW),
        ("b", OLD),
        ("b", OLD),
        ("c", NEW),
        ("c", NEW),
    ];
    let lost = [LostZone {
        zone: "b".into(),
        candidates: 2,
        expired: 2,
    }];
    assert_eq!(found(third, in_zone), (Verdict::ScaleUp, lost.to_vec()));
    assert_eq!(found(third, in_pool).1, lost, "without zones their pools");
    let most = [
        ("a", OLD),
        ("a", OLD),
        ("b", OLD),
        ("b", OLD),
        ("c", NEW),
        ("c", NEW),
    ];
    assert_eq!(found(most, in_zone), (Verdict::ScaleDown, vec![]));
}

#[test]
fn nodes_that_do_not_count_are_of_no_zone() {
    let third = [
        ("a", NEW),
        ("a", NEW),
        ("b", OLD),
        ("b", OLD),
        ("c", NEW),
        ("c", NEW),
    ];
    let foreign = |at, zone: &str| {
        let mut node = in_zone(at, zone);
        Arc::make_mut(&mut node.traits).not_managed_by_mcm = at == 2;
        node
    };
    assert_eq!(found(third, foreign), (Verdict::ScaleUp, vec![]));
}

#[test]
fn a_name_that_no_label_can_have_is_no_zone() {
    let named = |name: &str| in_zone(0, name).traits.failure_zone().map(str::to_owned);
    assert_eq!(named("eu-west-1a").as_deref(), Some("eu-west-1a"));
    for forged in [&"x".repeat(64), "a\nVerdict: scale_up", "", "zürich"] {
        assert_eq!(
            named(forged).as_deref(),
            Some("worker"),
            "{forged:?}: as if there were no label"
        );
    }
    let mut node = in_pool(0, "worker");
    let traits = Arc::make_mut(&mut node.traits);
    traits.note_label("topology.kubernetes.io/zone", "");
    assert_eq!(
        traits.failure_zone(),
        Some("worker"),
        "as if there were no label"
    );
}
