//! Each reason to wait is needed, and the oracle knows why: without it something goes wrong in a life.
//! What no life shows the stories of a shoot do: order, what others undo, and permits.

use strum::VariantArray;

use super::{live, name, rows};
use crate::shoot::{Reason, SWITCHED_OFF};
use crate::tests::scene::table;

/// The most lives that it may take.
const LIVES: u64 = 60;

/// The reasons, the row of chaos in which it is found that one is switched off, and words of
/// what goes wrong.
const FOUND_BY: &str = "
    not_ours | the shoot moves | though it is elsewhere
    not_owned | owner | though its owner is not known
    paused | pauses | though it is paused
    seed_unseen | blind, the shoot moves | though the Clusters are not seen
    initial_delay | crashes | before initialDelay is over
    terms | lead flaps, slow | by a probe from before the lead, config or settings
    stabilization | stabilization | before the nodes renewed for long enough
    leader | plain | before the leader had its time
    backoff | writes refused | fails again and again
    changed | edits | by a probe from before the resource was seen so
    answer | restores queue, probes fail | in mid-outage
";

fn is_found(reason: Reason) -> bool {
    let of = |[one, ..]: &[&str; 3]| *one == reason.into_str();
    let Some([_, wanted, words]) = table(FOUND_BY).find(of) else {
        return false;
    };
    let (row, _) = rows().find(|(row, _)| name(row) == wanted).expect(wanted);
    SWITCHED_OFF.set(Some(reason));
    let mut lives = (0..LIVES).map(|seed| live(row, seed));
    let found = lives.any(|life| life.wrong.iter().any(|wrong| wrong.contains(words)));
    SWITCHED_OFF.set(None);
    found
}

#[test]
fn each_reason_switched_off_is_found() {
    let missed = Reason::VARIANTS.iter().filter(|&&reason| !is_found(reason));
    let shown_by_rows = [&Reason::Order, &Reason::Undone, &Reason::Permit];
    assert_eq!(missed.collect::<Vec<_>>(), shown_by_rows);
}
