//! What operators stop: the pause, known and unknown.

use super::*;

/// A shoot that gives its nodes up after 3 s, in an outage; it is not known whether it is paused.
fn hasty(leads: bool) -> Rig {
    let mut env = OwnedEnvironment {
        leads,
        paused: None,
        ..two()
    };
    env.settings.node_monitor_grace = Some(TimeDelta::seconds(3));
    let mut rig = Rig::with(env);
    rig.lease_seconds = 3;
    rig.silent(-50.0);
    rig
}

#[test]
fn while_a_pause_is_unknown_the_leader_protects() {
    let mut rig = hasty(true);
    rig.run(10.0);
    assert_eq!(rig.writes()[0].1, MCM);
}

#[test]
fn while_a_pause_is_unknown_a_standby_does_nothing() {
    let mut rig = hasty(false);
    rig.run(60.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleDown, vec![]));
    assert_eq!(rig.when(&Action::Verify, 0.0), [0.0; 0]);
    rig.env.paused = Some(false);
    rig.run(62.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn while_a_pause_is_unknown_restores_wait() {
    let mut env = OwnedEnvironment {
        paused: None,
        ..two()
    };
    env.dependents = vec![DependentState::Present(Arc::new(held("1"))); 2];
    let mut rig = Rig::with(env);
    rig.run(100.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleUp, vec![]));
    rig.env.paused = Some(false);
    rig.run(101.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn a_pause_that_was_read_holds_while_the_namespaces_are_out_of_sight() {
    let mut rig = Rig::leader().in_outage();
    rig.env.paused = Some(true);
    rig.run(140.0);
    rig.env.paused = None;
    rig.run(200.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleDown, vec![]));
    rig.env.paused = Some(false);
    rig.run(201.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn a_pause_abandons_what_is_under_way_before_it_is_written() {
    for written in [false, true] {
        let mut rig = Rig::leader().in_outage();
        (rig.holds_permits, rig.holds_writes) = (!written, written);
        rig.run(131.0);
        rig.env.paused = Some(true);
        rig.run(150.0);
        assert_eq!(rig.when(&Action::Cancel(MCM), 0.0), [131.0]);
        assert!(rig.reported(&Report::Abandoned(Direction::Down)));
        assert_eq!(rig.writes().len(), usize::from(written));
        rig.input(Input::Permitted(MCM));
        assert_eq!(
            rig.writes().len(),
            usize::from(written),
            "a permit that comes too late is given back"
        );
        assert_eq!(rig.shoot.scaling(), None);
    }
}

#[test]
fn a_cluster_that_does_not_want_the_probe_any_more_abandons_what_is_under_way() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_permits = true;
    rig.run(131.0);
    rig.env.is_ours = false;
    rig.run(150.0);
    assert_eq!(
        (rig.when(&Action::Cancel(MCM), 0.0), rig.writes()),
        (vec![131.0], vec![])
    );
}

#[test]
fn what_a_dry_run_would_write_is_known_by_name_whatever_a_reload_drops() {
    let start = Start {
        eligible: Moment::START,
        in_operation: false,
    };
    let mut rig = Rig::starting(
        start,
        OwnedEnvironment {
            dry_run: true,
            ..two()
        },
    )
    .in_outage();
    rig.run(131.0);
    // Until the end of the longer delay it is not decided again.
    rig.env.dependents.remove(KCM.0);
    let config = Arc::make_mut(&mut rig.env.config);
    config.dependents.remove(KCM.0);
    config.initial_delay = Duration::from_secs(300);
    rig.reloaded();
    let names: Vec<_> = rig
        .shoot
        .intended()
        .iter()
        .map(|intended| intended.name.as_str())
        .collect();
    assert_eq!(
        (names, rig.writes()),
        (
            vec!["machine-controller-manager", "kube-controller-manager"],
            vec![]
        )
    );
}
