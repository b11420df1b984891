//! D-51 and D-54: what is probed and written how soon after a start.

use super::*;

fn start(in_operation: bool, env: OwnedEnvironment) -> Rig {
    Rig::starting(
        Start {
            eligible: Moment::START,
            in_operation,
        },
        env,
    )
}

fn all_held_down() -> OwnedEnvironment {
    let mut env = two();
    env.dependents = vec![DependentState::Present(Arc::new(held("1"))); 2];
    env
}

#[test]
fn a_shoot_in_operation_is_protected_as_soon_as_its_nodes_could_have_renewed() {
    let mut rig = start(true, two());
    rig.silent(-50.0);
    rig.run(100.0);
    // A beat of 10 s and a second after the first probe.
    assert_eq!(
        rig.writes(),
        [(11.001, MCM, Some(0)), (11.001, KCM, Some(0))]
    );
}

#[test]
fn a_shoot_that_just_became_probeable_is_protected_from_the_end_of_the_initial_delay_on() {
    let mut rig = start(false, two());
    rig.silent(-50.0);
    rig.run(100.0);
    assert!(
        rig.verdicts
            .iter()
            .any(|(when, verdict)| *when < 20.0 && *verdict == Verdict::ScaleDown),
        "{:?}",
        rig.verdicts
    );
    assert_eq!(rig.writes(), [(30.0, MCM, Some(0)), (30.0, KCM, Some(0))]);
}

#[test]
fn nothing_is_restored_before_the_end_of_the_initial_delay() {
    for in_operation in [true, false] {
        let mut rig = start(in_operation, all_held_down());
        rig.run(29.9);
        assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleUp, vec![]));
        rig.run(40.0);
        assert_eq!(rig.writes()[0], (30.0, KCM, Some(1)));
    }
}

#[test]
fn first_probes_are_spread() {
    let first = |in_operation, env: OwnedEnvironment| {
        let mut rig = start(in_operation, OwnedEnvironment { chance: 0.5, ..env });
        rig.run(20.0);
        rig.probes(0.0)[0]
    };
    assert_eq!(first(true, two()), 0.5, "over the spread");
    assert_eq!(first(false, two()), 7.5, "over half of the initial delay");
}

#[test]
fn a_replica_that_gains_the_lead_before_its_first_probes_still_spreads_them() {
    let mut env = OwnedEnvironment {
        chance: 0.5,
        leads: false,
        ..two()
    };
    Arc::make_mut(&mut env.config).probe_interval = Duration::from_secs(1);
    let mut rig = start(false, env);
    rig.run(0.1);
    rig.env.leads = true;
    rig.input(Input::Woken);
    rig.run(20.0);
    assert_eq!(rig.probes(0.0)[0], 7.5);
}

#[test]
fn an_api_server_that_asks_for_time_gets_it_before_anything_else() {
    // Whatever is urgent: no probe was complete yet, initialDelay ends at 30 s, and settings may
    // have changed since.
    for (asked_ms, changed, second) in [
        (10_000, false, 10.0),
        (10_000, true, 10.0),
        (45_000, true, 45.0),
        (500, true, 0.5),
        (500, false, 1.0),
    ] {
        let mut rig = start(false, two());
        rig.api = Api::Fails(ProbeFailure::Throttled(Some(TimeDelta::milliseconds(
            asked_ms,
        ))));
        rig.run(0.2);
        if changed {
            rig.settings_changed();
        }
        assert_eq!(
            rig.shoot.due(),
            at(second),
            "{asked_ms} ms, settings changed: {changed}"
        );
        rig.run(50.0);
        assert_eq!(
            rig.probes(0.0)[..2],
            [0.0, second],
            "{asked_ms} ms, settings changed: {changed}"
        );
    }
}
