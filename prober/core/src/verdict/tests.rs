use proptest::collection::{btree_map, hash_set};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::lease::LeaseState::{Expired, Undecided, Valid};
use super::super::replicas::{Marks, Observed, scale_down, scale_up};
use super::*;
use crate::tests::scene::{JUDGED, at, book, criteria};

impl NodeTraits {
    /// `foreign`, `pool=w1`, `zone=z`, `Ready=True`, `InPlaceUpdate=True/UpdateFailed`.
    pub fn of(words: &str) -> Self {
        let mut traits = Self::default();
        for word in words.split_whitespace() {
            match word.split_once('=') {
                None => traits.note_annotation(NOT_MANAGED_BY_MCM),
                Some(("pool", pool)) => traits.note_label(POOL_LABEL, pool),
                Some(("zone", zone)) => traits.note_label(ZONE_LABEL, zone),
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
    use Exclusion::{InPlaceUpdate, NoUsableMachine, NotManaged, UnhealthyCondition};
    let pools = PoolConditions::from([("w1".to_owned(), vec!["PIDPressure".to_owned()])]);
    #[rustfmt::skip]
    let cases = [
        ("", None), ("foreign", Some(NotManaged)),
        ("KernelDeadlock=True", Some(UnhealthyCondition)), ("ReadonlyFilesystem=True", Some(UnhealthyCondition)),
        ("DiskPressure=True", Some(UnhealthyCondition)), ("NetworkUnavailable=True", Some(UnhealthyCondition)),
        ("DiskPressure=False", None), ("DiskPressure=Unknown", None), ("DiskPressure=true", None), ("DiskPressure=", None),
        ("MemoryPressure=True", None), ("PIDPressure=True", None), ("Ready=True", None), ("diskpressure=True", None),
        ("pool=w1 DiskPressure=True", None), ("pool=w1 PIDPressure=True", Some(UnhealthyCondition)), ("pool=w2 DiskPressure=True", Some(UnhealthyCondition)),
        ("InPlaceUpdate=True/ReadyForUpdate", Some(InPlaceUpdate)), ("InPlaceUpdate=True/UpdateFailed", Some(InPlaceUpdate)),
        ("InPlaceUpdate=False/UpdateFailed", Some(InPlaceUpdate)), ("InPlaceUpdate=/UpdateFailed", Some(InPlaceUpdate)),
        ("InPlaceUpdate=True/CandidateForUpdate", None), ("Ready=True/ReadyForUpdate", None),
    ];
    for (words, expected) in cases {
        let traits = NodeTraits::of(words);
        assert_eq!(exclusion(&traits, true, &pools), expected, "{words}");
        let backs = expected.filter(|&reason| reason != InPlaceUpdate);
        let unbacked = exclusion(&traits, false, &pools);
        assert_eq!(
            unbacked,
            backs.or(Some(NoUsableMachine)),
            "{words}, no Machine"
        );
    }
    // Most conditions of a node are False.
    assert_eq!(NodeTraits::of("Ready=False zone=z").conditions, []);
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
    use Verdict::{HoldSingleCandidate, HoldUndecided, ScaleDown, ScaleUp, ScaleUpHeldDown};
    // Candidates, expired and undecided; faults 6, 30 and 33: the quotients are compared as Go
    // compares them.
    #[rustfmt::skip]
    let cases = [
        (0, 0, 0, 0.6, ScaleUp),
        (1, 0, 0, 0.6, ScaleUpHeldDown), (1, 1, 0, 0.6, HoldSingleCandidate), (1, 0, 1, 0.6, HoldSingleCandidate),
        (5, 3, 0, 0.6, ScaleDown), (5, 2, 0, 0.6, ScaleUp), (2, 1, 0, 0.5, ScaleDown), (10, 7, 0, 0.7, ScaleDown),
        (3, 2, 0, 2.0 / 3.0, ScaleDown), (100, 99, 0, 1.0, ScaleUp), (2, 0, 0, f64::MIN_POSITIVE, ScaleUp), (3, 2, 0, f64::NAN, ScaleUp),
        (5, 2, 1, 0.6, HoldUndecided), (5, 3, 2, 0.6, ScaleDown), (5, 1, 1, 0.6, ScaleUp),
    ];
    for (candidates, expired, undecided, fraction, verdict) in cases {
        let tally = Tally {
            candidates,
            expired,
            undecided,
        };
        assert_eq!(tally.verdict(fraction), verdict, "{tally:?} at {fraction}");
    }
}

proptest! {
    #[test]
    fn verdict_is_that_of_every_reading(
        valid in 0_usize..30, expired in 0_usize..30, undecided in 0_usize..30, fraction in 0.001..=1.0_f64,
    ) {
        let candidates = valid + expired + undecided;
        // The Go original's decision on decided leases, in its own arithmetic (rule 48); with one
        // candidate, D-20's.
        let decided = |expired: usize| match candidates {
            0 => Verdict::ScaleUp,
            1 if expired == 0 => Verdict::ScaleUpHeldDown,
            1 => Verdict::HoldSingleCandidate,
            _ if (expired as f64) / (candidates as f64) < fraction => Verdict::ScaleUp,
            _ => Verdict::ScaleDown,
        };
        let readings: Vec<Verdict> = (expired..=expired + undecided).map(decided).collect();
        let verdict = Tally { candidates, expired, undecided }.verdict(fraction);
        if readings.iter().all(|reading| *reading == readings[0]) {
            prop_assert_eq!(verdict, readings[0]);
        } else {
            prop_assert!(verdict.aim().is_none(), "{:?}", verdict);
        }
    }

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

#[test]
fn forged_label_is_no_zone() {
    let long = format!("pool=worker zone={}", "x".repeat(64));
    for (words, zone) in [
        ("pool=worker zone=eu-west-1a", "eu-west-1a"),
        // As if there were no label.
        (&*long, "worker"),
        ("pool=worker zone=scale_up:", "worker"),
        ("pool=worker zone=", "worker"),
        ("pool=worker zone=z\u{fc}rich", "worker"),
    ] {
        assert_eq!(NodeTraits::of(words).failure_zone(), Some(zone), "{words}");
    }
}
