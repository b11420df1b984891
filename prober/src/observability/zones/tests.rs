use chrono::TimeDelta;
use prober_core::lease::LeaseState::{Expired, Undecided, Valid};

use super::*;

#[test]
fn a_zone_is_lost_when_three_of_five_leases_are_expired_and_two_at_least() {
    let of_a = |states: &[LeaseState]| states.iter().map(|state| (Some("a"), *state)).collect();
    let (a, b) = (Some("a"), Some("b"));
    let lost_zone = |zone: &str, candidates, expired| LostZone {
        zone: zone.into(),
        candidates,
        expired,
    };
    for (leases, expected) in [
        (
            of_a(&[Expired, Expired, Expired, Valid, Valid]),
            Some(lost_zone("a", 5, 3)),
        ),
        (of_a(&[Expired, Expired]), Some(lost_zone("a", 2, 2))),
        (of_a(&[Expired, Expired, Valid, Valid]), None),
        (of_a(&[Expired]), None),
        (of_a(&[Undecided, Undecided, Expired]), None),
        (vec![], None),
        // Each zone is judged by its own leases, and nodes without one by none.
        (
            vec![
                (a, Valid),
                (b, Expired),
                (None, Expired),
                (a, Valid),
                (b, Expired),
                (None, Expired),
            ],
            Some(lost_zone("b", 2, 2)),
        ),
    ] {
        let counted = |&(failure_zone, state): &(_, _)| CountedLease {
            node: "node",
            failure_zone,
            age: TimeDelta::zero(),
            state,
            skew: TimeDelta::zero(),
        };
        let counted: Vec<_> = leases.iter().map(counted).collect();
        assert_eq!(lost(&counted), Vec::from_iter(expected), "{leases:?}");
    }
}
