//! D-51: a restore that another process began goes on without another initialDelay, and by no less
//! proof.

use super::*;

/// A leader that starts beside a kube-controller-manager that is up and a machine-controller-manager
/// that is held down.
fn begun() -> Timeline {
    healthy().dependents(held("1"), running(1))
}

fn delayed(seconds: u64) -> Timeline {
    begun().config(|config| {
        config.dependents[MCM.0].scale_up.initial_delay = Duration::from_secs(seconds);
    })
}

#[test]
fn begun_restore_skips_its_delay() {
    // Two of three nodes renew between the first probe and the next, 5 s later.
    for (delay, latest) in [(0, 5.1), (30, 40.2)] {
        let mut leader = delayed(delay);
        leader.until(200.0);
        assert_eq!(leader.scaled(), [(MCM, 1)]);
        let (restored, ..) = leader.writes()[0];
        let earliest = 5.0 + delay as f64;
        assert!((earliest..latest).contains(&restored), "{restored}");
    }
}

#[test]
fn begun_scale_down_goes_on() {
    for ahead in [0.0, 31.0, 60.0, 600.0] {
        let mut leader = begun().silent(-25.0);
        leader.nodes.ahead = ahead;
        leader.until(700.0);
        assert_eq!(leader.scaled(), [(KCM, 0)], "{ahead} s ahead");
    }
}

#[test]
fn begun_restore_needs_renewals() {
    let mut leader = delayed(30).silent(5.0);
    leader.until(200.0);
    assert!(leader.scaled().iter().all(|(_, replicas)| *replicas == 0));
}

#[test]
fn what_may_be_no_restore_waits() {
    let kcm = |kcm| healthy().dependents(held("1"), kcm);
    let starting = Observed {
        ready: 0,
        ..running(1)
    };
    let mut ignored = running(1);
    ignore(&mut ignored);
    for (what, mut leader) in [
        ("kube-controller-manager starts", kcm(starting)),
        ("it is held down", kcm(held("1"))),
        ("it is at 0 by others", kcm(running(0))),
        ("it is left to its operators", kcm(ignored)),
        ("the shoot is new", begun().eligible(0.0)),
        ("no node counts", begun().of_nodes(0)),
    ] {
        leader.until(200.0);
        assert!(leader.writes()[0].0 >= 30.0, "{what}");
    }
}
