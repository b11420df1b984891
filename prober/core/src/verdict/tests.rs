use proptest::prelude::*;

use super::super::lease::LeaseState::{Expired, Undecided, Valid};
use super::super::replicas::{Marks, Observed, scale_down, scale_up};
use super::*;
use crate::tests::scene::{JUDGED, at, book, criteria};

const FRACTION: f64 = 0.6;
const UP: Verdict = Verdict::ScaleUp;

fn node(name: &str) -> NodeRecord {
    NodeRecord::new(name, NodeTraits::default())
}

fn foreign(name: &str) -> NodeRecord {
    let traits = NodeTraits {
        not_managed_by_mcm: true,
        ..NodeTraits::default()
    };
    NodeRecord::new(name, traits)
}

fn with_conditions(name: &str, conditions: Vec<NodeCondition>) -> NodeRecord {
    let traits = NodeTraits {
        conditions,
        ..NodeTraits::default()
    };
    NodeRecord::new(name, traits)
}

fn in_pool(name: &str, pool: &str, conditions: &[(&str, &str)]) -> NodeRecord {
    let conditions = conditions
        .iter()
        .map(|(kind, status)| condition(kind, status, ""))
        .collect();
    let traits = NodeTraits {
        pool: Some(pool.to_owned()),
        conditions,
        ..NodeTraits::default()
    };
    NodeRecord::new(name, traits)
}

fn condition(kind: &str, status: &str, reason: &str) -> NodeCondition {
    NodeCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
    }
}

fn updating(name: &str, reason: &str) -> NodeRecord {
    with_conditions(name, vec![condition("InPlaceUpdate", "True", reason)])
}

fn backed<const N: usize>(nodes: [&str; N]) -> BackedNodes {
    nodes.into_iter().map(Some).collect()
}

