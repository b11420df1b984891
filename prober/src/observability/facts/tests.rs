use std::collections::BTreeSet;

use super::*;
use crate::seed::ClusterState;

#[test]
fn a_cluster_without_a_shoot_and_one_that_is_broken_say_so() {
    let state = |shoot| {
        ShootState::from(&ClusterState {
            uid: String::new(),
            seed: Default::default(),
            shoot,
            lifecycle: None,
            settings: Default::default(),
        })
    };
    assert_eq!(state(None), ShootState::NoShoot);
    let broken = state(Some(Err("spec: a number".into())));
    assert_eq!(<&str>::from(&broken), "unreadable");
    assert!(broken.meaning().contains("spec: a number"));
}

#[test]
fn each_verdict_has_a_meaning_of_its_own() {
    let verdicts = [
        Verdict::ScaleUp,
        Verdict::ScaleUpHeldDown,
        Verdict::ScaleDown,
        Verdict::HoldSingleCandidate,
        Verdict::HoldUndecided,
        Verdict::HoldNoMachines,
    ];
    let texts = verdicts.map(describe_verdict);
    let meanings: BTreeSet<_> = texts.iter().map(|text| text.split_once(": ")).collect();
    assert_eq!(meanings.len(), Verdict::WORDS.len());
}
