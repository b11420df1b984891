use std::sync::Arc;

use chrono::TimeDelta;
use prober_core::judgement::Finding;
use prober_core::verdict::Verdict;

use super::*;
use crate::observability::outcome::ProbeOutcome;
use crate::tests::nothing_found;

/// Leases in words: the zone of each, and whether it is valid (`+`), expired (`-`) or neither.
fn leases(words: &str) -> Vec<CountedLease<'_>> {
    let lease = |word| {
        let (zone, state) = str::split_at(word, word.len() - 1);
        CountedLease {
            node: word,
            failure_zone: Some(zone).filter(|zone| !zone.is_empty()),
            age: TimeDelta::zero(),
            state: match state {
                "+" => LeaseState::Valid,
                "-" => LeaseState::Expired,
                _ => LeaseState::Undecided,
            },
            skew: TimeDelta::zero(),
        }
    };
    words
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(lease)
        .collect()
}

fn outcome(
    verdict: Verdict,
    counted: &[CountedLease<'_>],
    before: Option<&ProbeOutcome>,
) -> ProbeOutcome {
    let finding = Finding {
        verdict,
        tally: Tally::of(counted.iter().map(|lease| lease.state)),
        ..nothing_found()
    };
    ProbeOutcome::new(&Arc::new(finding), counted, before)
}

#[test]
fn a_zone_is_lost_when_three_of_five_leases_are_expired_and_two_at_least() {
    // The leases of one probe, and of the next one with its verdict.
    let (up, undecided, down) = (Verdict::ScaleUp, Verdict::HoldUndecided, Verdict::ScaleDown);
    for (first, verdict, second, lost) in [
        ("", up, "a- a- a- a+ a+", "a 3/5"),
        ("", up, "a- a-", "a 2/2"),
        ("", up, "a- a- a+ a+", ""),
        ("", up, "a-", ""),
        ("", up, "a? a? a-", ""),
        ("", up, "", ""),
        // Each zone is judged by its own leases, and nodes without one by none.
        ("", up, "a+ b- - a+ b- -", "b 2/2"),
        // It stays lost while its leases are undecided, and none is in an outage.
        ("a- a-", undecided, "a? a?", "a 2/2"),
        ("a- a-", up, "a+ a+", ""),
        ("a- a-", down, "a- a- a?", ""),
    ] {
        let before = outcome(up, &leases(first), None);
        let after = outcome(verdict, &leases(second), Some(&before));
        let shown = after.lost_zones.iter();
        let shown = shown.map(|zone| format!("{} {}/{}", zone.zone, zone.expired, zone.candidates));
        assert_eq!(shown.collect::<String>(), lost, "{first}; {second}");
    }
}

#[test]
fn the_oldest_leases_are_shown_oldest_first_and_then_by_name() {
    let words = "e+ d+ c+ b+ a+ ".repeat(6);
    let mut leases = leases(&words);
    leases[3].age = TimeDelta::seconds(2);
    leases[0].age = TimeDelta::seconds(3);
    let shown = outcome(Verdict::ScaleUp, &leases, None).leases;
    let nodes: Vec<_> = shown.iter().map(|lease| lease.node.as_str()).collect();
    assert_eq!(
        (nodes.len(), &nodes[..4]),
        (20, &["e+", "b+", "a+", "a+"][..])
    );
}
