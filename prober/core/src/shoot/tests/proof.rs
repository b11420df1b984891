//! D-59, D-60: nothing is brought back that was not seen renewed, and nothing is marked that was
//! never held down.

use super::*;

/// A replica that leads and starts beside what is held down, in mid-outage, with nodes whose clocks
/// are ahead.
fn restarted_with_clocks_ahead(ahead: f64) -> Rig {
    let mut env = two();
    env.dependents = vec![DependentState::Present(Arc::new(held("1"))); 2];
    let mut rig = Rig::with(env);
    rig.ahead = ahead;
    rig.silent(-60.0);
    rig
}

#[test]
fn a_stamp_from_the_future_brings_nothing_back_in_mid_outage() {
    for ahead in [0.0, 31.0, 60.0, 600.0] {
        let mut rig = restarted_with_clocks_ahead(ahead);
        rig.run(700.0);
        assert_eq!(rig.writes(), [], "{ahead} s ahead");
        rig.renewed();
        rig.run(720.0);
        assert_eq!(
            rig.writes().len(),
            2,
            "{ahead} s ahead: brought back once they renew"
        );
    }
}

#[test]
fn a_longer_grace_brings_nothing_back_in_mid_outage() {
    let mut rig = Rig::leader().in_outage();
    rig.run(150.0);
    assert_eq!(rig.writes().len(), 2);
    rig.env.settings.node_monitor_grace = Some(TimeDelta::minutes(10));
    rig.settings_changed();
    rig.run(300.0);
    assert_eq!(
        (rig.verdict(), rig.writes().len()),
        (Verdict::HoldUndecided, 2)
    );
    rig.renewed();
    rig.run(320.0);
    assert_eq!(rig.writes().len(), 4);
}

#[test]
fn nodes_that_no_longer_count_bring_nothing_back_and_those_that_renew_do() {
    let mut rig = Rig::leader().in_outage();
    rig.run(140.0);
    rig.excluded = Some(NodeCondition {
        kind: "NetworkUnavailable",
        status: "True",
        reason: "NoRouteCreated",
    });
    rig.run(170.0);
    assert_eq!(
        (rig.verdict(), rig.writes().len()),
        (Verdict::HoldUndecided, 2)
    );
    rig.renewed();
    rig.run(190.0);
    assert_eq!(rig.writes().len(), 4);
}

#[test]
fn what_is_held_down_comes_back_without_machines_once_nodes_are_seen_to_renew() {
    let mut rig = Rig::leader().in_outage();
    rig.run(140.0);
    rig.machines = Arc::default();
    rig.run(170.0);
    assert_eq!(
        (rig.verdict(), rig.writes().len()),
        (Verdict::HoldNoMachines, 2)
    );
    rig.renewed();
    rig.run(190.0);
    assert_eq!(
        (rig.verdict(), rig.writes().len()),
        (Verdict::HoldNoMachines, 4)
    );
}

#[test]
fn what_operators_took_to_0_is_not_marked_for_the_memory_that_it_carries() {
    let stopped = Observed {
        marks: Marks {
            held_down: false,
            ..held("2").marks
        },
        ..held("2")
    };
    let mut env = two();
    env.dependents = vec![
        DependentState::Present(Arc::new(stopped)),
        DependentState::Present(Arc::new(running(1))),
    ];
    env.options.restore_only_held_down.value = true;
    let mut rig = Rig::with(env).in_outage();
    rig.run(150.0);
    assert_eq!(rig.writes(), [(OUTAGE, KCM, Some(0))]);
}

#[test]
fn a_marker_that_was_seen_on_what_is_at_0_is_set_again() {
    let mut rig = Rig::leader().in_outage();
    rig.run(140.0);
    rig.others(MCM, |observed| observed.marks.held_down = false);
    rig.run(150.0);
    assert_eq!(
        (rig.writes()[2].1, rig.seen(MCM).marks),
        (MCM, held("1").marks)
    );
}

#[test]
fn what_was_gone_once_is_scaled_again_when_it_is_shown_in_a_newer_state() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.show(KCM, |observed| observed.marks.ignored = true);
    rig.run(131.0);
    rig.input(Input::Written(MCM, Err(Refusal::NotFound)));
    rig.run(135.0);
    assert_eq!(rig.orders().len(), 1, "the view may lag");
    rig.others(MCM, |observed| observed.replicas = 3);
    rig.run(150.0);
    assert_eq!(rig.orders().len(), 2);
}

#[test]
fn a_marker_that_a_read_shows_wants_renewals_after_it_too() {
    let mut rig = Rig::leader().in_outage();
    (rig.view_lags, rig.holds_writes) = (true, true);
    rig.show(KCM, |observed| observed.marks.ignored = true);
    rig.run(OUTAGE);
    // Another replica was first; the view does not show it yet.
    rig.show(MCM, |observed| {
        *observed = Observed {
            ready: 0,
            ..held("1")
        }
    });
    rig.input(Input::Written(MCM, Err(Refusal::Conflict)));
    rig.env.settings.node_monitor_grace = Some(TimeDelta::minutes(10));
    rig.settings_changed();
    rig.run(200.0);
    assert_eq!(rig.orders().len(), 1);
    assert_eq!(rig.verdict(), Verdict::HoldUndecided);
}

#[test]
fn a_resource_that_was_made_again_before_the_answer_that_it_was_gone_is_scaled() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.show(KCM, |observed| observed.marks.ignored = true);
    rig.run(131.0);
    rig.others(MCM, |observed| observed.uid = "another".into());
    rig.input(Input::Written(MCM, Err(Refusal::NotFound)));
    rig.run(140.0);
    assert_eq!(rig.orders().len(), 2);
}
