use proptest::collection::{btree_map, hash_set};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::lease::LeaseState::{Expired, Undecided, Valid};
use super::super::replicas::{Marks, Observed, scale_down, scale_up};
use super::*;
use crate::tests::scene::{JUDGED, at, book, criteria, number, table};

impl NodeTraits {
    /// `foreign`, `pool=w1`, `Ready=True`, `InPlaceUpdate=True/UpdateFailed`.
    pub fn of(words: &str) -> Self {
        let mut traits = Self::default();
        for word in words.split_whitespace() {
            match word.split_once('=') {
                None => traits.note_annotation(NOT_MANAGED_BY_MCM),
                Some(("pool", pool)) => traits.note_label(POOL_LABEL, pool),
                Some((kind, status)) => {
                    let (status, reason) = status.split_once('/').unwrap_or((status, ""));
                    traits.note_condition(NodeCondition {
                        kind,
                        status,
                        reason,
                    });
                }
            }
        }
        traits
    }
}

fn node(name: &str, words: &str) -> NodeRecord {
    NodeRecord::new(name, NodeTraits::of(words))
}

#[test]
fn node_is_excluded_by_its_traits() {
    let pools = PoolConditions::from([("w1".to_owned(), vec!["PIDPressure".to_owned()])]);
    for [words, expected] in table(
        "
        | counts
        foreign | not_managed
        KernelDeadlock=True | unhealthy_condition
        ReadonlyFilesystem=True | unhealthy_condition
        DiskPressure=True | unhealthy_condition
        NetworkUnavailable=True | unhealthy_condition
        DiskPressure=False | counts
        DiskPressure=Unknown | counts
        DiskPressure=true | counts
        DiskPressure= | counts
        MemoryPressure=True | counts
        PIDPressure=True | counts
        Ready=True | counts
        diskpressure=True | counts
        pool=w1 DiskPressure=True | counts
        pool=w1 PIDPressure=True | unhealthy_condition
        pool=w2 DiskPressure=True | unhealthy_condition
        InPlaceUpdate=True/ReadyForUpdate | in_place_update
        InPlaceUpdate=True/UpdateFailed | in_place_update
        InPlaceUpdate=False/UpdateFailed | in_place_update
        InPlaceUpdate=/UpdateFailed | in_place_update
        InPlaceUpdate=True/CandidateForUpdate | counts
        Ready=True/ReadyForUpdate | counts
        ",
    ) {
        let shown = |is_backed| {
            let reason = exclusion(&NodeTraits::of(words), is_backed, &pools);
            reason.map_or("counts", |reason| reason.into_str())
        };
        assert_eq!(shown(true), expected, "{words}");
        let unbacked = match expected {
            "counts" | "in_place_update" => "no_usable_machine",
            other => other,
        };
        assert_eq!(shown(false), unbacked, "{words}, no Machine");
    }
    // Most conditions of a node are False.
    assert_eq!(NodeTraits::of("Ready=False").conditions, []);
}

#[test]
fn lease_and_node_count_together() {
    // Faults 28 and 29: n2 and n3 alone count; each other node lacks something.
    let names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"];
    let leases = book(names.map(|name| (name, if name == "n3" { Expired } else { Valid })));
    let machines: BackedNodes = names[1..]
        .iter()
        .chain(&["n8"])
        .copied()
        .map(Some)
        .collect();
    let nodes = [
        node("n1", ""),
        node("n2", ""),
        node("n3", ""),
        node("n4", "foreign"),
        node("n5", "pool=w DiskPressure=True"),
        node("n6", "InPlaceUpdate=True/UpdateFailed"),
        node("n8", ""),
    ];
    let candidates = Candidates::by_nodes(&leases, &machines, &nodes, &PoolConditions::new());
    let tally = Tally {
        candidates: 2,
        expired: 1,
        undecided: 0,
    };
    assert_eq!(candidates.tally(criteria(at(JUDGED))), tally);
    let reasons = [
        Exclusion::NoUsableMachine,
        Exclusion::NotManaged,
        Exclusion::UnhealthyCondition,
        Exclusion::InPlaceUpdate,
        Exclusion::NoNode,
        Exclusion::NoLease,
    ];
    assert_eq!(
        candidates.excluded,
        reasons.map(|reason| (reason, 1)).into()
    );
    let allowed = Candidates::by_machines(&leases, &machines);
    let allowed: Vec<_> = allowed.leases.iter().map(|(name, _)| *name).collect();
    assert_eq!(allowed, names[1..]);
}

