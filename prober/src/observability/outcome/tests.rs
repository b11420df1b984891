use prober_core::verdict::Tally;

use super::*;
use crate::tests::nothing_found;

#[test]
fn the_oldest_leases_are_shown_oldest_first_and_then_by_name() {
    let names: Vec<_> = ["e", "d", "c", "b", "a"]
        .into_iter()
        .cycle()
        .take(30)
        .collect();
    let lease = |(number, &node): (usize, &&'static str)| CountedLease {
        node,
        age: TimeDelta::seconds([3, 0, 0, 2].get(number).copied().unwrap_or(0)),
        state: LeaseState::Valid,
        skew: TimeDelta::zero(),
    };
    let leases: Vec<_> = names.iter().enumerate().map(lease).collect();
    let finding = Finding {
        tally: Tally::of(leases.iter().map(|lease| lease.state)),
        ..nothing_found()
    };
    let shown = ProbeOutcome::new(&Arc::new(finding), &leases).leases;
    let nodes: Vec<_> = shown.iter().map(|lease| lease.node.as_str()).collect();
    assert_eq!((nodes.len(), &nodes[..4]), (20, &["e", "b", "a", "a"][..]));
}
