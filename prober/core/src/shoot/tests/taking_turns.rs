//! D-50: replicas with different verdicts do not fight.

use super::*;

/// A standby that has protected, and whose leader brings all back at 140 s.
fn undone() -> Rig {
    let mut rig = Rig::standby().in_outage();
    rig.run(140.0);
    assert_eq!(rig.writes().len(), 2);
    for at in [MCM, KCM] {
        rig.others(at, |observed| *observed = running(1));
    }
    rig
}

#[test]
fn a_standby_takes_down_once_in_an_outage_what_a_leader_with_another_config_brings_back() {
    let mut rig = undone();
    rig.run(300.0);
    assert_eq!(rig.writes().len(), 2);
    rig.renewed();
    rig.run(330.0);
    rig.silent(405.0);
    rig.run(450.0);
    assert_eq!(
        rig.writes()[2..]
            .iter()
            .map(|write| write.1)
            .collect::<Vec<_>>(),
        [MCM, KCM],
        "the next outage is another"
    );
}

#[test]
fn hold_and_failed_probes_are_no_turn_of_the_verdict() {
    let mut rig = undone();
    rig.run(150.0);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.run(190.0);
    rig.api = Api::Answers;
    rig.run(300.0);
    let held = |(_, verdict): &(f64, Verdict)| *verdict == Verdict::HoldUndecided;
    assert!(
        rig.verdicts.iter().any(held) && rig.verdict() == Verdict::ScaleDown,
        "{:?}",
        rig.verdicts
    );
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn a_write_whose_answer_was_lost_is_the_one_of_its_turn() {
    let mut rig = Rig::standby().in_outage();
    rig.holds_writes = true;
    rig.run(132.0);
    rig.input(Input::Written(MCM, Err(Refusal::Timeout)));
    rig.holds_writes = false;
    rig.others(MCM, |observed| *observed = held("1"));
    rig.run(145.0);
    assert!(rig.seen(KCM).replicas == 0 && rig.seen(MCM).replicas == 0);
    let before = rig.writes().len();
    rig.others(MCM, |observed| *observed = running(1));
    rig.run(200.0);
    assert_eq!(rig.writes().len(), before);
}

#[test]
fn a_leader_is_bound_to_no_such_turn() {
    let mut rig = Rig::leader().in_outage();
    rig.run(140.0);
    rig.others(MCM, |observed| *observed = running(1));
    rig.run(140.5);
    rig.others(MCM, |observed| *observed = running(1));
    rig.run(150.0);
    assert_eq!(rig.writes().len(), 4);
}

#[test]
fn what_is_raised_with_its_marker_a_standby_takes_down_again_at_most_once_in_10_s() {
    let mut rig = Rig::standby().in_outage();
    rig.run(136.0);
    for second in 136..200 {
        rig.run(f64::from(second));
        if rig.seen(MCM).replicas == 0 {
            rig.others(MCM, |observed| observed.replicas = 1);
        }
    }
    let times: Vec<_> = rig
        .writes()
        .into_iter()
        .filter(|write| write.1 == MCM)
        .map(|write| write.0)
        .collect();
    assert!((5..=7).contains(&times.len()), "{times:?}");
    assert!(
        times.windows(2).all(|two| two[1] - two[0] >= 10.0),
        "{times:?}"
    );
}

#[test]
fn what_was_raised_with_its_marker_stays_up_if_nodes_renew_before_a_standby_may_write_again() {
    let mut rig = Rig::standby().in_outage();
    rig.env.leader_silent_from = Some(at(0.0));
    rig.run(136.0);
    let before = rig.writes().len();
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(139.0);
    rig.renewed_at_once();
    rig.run(OUTAGE + 10.1);
    assert_eq!(
        (rig.verdict(), rig.probes(139.1).len()),
        (Verdict::ScaleUp, 1)
    );
    assert_eq!(rig.writes().len(), before);
}

#[test]
fn what_others_raise_in_mid_outage_is_the_leaders_first() {
    let mut rig = Rig::standby().in_outage();
    rig.run(140.0);
    let before = rig.writes().len();
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(141.4);
    assert_eq!(rig.writes().len(), before, "the leader has 1.5 s");
    rig.others(MCM, |observed| observed.replicas = 0);
    rig.run(150.0);
    assert_eq!(rig.writes().len(), before, "and has acted");
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(151.6);
    assert_eq!(
        rig.writes().last().map(|write| write.1),
        Some(MCM),
        "or not"
    );
}

#[test]
fn what_others_raise_one_after_the_other_a_standby_takes_down_one_after_the_other() {
    let mut rig = Rig::standby().in_outage();
    rig.run(150.0);
    rig.others(KCM, |observed| observed.replicas = 1);
    rig.run(151.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(154.0);
    assert!(
        rig.seen(KCM).replicas == 0 && rig.seen(MCM).replicas == 0,
        "{:?}",
        rig.writes()
    );
}
