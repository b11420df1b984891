use prober_core::verdict::Tally;

use super::*;
use crate::tests::nothing_found;

/// Leases of one node after the other, each of the same zone and age.
fn counted(count: usize, state: LeaseState) -> Vec<CountedLease<'static>> {
    let names = ["a", "b", "c", "d", "e"].iter().cycle().take(count);
    names
        .map(|node| CountedLease {
            node,
            failure_zone: Some("zone"),
            age: TimeDelta::zero(),
            state,
            skew: TimeDelta::zero(),
        })
        .collect()
}

fn outcome(
    verdict: Verdict,
    undecided: usize,
    state: LeaseState,
    before: Option<&ProbeOutcome>,
) -> ProbeOutcome {
    let tally = Tally {
        candidates: 10,
        expired: 0,
        undecided,
    };
    let finding = Finding {
        verdict,
        tally,
        ..nothing_found()
    };
    ProbeOutcome::new(&Arc::new(finding), &counted(5, state), before)
}

#[test]
fn a_zone_stays_lost_while_its_leases_are_undecided_and_none_is_in_an_outage() {
    let lost = outcome(Verdict::ScaleUp, 0, LeaseState::Expired, None);
    assert_eq!(lost.lost_zones.len(), 1);
    for (verdict, undecided, state, zones) in [
        (Verdict::HoldUndecided, 5, LeaseState::Undecided, 1),
        (Verdict::ScaleUp, 0, LeaseState::Valid, 0),
        (Verdict::ScaleDown, 5, LeaseState::Expired, 0),
    ] {
        let after = outcome(verdict, undecided, state, Some(&lost));
        assert_eq!(after.lost_zones.len(), zones, "{verdict:?}");
    }
}

#[test]
fn the_oldest_leases_are_shown_oldest_first_and_then_by_name() {
    let mut leases = counted(30, LeaseState::Valid);
    leases[28].age = TimeDelta::seconds(2);
    leases[29].age = TimeDelta::seconds(3);
    let shown = ProbeOutcome::new(&Arc::new(nothing_found()), &leases, None).leases;
    let nodes: Vec<_> = shown.iter().map(|lease| lease.node.as_str()).collect();
    assert_eq!((nodes.len(), &nodes[..4]), (20, &["e", "d", "a", "a"][..]));
}
