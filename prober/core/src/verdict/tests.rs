use proptest::prelude::*;

use super::super::lease::LeaseState::{Expired, Undecided, Valid};
use super::super::replicas::{Marks, Observed, scale_down, scale_up};
use super::*;
use crate::tests::scene::{JUDGED, at, book, criteria};

const UP: Verdict = Verdict::ScaleUp;

/// A node's traits: `foreign`, `pool=w1`, `zone=z`, `Ready=True`, `InPlaceUpdate=True/UpdateFailed`.
fn traits(words: &str) -> NodeTraits {
    let mut traits = NodeTraits::default();
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

fn node(name: &str, words: &str) -> NodeRecord {
    NodeRecord::new(name, traits(words))
}

fn backed<const N: usize>(nodes: [&str; N]) -> BackedNodes {
    nodes.into_iter().map(Some).collect()
}

fn tally(candidates: usize, expired: usize) -> Tally {
    Tally {
        candidates,
        expired,
        undecided: 0,
    }
}

const FOUR: [&str; 4] = ["n1", "n2", "n3", "n4"];

fn four_leases(states: [LeaseState; 4]) -> [(&'static str, LeaseState); 4] {
    std::array::from_fn(|at| (FOUR[at], states[at]))
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
        let traits = traits(words);
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
    assert_eq!(traits("Ready=False zone=z").conditions, []);
}

#[test]
fn lease_and_node_count_together() {
    // Faults 28 and 29
    let leases = book(four_leases([Valid, Expired, Expired, Expired]));
    let machines = backed(["n1", "n2", "n3", "n4", "n5"]);
    let nodes = ["n1", "n2", "n5"].map(|name| node(name, ""));
    let pools = PoolConditions::new();
    let candidates = Candidates::by_nodes(&leases, &machines, &nodes, &pools);
    assert_eq!(candidates.tally(criteria(at(JUDGED))), tally(2, 1));
    assert_eq!(
        candidates.excluded,
        BTreeMap::from([(Exclusion::NoNode, 2), (Exclusion::NoLease, 1)])
    );
}

#[test]
fn exclusions_have_reasons() {
    let leases = book(four_leases([Valid; 4]));
    let nodes = [
        node("n1", "foreign"),
        node("n2", "pool=w DiskPressure=True"),
        node("n3", "InPlaceUpdate=True/UpdateFailed"),
        node("n4", ""),
    ];
    let pools = PoolConditions::new();
    let machines = backed(["n1", "n2", "n3"]);
    let candidates = Candidates::by_nodes(&leases, &machines, &nodes, &pools);
    let reasons = [
        Exclusion::NoUsableMachine,
        Exclusion::NotManaged,
        Exclusion::UnhealthyCondition,
        Exclusion::InPlaceUpdate,
    ];
    assert_eq!(
        candidates.excluded,
        reasons.into_iter().map(|reason| (reason, 1)).collect()
    );
    assert!(candidates.leases.is_empty());
}

proptest! {
    #[test]
    fn machines_allow_what_they_back(
        leases in prop::collection::btree_set("[ab]{1,3}", 0..8),
        machines in prop::collection::vec("[ab]{1,3}", 0..8),
    ) {
        let book = book(leases.iter().map(|name| (name.as_str(), Valid)));
        let machines: BackedNodes = machines.iter().map(|name| Some(name.as_str())).collect();
        let allowed = Candidates::by_machines(&book, &machines);
        let (backed, others): (Vec<_>, Vec<_>) = leases.iter().map(String::as_str).partition(|name| position(&machines.nodes, |backed| backed, name, 0).is_some());
        prop_assert_eq!(allowed.leases.iter().map(|(name, _)| *name).collect::<Vec<_>>(), backed);
        prop_assert_eq!(allowed.excluded.values().sum::<usize>(), others.len());
    }
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
        (5, 3, 0, 0.6, ScaleDown), (5, 2, 0, 0.6, ScaleUp), (10, 6, 0, 0.6, ScaleDown), (10, 5, 0, 0.6, ScaleUp),
        (100, 60, 0, 0.6, ScaleDown), (100, 59, 0, 0.6, ScaleUp), (2, 1, 0, 0.6, ScaleUp), (2, 1, 0, 0.5, ScaleDown), (10, 7, 0, 0.7, ScaleDown),
        (3, 1, 0, 1.0 / 3.0, ScaleDown), (3, 2, 0, 2.0 / 3.0, ScaleDown), (100, 99, 0, 1.0, ScaleUp), (100, 100, 0, 1.0, ScaleDown),
        (2, 0, 0, f64::MIN_POSITIVE, ScaleUp), (3, 2, 0, f64::NAN, ScaleUp),
        (5, 2, 1, 0.6, HoldUndecided), (5, 3, 2, 0.6, ScaleDown), (5, 1, 1, 0.6, ScaleUp), (5, 0, 5, 0.6, HoldUndecided),
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

#[test]
fn nodes_are_listed_when_they_matter() {
    let cases = [
        (0, 0, true, false),
        (1, 0, true, true),
        (0, 1, true, true),
        (0, 0, false, true),
    ];
    for (expired, undecided, settled, matter) in cases {
        let allowed = Tally {
            candidates: 5,
            expired,
            undecided,
        };
        assert_eq!(nodes_matter(allowed, settled), matter, "{allowed:?}");
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
            0 => UP,
            1 if expired == 0 => Verdict::ScaleUpHeldDown,
            1 => Verdict::HoldSingleCandidate,
            _ if (expired as f64) / (candidates as f64) < fraction => UP,
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
        leases in prop::collection::btree_map(0_usize..8, prop_oneof![8 => Just(Valid), 1 => Just(Expired), 1 => Just(Undecided)], 0..8),
        machines in prop::collection::hash_set(0_usize..8, 0..8),
        nodes in prop::collection::btree_map(0_usize..8, (any::<bool>(), any::<bool>(), any::<bool>()), 0..8),
        dependents in prop::collection::vec(
            (prop_oneof![3 => Just(1), 1 => Just(0), 1 => Just(3)], any::<bool>(), any::<bool>(), prop::option::of("[0-9a-]{0,2}")), 1..4),
        only_held_down in any::<bool>(),
        fraction in 0.01..=1.0_f64,
    ) {
        let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
        let book = book(leases.iter().map(|(&number, &state)| (names[number].as_str(), state)));
        let machines: BackedNodes = machines.iter().map(|&number| Some(names[number].as_str())).collect();
        let nodes: Vec<NodeRecord> = nodes
            .iter()
            .map(|(&number, &traits)| {
                let (foreign, sick, updated) = traits;
                let words = [(foreign, "foreign"), (sick, "DiskPressure=True"), (updated, "InPlaceUpdate=True/UpdateFailed")];
                let words: Vec<_> = words.into_iter().filter_map(|(has, word)| has.then_some(word)).collect();
                node(&names[number], &words.join(" "))
            })
            .collect();
        let dependents: Vec<Observed> = dependents
            .into_iter()
            .map(|(replicas, marked, ignored, memory)| Observed {
                replicas,
                marks: Marks { replicas: memory, held_down: marked && replicas == 0, ignored },
                ..Observed::default()
            })
            .collect();

        let allowed = Candidates::by_machines(&book, &machines).tally(criteria(at(JUDGED)));
        let at_rest = dependents.iter().all(|dependent| scale_up(dependent, Scope::All, only_held_down).is_none());
        let pools = PoolConditions::new();
        let always = Candidates::by_nodes(&book, &machines, &nodes, &pools).tally(criteria(at(JUDGED)));
        if !nodes_matter(allowed, at_rest) {
            let writes = |verdict: Verdict| -> Vec<_> {
                let decide = |dependent: &Observed| match verdict.aim()? {
                    (Direction::Up, scope) => scale_up(dependent, scope, only_held_down),
                    (Direction::Down, _) => scale_down(dependent, true),
                };
                dependents.iter().map(decide).collect()
            };
            prop_assert_eq!(writes(allowed.verdict(fraction)), writes(always.verdict(fraction)));
        }
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
        assert_eq!(traits(words).failure_zone(), Some(zone), "{words}");
    }
}