#[test]
fn verdict_by_counts() {
    // Candidates, expired, undecided and the fraction; faults 6, 30 and 33: the quotients are compared
    // as Go compares them (rule 48).
    for [candidates, expired, undecided, fraction, verdict] in table(
        "
        0 | 0 | 0 | 0.6 | ScaleUp
        1 | 0 | 0 | 0.6 | ScaleUpHeldDown
        1 | 1 | 0 | 0.6 | HoldSingleCandidate
        1 | 0 | 1 | 0.6 | HoldSingleCandidate
        5 | 3 | 0 | 0.6 | ScaleDown
        5 | 2 | 0 | 0.6 | ScaleUp
        2 | 1 | 0 | 0.5 | ScaleDown
        10 | 7 | 0 | 0.7 | ScaleDown
        3 | 2 | 0 | 0.6666666666666666 | ScaleDown
        100 | 99 | 0 | 1.0 | ScaleUp
        2 | 0 | 0 | 2.2250738585072014e-308 | ScaleUp
        3 | 2 | 0 | NaN | ScaleUp
        5 | 2 | 1 | 0.6 | HoldUndecided
        5 | 3 | 2 | 0.6 | ScaleDown
        5 | 1 | 1 | 0.6 | ScaleUp
        ",
    ) {
        let [candidates, expired, undecided] =
            [candidates, expired, undecided].map(|count| number(count) as usize);
        let tally = Tally {
            candidates,
            expired,
            undecided,
        };
        let found = tally.verdict(number(fraction));
        assert_eq!(format!("{found:?}"), verdict, "{tally:?} at {fraction}");
    }
}

proptest! {
    #[test]
    fn unlisted_nodes_change_no_write(
        leases in btree_map("n[1-8]", prop_oneof![8 => Just(Valid), 1 => Just(Expired), 1 => Just(Undecided)], 0..8),
        machines in hash_set("n[1-8]", 0..8),
        nodes in btree_map("n[1-8]", select(vec!["", "foreign", "DiskPressure=True", "InPlaceUpdate=True/UpdateFailed"]), 0..8),
        (replicas, held_down, ignored, memory) in (0..3, any::<bool>(), any::<bool>(), of("[0-9a-]{0,2}")),
        only_held_down in any::<bool>(),
        fraction in 0.01..=1.0_f64,
    ) {
        let book = book(leases.iter().map(|(name, state)| (&**name, *state)));
        let machines: BackedNodes = machines.into_iter().map(Some).collect();
        let nodes: Vec<_> = nodes.iter().map(|(name, words)| node(name, words)).collect();
        let dependent = Observed { replicas, marks: Marks { replicas: memory, held_down, ignored }, ..Observed::default() };
        let by = criteria(at(JUDGED));
        let allowed = Candidates::by_machines(&book, &machines).tally(by);
        let always = Candidates::by_nodes(&book, &machines, &nodes, &PoolConditions::new()).tally(by);
        let write = |tally: Tally| match tally.verdict(fraction).aim()? {
            (Direction::Up, scope) => scale_up(&dependent, scope, only_held_down),
            (Direction::Down, _) => scale_down(&dependent, true),
        };
        let settled = scale_up(&dependent, Scope::All, only_held_down).is_none();
        prop_assert!(nodes_matter(allowed, settled) || write(allowed) == write(always));
        prop_assert!(always.candidates <= allowed.candidates && always.expired <= allowed.expired);
    }
}