/// Judges these leases, nodes and pools with all of `machines` usable.
fn judge(
    leases: &[(&str, LeaseState)],
    machines: &[&str],
    nodes: &[NodeRecord],
    pools: &PoolConditions,
) -> (Tally, Verdict) {
    let book = book(leases.iter().copied());
    let machines = machines.iter().copied().map(Some).collect();
    let tally = Candidates::by_nodes(&book, &machines, nodes, pools).tally(criteria(at(JUDGED)));
    (tally, tally.verdict(FRACTION))
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
fn only_nodes_that_count_are_judged() {
    let updated = [
        updating("n1", "ReadyForUpdate"),
        updating("n2", "UpdateFailed"),
        updating("n3", "CandidateForUpdate"),
        node("n4"),
    ];
    let others = [foreign("n1"), foreign("n2"), foreign("n3"), node("n4")];
    let pools = PoolConditions::from([(
        "w1".to_owned(),
        vec!["DiskPressure".to_owned(), "MemoryPressure".to_owned()],
    )]);
    let pooled = [
        in_pool("n1", "w1", &[("DiskPressure", "True")]),
        in_pool("n2", "w1", &[("MemoryPressure", "True")]),
        in_pool("n3", "w2", &[("MemoryPressure", "True")]),
        in_pool("n4", "w2", &[]),
    ];
    let usual = FOUR.map(node);
    let (all, two) = (&FOUR[..], &FOUR[2..]);
    let (e, v) = (Expired, Valid);
    #[rustfmt::skip]
    let cases = [
        ("others manage three", [e; 4], all, &others, tally(1, 1), Verdict::HoldSingleCandidate),
        ("two have a usable Machine", [e, e, v, e], two, &usual, tally(2, 1), UP),
        ("two have a usable Machine", [v, v, e, e], two, &usual, tally(2, 2), Verdict::ScaleDown),
        ("each pool has its conditions", [e, e, v, e], all, &pooled, tally(2, 1), UP),
        ("two are updated", [e, e, v, v], all, &updated, tally(2, 0), UP),
        ("two are updated", [v, v, e, e], all, &updated, tally(2, 2), Verdict::ScaleDown),
    ];
    for (what, leases, machines, nodes, counted, verdict) in cases {
        let judged = judge(&four_leases(leases), machines, nodes, &pools);
        assert_eq!(judged, (counted, verdict), "{what}");
    }
}

#[test]
fn annotation_and_label_of_a_node() {
    let mut node = NodeTraits::default();
    for key in [
        "zone",
        "worker.gardener.cloud/pool",
        "worker.gardener.cloud/pool-hash",
    ] {
        node.note_label(key, &format!("value of {key}"));
    }
    assert_eq!(
        node.pool.as_deref(),
        Some("value of worker.gardener.cloud/pool")
    );
    node.note_annotation("another");
    assert!(!node.not_managed_by_mcm);
    node.note_annotation("node.machine.sapcloud.io/not-managed-by-mcm");
    node.note_annotation("yet-another");
    assert!(node.not_managed_by_mcm);
}

#[test]
fn relevant_conditions_are_kept() {
    let mut node = NodeTraits::default();
    for (kind, status) in [
        ("Ready", "True"),
        ("DiskPressure", "False"),
        ("InPlaceUpdate", "False"),
        ("Ready", "Unknown"),
    ] {
        node.note_condition(NodeCondition {
            kind,
            status,
            reason: "R",
        });
    }
    assert_eq!(
        node.conditions,
        [
            condition("Ready", "True", "R"),
            condition("InPlaceUpdate", "False", "R")
        ]
    );
}

#[test]
fn pool_replaces_default_conditions() {
    let pools = PoolConditions::from([("w1".to_owned(), vec!["PIDPressure".to_owned()])]);
    assert_eq!(
        exclusion(
            &in_pool("n", "w1", &[("DiskPressure", "True")]).traits,
            true,
            &pools
        ),
        None
    );
    assert_eq!(
        exclusion(
            &in_pool("n", "w1", &[("PIDPressure", "True")]).traits,
            true,
            &pools
        ),
        Some(Exclusion::UnhealthyCondition)
    );
}

#[test]
fn default_conditions_exclude() {
    let pools = PoolConditions::new();
    for kind in [
        "KernelDeadlock",
        "ReadonlyFilesystem",
        "DiskPressure",
        "NetworkUnavailable",
    ] {
        for (status, excluded) in [
            ("True", true),
            ("False", false),
            ("Unknown", false),
            ("true", false),
            ("", false),
        ] {
            let found = exclusion(&in_pool("n", "any", &[(kind, status)]).traits, true, &pools);
            assert_eq!(
                found,
                excluded.then_some(Exclusion::UnhealthyCondition),
                "{kind} {status:?}"
            );
        }
    }
    for kind in ["MemoryPressure", "PIDPressure", "Ready", "diskpressure"] {
        assert_eq!(
            exclusion(&in_pool("n", "any", &[(kind, "True")]).traits, true, &pools),
            None,
            "{kind}"
        );
    }
}

#[test]
fn update_counts_by_its_reason() {
    let pools = PoolConditions::new();
    for status in ["True", "False", "Unknown", ""] {
        let conditions = vec![condition("InPlaceUpdate", status, "UpdateFailed")];
        let node = with_conditions("n", conditions);
        assert_eq!(
            exclusion(&node.traits, true, &pools),
            Some(Exclusion::InPlaceUpdate),
            "{status:?}"
        );
    }
    let other = with_conditions("n", vec![condition("Ready", "True", "ReadyForUpdate")]);
    assert_eq!(exclusion(&other.traits, true, &pools), None);
}

#[test]
fn lease_and_node_count_together() {
    // Faults 28 and 29
    let leases = book(four_leases([Valid, Expired, Expired, Expired]));
    let machines = backed(["n1", "n2", "n3", "n4", "n5"]);
    let nodes = [node("n1"), node("n2"), node("n5")];
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
        foreign("n1"),
        in_pool("n2", "w", &[("DiskPressure", "True")]),
        updating("n3", "UpdateFailed"),
        node("n4"),
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

#[test]
fn machines_bound_the_candidates() {
    let leases = book(four_leases([Valid, Expired, Undecided, Expired]));
    let allowed = Candidates::by_machines(&leases, &backed(["n1", "n2", "n3", "n9"]));
    assert_eq!(
        allowed.tally(criteria(at(JUDGED))),
        Tally {
            candidates: 3,
            expired: 1,
            undecided: 1
        }
    );
    assert_eq!(
        allowed.excluded,
        BTreeMap::from([(Exclusion::NoUsableMachine, 1)])
    );
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
fn two_thousand_nodes_count_once() {
    // The benchmarks measure the time it takes.
    let names: Vec<String> = (0..2000).map(|number| format!("node-{number}")).collect();
    let state = |number: usize| if number < 1200 { Expired } else { Valid };
    let leases = book(
        names
            .iter()
            .enumerate()
            .map(|(number, name)| (name.as_str(), state(number))),
    );
    let nodes: Vec<NodeRecord> = names.iter().map(|name| node(name)).collect();
    let machines = names.iter().map(|name| Some(name.as_str())).collect();
    let pools = PoolConditions::new();
    let tally =
        Candidates::by_nodes(&leases, &machines, &nodes, &pools).tally(criteria(at(JUDGED)));
    assert_eq!(
        (tally.candidates, tally.expired, tally.verdict(FRACTION)),
        (2000, 1200, Verdict::ScaleDown)
    );
}

#[test]
fn one_candidate_never_scales_down() {
    // D-20
    assert_eq!(tally(1, 0).verdict(FRACTION), Verdict::ScaleUpHeldDown);
    assert_eq!(tally(1, 1).verdict(FRACTION), Verdict::HoldSingleCandidate);
    let undecided = Tally {
        candidates: 1,
        expired: 0,
        undecided: 1,
    };
    assert_eq!(undecided.verdict(FRACTION), Verdict::HoldSingleCandidate);
}

#[test]
fn no_candidate_scales_up() {
    let judged = judge(&[], &["n1"], &[node("n1")], &PoolConditions::new());
    assert_eq!(judged, (tally(0, 0), UP));
}

#[test]
fn fraction_itself_means_an_outage() {
    // Fault 33: the quotients are compared as Go compares them.
    for (expired, candidates, fraction, fails_) in [
        (3, 5, 0.6, true),
        (2, 5, 0.6, false),
        (6, 10, 0.6, true),
        (5, 10, 0.6, false),
        (60, 100, 0.6, true),
        (59, 100, 0.6, false),
        (1, 2, 0.6, false),
        (1, 2, 0.5, true),
        (7, 10, 0.7, true),
        (1, 3, 1.0 / 3.0, true),
        (2, 3, 2.0 / 3.0, true),
        (99, 100, 1.0, false),
        (100, 100, 1.0, true),
        (0, 2, f64::MIN_POSITIVE, false),
        (2, 3, f64::NAN, false),
    ] {
        assert_eq!(
            fails(expired, candidates, fraction),
            fails_,
            "{expired} of {candidates} at {fraction}"
        );
        let verdict = if fails_ { Verdict::ScaleDown } else { UP };
        assert_eq!(
            tally(candidates, expired).verdict(fraction),
            verdict,
            "{expired} of {candidates} at {fraction}"
        );
    }
}

#[test]
fn undecided_leases_hold() {
    let verdict = |expired, undecided, candidates| {
        Tally {
            candidates,
            expired,
            undecided,
        }
        .verdict(FRACTION)
    };
    assert_eq!(
        verdict(2, 1, 5),
        Verdict::HoldUndecided,
        "3 of 5 if it is expired, 2 of 5 if it is not"
    );
    assert_eq!(verdict(3, 2, 5), Verdict::ScaleDown, "down in any case");
    assert_eq!(verdict(1, 1, 5), UP, "up in any case");
    assert_eq!(
        verdict(0, 5, 5),
        Verdict::HoldUndecided,
        "a start in mid-outage concludes nothing"
    );
}

#[test]
fn nodes_are_listed_when_they_matter() {
    let allowed = |expired, undecided| Tally {
        candidates: 5,
        expired,
        undecided,
    };
    assert!(!nodes_matter(allowed(0, 0), true));
    assert!(nodes_matter(allowed(1, 0), true));
    assert!(nodes_matter(allowed(0, 1), true));
    assert!(nodes_matter(allowed(0, 0), false));
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
            .map(|(&number, &(not_managed_by_mcm, sick, updated))| {
                let sick = sick.then(|| condition("DiskPressure", "True", ""));
                let updated = updated.then(|| condition("InPlaceUpdate", "True", "UpdateFailed"));
                let conditions = sick.into_iter().chain(updated).collect();
                NodeRecord::new(&names[number], NodeTraits { not_managed_by_mcm, conditions, ..NodeTraits::default() })
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
    let in_pool = || NodeTraits {
        pool: Some("worker".to_owned()),
        ..NodeTraits::default()
    };
    let named = |name: &str| {
        let traits = NodeTraits {
            zone: Some(name.to_owned()),
            ..in_pool()
        };
        traits.failure_zone().map(str::to_owned)
    };
    assert_eq!(named("eu-west-1a").as_deref(), Some("eu-west-1a"));
    for forged in [&"x".repeat(64), "a\nVerdict: scale_up", "", "zürich"] {
        assert_eq!(
            named(forged).as_deref(),
            Some("worker"),
            "{forged:?}: as if there were no label"
        );
    }
    let mut traits = in_pool();
    traits.note_label("topology.kubernetes.io/zone", "");
    assert_eq!(
        traits.failure_zone(),
        Some("worker"),
        "as if there were no label"
    );
}
