//! D-51: a restore that another process began goes on without another initialDelay, and by no less
//! proof.

use super::*;

/// A replica that begins to lead beside a shoot whose kube-controller-manager is up and whose
/// machine-controller-manager is held down.
fn begun() -> OwnedEnvironment {
    let mut env = two();
    env.dependents = vec![
        DependentState::Present(Arc::new(held("1"))),
        DependentState::Present(Arc::new(running(1))),
    ];
    env
}

/// What is written in the first minutes.
fn writes(mut rig: Rig) -> Vec<(f64, DependentId, Option<i32>)> {
    rig.run(200.0);
    rig.writes()
}

#[test]
fn a_restore_that_was_begun_waits_for_renewals_and_its_own_delay_only() {
    let restored = |delay| {
        let mut env = begun();
        Arc::make_mut(&mut env.config).dependents[MCM.0]
            .scale_up
            .initial_delay = Duration::from_secs(delay);
        let writes = writes(Rig::with(env));
        assert_eq!((writes.len(), writes[0].1, writes[0].2), (1, MCM, Some(1)));
        writes[0].0
    };
    // Two of three nodes renew between the first probe and the next, 5 s later.
    assert!((5.0..5.1).contains(&restored(0)), "{}", restored(0));
    assert!((35.0..40.2).contains(&restored(30)), "{}", restored(30));
}

#[test]
fn a_scale_down_that_was_only_just_begun_goes_on_and_nothing_comes_back() {
    for ahead in [0.0, 31.0, 60.0, 600.0] {
        let mut rig = Rig::with(begun());
        rig.ahead = ahead;
        rig.silent(-25.0);
        rig.run(700.0);
        let writes = rig.writes();
        assert!(
            writes.len() == 1 && writes[0].1 == KCM && writes[0].2 == Some(0),
            "{ahead} s ahead: {writes:?}"
        );
    }
}

#[test]
fn nodes_that_renewed_for_a_moment_bring_nothing_back_once_they_are_silent_again() {
    let mut env = begun();
    Arc::make_mut(&mut env.config).dependents[MCM.0]
        .scale_up
        .initial_delay = Duration::from_secs(30);
    let mut rig = Rig::with(env);
    rig.silent(5.0);
    assert!(writes(rig).iter().all(|write| write.2 == Some(0)));
}

#[test]
fn whatever_may_be_something_else_waits_for_the_initial_delay() {
    let present = |observed| DependentState::Present(Arc::new(observed));
    let ignored = Marks {
        ignored: true,
        ..Marks::default()
    };
    let kcm = [
        (
            "starting",
            present(Observed {
                ready: 0,
                ..running(1)
            }),
        ),
        ("held down", present(held("1"))),
        ("at 0 by others", present(running(0))),
        (
            "left to its operators",
            present(Observed {
                marks: ignored,
                ..running(1)
            }),
        ),
    ];
    for (what, state) in kcm {
        let mut env = begun();
        env.dependents[KCM.0] = state;
        assert!(
            writes(Rig::with(env))[0].0 >= 30.0,
            "kube-controller-manager is {what}"
        );
    }
    let new = Start {
        eligible: Moment::START,
        in_operation: false,
    };
    assert!(
        writes(Rig::starting(new, begun()))[0].0 >= 30.0,
        "a shoot that just became ready to be probed"
    );
    let mut waking = Rig::with(begun());
    (waking.machines, waking.nodes) = (Arc::default(), 0);
    assert!(writes(waking)[0].0 >= 30.0, "no node counts");
}
