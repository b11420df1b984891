//! Each requirement is needed: without it something goes wrong in a life.

use strum::VariantArray;

use super::{live, name, rows};
use crate::shoot::{Requirement, SWITCHED_OFF};
use crate::tests::scene::table;

/// The most lives that it may take.
const LIVES: u64 = 60;
/// Writes of this kind are counted apart from the wrong ones.
const IN_A_HOLD: &str = "in a hold";

/// The requirements, the row of chaos in which it is found that one is switched off, and words of
/// what goes wrong.
const FOUND_BY: &str = "
    owned | owner | though its owner is not known
    ours | the shoot moves | though it is elsewhere
    not_paused | pauses | though it is paused
    seed_current | blind to Clusters, the shoot moves | though the Clusters are not seen
    initial_delay | crashes | before initialDelay is over
    confirmed | plain | in a hold
    stabilized | stabilization | before the nodes renewed for long enough
    same_terms | lead flaps, slow | by a probe from before the lead, config or settings
    leader_had_its_turn | plain | before the leader had its time
    recent | restores queue, probes fail | in mid-outage
    unchanged | edits | by a probe from before the resource was seen so
    not_repeated | writes refused | scales again and again
    nodes_seen | answers take 2 to 12 s | in mid-outage
    seed_verified | nobody leads, stale views, pauses | though the seed says otherwise
";

fn is_found(requirement: Requirement) -> bool {
    let of = |[one, ..]: &[&str; 3]| *one == requirement.into_str();
    let [_, wanted, words] = table(FOUND_BY).find(of).expect("a row of each");
    let (row, _) = rows().find(|(row, _)| name(row) == wanted).expect(wanted);
    SWITCHED_OFF.set(Some(requirement));
    let found = (0..LIVES).map(|seed| live(row, seed)).any(|life| {
        life.wrong.iter().any(|wrong| wrong.contains(words))
            || words == IN_A_HOLD && life.in_a_hold > 0
    });
    SWITCHED_OFF.set(None);
    found
}

#[test]
fn each_requirement_switched_off_is_found() {
    let missed = Requirement::VARIANTS.iter().filter(|&&row| !is_found(row));
    assert_eq!(missed.collect::<Vec<_>>(), [&Requirement::Owned; 0]);
}
