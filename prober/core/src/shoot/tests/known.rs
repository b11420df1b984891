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

/// Old evidence: a permit that comes so late, when the nodes are well since 141 s. A standby goes
/// by answers of the last 5 s.
#[test]
fn a_late_permit_takes_a_healthy_shoot_down_by_an_old_probe() {
    for (leads, today) in [(true, [true; 4]), (false, [true, false, false, false])] {
        let taken_down = [144.0, 147.0, 150.0, 157.0].map(|permitted| {
            let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
            rig.holds_permits = true;
            rig.run(141.0);
            rig.renewed_at_once();
            rig.run(permitted);
            rig.input(Input::Permitted(MCM));
            !rig.writes().is_empty()
        });
        known(&taken_down, &today, &[false; 4]);
    }
}

/// The same with an attempt of the leader that is not answered.
#[test]
fn a_second_attempt_takes_a_healthy_shoot_down_by_an_old_probe() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(141.0);
    rig.renewed_at_once();
    rig.run(147.0);
    rig.input(Input::Written(MCM, Err(Refusal::Timeout)));
    rig.run(150.0);
    known(&written(&rig, MCM, 0).len(), &2, &1);
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
