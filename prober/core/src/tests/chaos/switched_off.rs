//! Each requirement is needed: without it something goes wrong in a life.

use strum::VariantArray;

use super::{ROWS, RowOutcome};
use crate::shoot::{Requirement, SWITCHED_OFF};

/// The most lives that it may take.
const LIVES: u64 = 60;
/// Writes of this kind are counted apart from the wrong ones.
const IN_A_HOLD: &str = "a write in a hold";

/// The row of chaos in which it is found that a requirement is switched off, and words of what goes wrong.
const fn found_by(requirement: Requirement) -> (&'static str, &'static str) {
    match requirement {
        Requirement::Owned => ("owner", "though its owner is not known"),
        Requirement::Ours => ("the shoot moves", "though it is elsewhere"),
        Requirement::NotPaused => ("pauses", "though it is paused"),
        Requirement::SeedCurrent => (
            "blind to Clusters, the shoot moves",
            "though the Clusters are not seen",
        ),
        Requirement::InitialDelay => ("crashes", "before initialDelay is over"),
        Requirement::Confirmed => ("plain", IN_A_HOLD),
        Requirement::Stabilized => ("stabilization", "before the nodes renewed for long enough"),
        Requirement::SameTerms => (
            "lead flaps, slow",
            "by a probe from before the lead, config or settings",
        ),
        Requirement::LeaderHadItsTurn => ("plain", "before the leader had its time"),
        Requirement::Recent => ("restores queue, probes fail", "in mid-outage"),
        Requirement::Unchanged => ("edits", "by a probe from before the resource was seen so"),
        Requirement::NotRepeated => ("writes refused", "scales again and again"),
        Requirement::NodesSeen => ("answers take 2 to 12 s", "in mid-outage"),
        Requirement::SeedVerified => (
            "nobody leads, stale views, pauses",
            "though the seed says otherwise",
        ),
    }
}

fn is_found(requirement: Requirement) -> bool {
    let (name, words) = found_by(requirement);
    let row = ROWS
        .iter()
        .find(|row| super::name(row) == name)
        .expect(name);
    SWITCHED_OFF.set(Some(requirement));
    let found = (0..LIVES).any(|seed| {
        let outcome = RowOutcome::of(row, seed..seed + 1);
        let mut wrong = outcome.wrong.iter().flat_map(|life| &life.wrong);
        wrong.any(|wrong| wrong.contains(words)) || words == IN_A_HOLD && outcome.in_a_hold > 0
    });
    SWITCHED_OFF.set(None);
    found
}

#[test]
fn each_requirement_switched_off_is_found() {
    let missed = Requirement::VARIANTS.iter().filter(|&&row| !is_found(row));
    assert_eq!(missed.collect::<Vec<_>>(), [&Requirement::Owned; 0]);
}
