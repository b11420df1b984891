//! D-68, D-72: a write rests on a probe of the last seconds, and what others change on what is done
//! is done again.

use super::*;

/// The moments at which a dependent was written so.
fn written(rig: &Rig, dependent: DependentId, replicas: i32) -> Vec<f64> {
    let writes = rig.writes().into_iter();
    let wanted = writes.filter(|(_, at, to)| (*at, *to) == (dependent, Some(replicas)));
    wanted.map(|(when, ..)| when).collect()
}

// D-68: the nodes are well since 141 s.
#[test]
fn a_late_permit_rests_on_a_new_probe() {
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
        assert_eq!(taken_down, [false; 4], "leads {leads}");
    }
}

#[test]
fn a_second_attempt_rests_on_a_new_probe() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(141.0);
    rig.renewed_at_once();
    rig.run(147.0);
    rig.input(Input::Written(MCM, Err(Refusal::Timeout)));
    rig.run(150.0);
    assert_eq!(written(&rig, MCM, 0).len(), 1);
}

// D-72
#[test]
fn what_others_raise_goes_down_while_a_write_is_not_answered() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(131.0);
    let order = rig.orders()[0].clone();
    let actions = rig.write(&order);
    rig.follow(actions);
    rig.run(136.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(140.0);
    assert_eq!(written(&rig, MCM, 0).len(), 2);
}

#[test]
fn what_others_raise_goes_down_while_a_level_waits() {
    let mut env = two();
    let config = Arc::make_mut(&mut env.config);
    config.dependents[KCM.0].scale_down.initial_delay = Duration::from_secs(120);
    let mut rig = Rig::with(env).in_outage();
    rig.run(140.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(145.0);
    assert_eq!(written(&rig, MCM, 0).len(), 2);
}

#[test]
fn what_others_take_down_is_restored_while_a_level_waits() {
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
    assert_eq!(written(&rig, KCM, 1).len(), 2);
}
