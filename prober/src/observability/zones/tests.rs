use chrono::TimeDelta;
use prober_core::lease::LeaseState::{Expired, Undecided, Valid};

use super::*;

fn lost_of(states: &[(Option<&str>, LeaseState)]) -> Vec<LostZone> {
    let counted = |&(failure_zone, state)| CountedLease {
        node: "node",
        failure_zone,
        age: TimeDelta::zero(),
        state,
        skew: TimeDelta::zero(),
    };
    lost(&states.iter().map(counted).collect::<Vec<_>>())
}

#[test]
fn a_zone_is_lost_when_three_of_five_leases_are_expired_and_two_at_least() {
    let lost_of = |states: &[LeaseState]| {
        let of_a_zone = states.iter().map(|state| (Some("a"), *state));
        lost_of(&of_a_zone.collect::<Vec<_>>())
    };
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

#[test]
fn each_zone_is_judged_by_its_own_leases_and_nodes_without_one_by_none() {
    let [a, b] = [Some("a"), Some("b")];
    let leases = [
        (a, Valid),
        (b, Expired),
        (None, Expired),
        (a, Valid),
        (b, Expired),
        (None, Expired),
    ];
    let zones: Vec<_> = lost_of(&leases).into_iter().map(|lost| lost.zone).collect();
    assert_eq!(zones, ["b"]);
}
