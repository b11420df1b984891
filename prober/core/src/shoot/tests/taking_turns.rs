//! D-50: replicas with different verdicts do not fight.

use super::*;

/// A standby that has protected, and whose leader brings all back at 10 s.
fn undone() -> Timeline {
    let mut standby = outage().standby();
    standby.until(10.0);
    assert_eq!(standby.scaled(), ALL_DOWN);
    standby.others(MCM, undo).others(KCM, undo);
    standby
}

#[test]
fn standby_takes_down_once_an_outage() {
    let mut standby = undone();
    standby.until(170.0);
    assert_eq!(standby.scaled(), ALL_DOWN);
    standby.nodes_back().until(200.0);
    standby.fall_silent(275.0).until(320.0);
    assert_eq!(standby.scaled()[2..], ALL_DOWN, "the next is another");
}

#[test]
fn hold_turns_no_verdict() {
    let mut standby = undone();
    standby.until(20.0);
    standby.api = FAILS;
    standby.until(60.0);
    standby.api = Api::Answers;
    standby.until(170.0);
    let mut verdicts = standby.verdicts.iter().map(|(_, verdict)| *verdict);
    assert!(verdicts.any(|verdict| verdict == Verdict::HoldUndecided));
    assert_eq!(standby.verdict(), Verdict::ScaleDown);
    assert_eq!(standby.scaled(), ALL_DOWN);
}

#[test]
fn unanswered_write_is_its_turn() {
    let mut standby = outage().standby().holds_writes();
    standby.until(2.0).refuse(MCM, Refusal::Timeout);
    standby.seed.holds_writes = false;
    standby.others(MCM, take_down).until(15.0);
    assert_eq!(standby.scaled(), ALL_DOWN);
    standby.others(MCM, undo).until(70.0);
    assert_eq!(standby.scaled(), ALL_DOWN);
}

#[test]
fn leader_takes_no_turns() {
    let mut leader = outage();
    leader.until(10.0).others(MCM, undo);
    leader.until(10.5).others(MCM, undo).until(20.0);
    assert_eq!(leader.scaled()[2..], [(MCM, 0), (MCM, 0)]);
}

#[test]
fn standby_takes_down_once_in_10_s() {
    let mut standby = outage().standby();
    for second in 6..70 {
        standby.until(f64::from(second));
        if standby.seen(MCM).replicas == 0 {
            standby.others(MCM, raise);
        }
    }
    let mut writes = standby.writes();
    writes.retain(|(_, id, _)| *id == MCM);
    let gaps = writes.windows(2).map(|two| two[1].0 - two[0].0);
    assert!((5..=7).contains(&writes.len()), "{writes:?}");
    assert!(gaps.into_iter().all(|gap| gap >= 10.0), "{writes:?}");
}

#[test]
fn renewals_stop_the_next_turn() {
    let mut standby = outage().standby();
    standby.env.leader_silent_from = Some(Moment::START);
    standby.until(6.0).others(MCM, raise);
    standby.until(9.0).nodes_back().until(10.1);
    assert_eq!(standby.verdict(), Verdict::ScaleUp);
    assert_eq!(standby.probes(9.1).len(), 1);
    assert_eq!(standby.scaled(), ALL_DOWN);
}

#[test]
fn raised_is_the_leaders_first() {
    let mut standby = outage().standby();
    standby.until(10.0).others(MCM, raise).until(9.9 + PATIENCE);
    assert_eq!(standby.scaled(), ALL_DOWN, "the leader has its time");
    standby.others(MCM, |mcm| mcm.replicas = 0).until(20.0);
    assert_eq!(standby.scaled(), ALL_DOWN, "and has acted");
    standby.others(MCM, raise).until(20.1 + PATIENCE);
    assert_eq!(standby.scaled()[2..], [(MCM, 0)], "or not");
}

#[test]
fn raised_one_by_one_goes_down() {
    let mut standby = outage().standby();
    standby.until(20.0).others(KCM, raise);
    standby.until(21.0).others(MCM, raise).until(24.0);
    assert_eq!(standby.scaled()[2..], [(KCM, 0), (MCM, 0)]);
}
