//! Timelines of what is known to be wrong. Each says what happens today and what must: a cure
//! makes it fail, and turns `known(is, today, must)` into `assert_eq!(is, must)` in the file of its
//! matter.

use std::fmt::Debug;

use super::*;

#[track_caller]
fn known<T: Debug + PartialEq>(is: &T, today: &T, must: &T) {
    assert_ne!(is, must, "cured: assert what must be");
    assert_eq!(is, today, "wrong in another way, and must be {must:?}");
}

/// The moments at which a dependent was written so.
fn written(rig: &Rig, dependent: DependentId, replicas: i32) -> Vec<f64> {
    let writes = rig.writes().into_iter();
    let wanted = writes.filter(|(_, at, to)| (*at, *to) == (dependent, Some(replicas)));
    wanted.map(|(when, ..)| when).collect()
}

/// A replica that starts in mid-outage, beside dependents with so many replicas.
fn started_in_mid_outage(leads: bool, dependent: Observed) -> Rig {
    let mut env = OwnedEnvironment { leads, ..two() };
    env.leader_silent_from = Some(at(1e6));
    env.dependents = vec![DependentState::Present(Arc::new(dependent)); 2];
    let mut rig = Rig::with(env);
    rig.silences = vec![(-35.0, f64::MAX)];
    rig
}

/// True if kube-controller-manager is up when the first node is marked, so long after its renewal.
fn is_up_when_marked(rig: &mut Rig, renewed: f64) -> bool {
    rig.run(renewed + 40.0);
    rig.seen(KCM).replicas > 0
}

/// D-69: a standby; its nodes renew once, between two of its probes, and are silent again. It gains
/// the lead when they have been silent for 41 s.
#[test]
fn a_renewal_that_was_not_seen_in_time_restores_in_mid_outage() {
    let restored = [57.0, 60.0, 63.0, 66.0, 69.0].map(|once| {
        let mut rig = started_in_mid_outage(false, held("1"));
        rig.run(once);
        rig.renewed_at = Some(once);
        rig.run(once + 41.0);
        rig.env.leads = true;
        rig.env.seed_since.up = Some(rig.now);
        rig.run(once + 60.0);
        !rig.writes().is_empty()
    });
    known(&restored, &[true, false, false, false, true], &[false; 5]);
}

/// D-69: the same with a leader, whose probes fail for so long after the renewal.
#[test]
fn a_renewal_that_was_not_seen_in_time_protects_too_late() {
    let up = [10.0, 12.0, 15.0, 20.0, 25.0].map(|failing| {
        let mut rig = started_in_mid_outage(true, running(1));
        rig.run(61.0);
        rig.renewed_at = Some(61.0);
        rig.api = Api::Fails(ProbeFailure::Other);
        rig.run(61.0 + failing);
        rig.api = Api::Answers;
        is_up_when_marked(&mut rig, 61.0)
    });
    known(&up, &[true; 5], &[false; 5]);
}

/// D-69: after an outage of an hour a lease that was renewed once more seems younger than it is.
#[test]
fn a_renewal_after_a_long_outage_seems_younger_and_protects_too_late() {
    let up = [8.0, 11.0, 14.0].map(|failing| {
        let mut rig = Rig::leader().in_outage();
        rig.run(3705.0);
        rig.renewed_at = Some(3705.0);
        rig.api = Api::Fails(ProbeFailure::Other);
        rig.run(3705.0 + failing);
        rig.api = Api::Answers;
        is_up_when_marked(&mut rig, 3705.0)
    });
    known(&up, &[false, true, true], &[false; 3]);
}

/// Five nodes, of which three are silent; one level is down.
fn between_two_levels(until: f64) -> Rig {
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines) = (5, machines(5));
    rig.pods_linger = true;
    rig.spared = 2;
    rig.silent(SILENT);
    rig.run(until);
    rig
}

/// D-73: most leases are valid again, as five probes show, and are only not proven.
#[test]
fn a_hold_for_want_of_proof_lets_the_next_level_go_down() {
    let mut rig = between_two_levels(131.0);
    rig.spared = 4;
    rig.run(150.0);
    known(&written(&rig, KCM, 0), &vec![135.401], &vec![]);
}

/// D-73: one of the silent nodes is deleted.
#[test]
fn a_silent_node_that_is_deleted_lets_the_next_level_go_down() {
    let mut rig = between_two_levels(132.0);
    (rig.nodes, rig.machines) = (4, machines(4));
    rig.run(150.0);
    known(&written(&rig, KCM, 0), &vec![135.401], &vec![]);
}

/// D-21: a start, clocks that are behind, and kubelets that are slow because their API server is:
/// renewals so far apart, and clocks so far off.
#[test]
fn a_start_takes_down_a_healthy_shoot_whose_clocks_are_behind_and_kubelets_slow() {
    let healthy = [
        (10.0, -60.0),
        (12.0, -60.0),
        (16.0, -60.0),
        (16.0, -25.0),
        (20.0, -12.0),
        (25.0, -9.0),
        (20.0, -5.0),
        (25.0, 0.0),
    ];
    let taken_down = healthy.map(|(beat, ahead)| {
        let mut rig = Rig::leader();
        (rig.beat, rig.ahead, rig.now) = (beat, ahead, at(3.0));
        let start = Start {
            eligible: rig.now,
            in_operation: true,
        };
        rig.shoot = Shoot::new(start, &rig.env.env(), rig.now);
        rig.run(300.0);
        !rig.writes().is_empty()
    });
    let today = [false, false, true, true, true, true, false, false];
    known(&taken_down, &today, &[false; 8]);
}

/// Old evidence: a permit that comes so late, when the nodes are well since 141 s.
#[test]
fn a_late_permit_takes_a_healthy_shoot_down_by_an_old_probe() {
    for leads in [true, false] {
        let taken_down = [144.0, 147.0, 150.0, 157.0].map(|permitted| {
            let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
            rig.holds_permits = true;
            rig.run(141.0);
            rig.renewed_at_once();
            rig.run(permitted);
            rig.input(Input::Permitted(MCM));
            !rig.writes().is_empty()
        });
        known(&taken_down, &[true; 4], &[false; 4]);
    }
}

/// The same with an attempt that is not answered.
#[test]
fn a_second_attempt_takes_a_healthy_shoot_down_by_an_old_probe() {
    for leads in [true, false] {
        let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
        rig.holds_writes = true;
        rig.run(141.0);
        rig.renewed_at_once();
        rig.run(147.0);
        rig.input(Input::Written(MCM, Err(Refusal::Timeout)));
        rig.run(150.0);
        known(&written(&rig, MCM, 0).len(), &2, &1);
    }
}

/// Somebody raises machine-controller-manager while the write of kube-controller-manager is
/// not answered.
#[test]
fn what_others_raise_stays_up_while_another_write_is_not_answered() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(131.0);
    let order = rig.orders()[0].clone();
    let actions = rig.write(&order);
    rig.follow(actions);
    rig.run(136.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(140.0);
    known(&written(&rig, MCM, 0).len(), &1, &2);
}

/// The same while a later level waits for its initialDelay.
#[test]
fn what_others_raise_stays_up_while_a_level_waits_for_its_delay() {
    let mut env = two();
    let config = Arc::make_mut(&mut env.config);
    config.dependents[KCM.0].scale_down.initial_delay = Duration::from_secs(120);
    let mut rig = Rig::with(env).in_outage();
    rig.run(140.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(145.0);
    known(&written(&rig, MCM, 0).len(), &1, &2);
}

/// Others take down what a restore has brought back, while a later level waits for its
/// initialDelay.
#[test]
fn what_others_take_down_stays_down_while_a_restore_waits() {
    let mut env = two();
    let config = Arc::make_mut(&mut env.config);
    config.dependents[MCM.0].scale_up.initial_delay = Duration::from_secs(30);
    let mut rig = Rig::with(env).in_outage();
    rig.run(200.0);
    rig.renewed();
    rig.run(205.0);
    rig.others(KCM, |observed| {
        *observed = Observed {
            uid: observed.uid.clone(),
            ..held("1")
        };
    });
    rig.run(228.0);
    known(&written(&rig, KCM, 1).len(), &1, &2);
}
