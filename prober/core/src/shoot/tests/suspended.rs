//! What operators stop: the pause, known and unknown.

use super::*;

#[test]
fn unknown_pause_lets_protect() {
    let restore = healthy().all_held_down();
    for (what, shoot, written, verdict) in [
        ("a leader protects", outage(), 2, Verdict::ScaleDown),
        ("a standby", outage().standby(), 0, Verdict::ScaleDown),
        ("a restore", restore, 0, Verdict::ScaleUp),
    ] {
        let mut replica = shoot.with(|env| env.paused = None);
        replica.until(100.0);
        assert_eq!(replica.verdict(), verdict, "{what}");
        assert_eq!(replica.writes().len(), written, "{what}");
        assert_eq!(replica.verified(), NEVER, "{what}");
        replica.env.paused = Some(false);
        replica.until(102.0);
        assert_eq!(replica.writes().len(), 2, "{what}");
    }
}

#[test]
fn known_pause_stays_in_effect() {
    let mut leader = outage();
    leader.env.paused = Some(true);
    leader.until(10.0).env.paused = None;
    leader.until(70.0);
    assert_eq!(leader.verdict(), Verdict::ScaleDown);
    assert_eq!(leader.writes(), []);
    let waits = |action: &Action| matches!(action, Action::Report(Report::Waits(MCM, ..)));
    let said = leader.said(|action| waits(action).then_some(()));
    assert_eq!(said.len(), 1, "it is said once");
    leader.env.paused = Some(false);
    leader.until(71.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
}

#[test]
fn pause_or_move_abandons_a_scaling() {
    type Change = fn(&mut OwnedEnvironment);
    let pause: Change = |env| env.paused = Some(true);
    let elsewhere: Change = |env| env.is_ours = false;
    for change in [pause, elsewhere] {
        for written in [vec![], ALL_DOWN[..1].to_vec()] {
            let mut leader = outage();
            leader.seed.holds_permits = written.is_empty();
            leader.seed.holds_writes = true;
            leader.until(1.0);
            change(&mut leader.env);
            leader.until(20.0);
            assert_eq!(leader.when(&Action::Cancel(MCM)), [1.0]);
            assert_eq!(leader.reported(Report::Abandoned(Direction::Down)), 1);
            assert_eq!(leader.shoot.scaling(), None);
            leader.permit(MCM);
            assert_eq!(leader.scaled(), written, "a late permit is given back");
        }
    }
}

/// Nothing is decided again before the end of a longer delay.
#[test]
fn reload_keeps_dry_run_names() {
    let mut leader = outage().with(|env| env.dry_run = true).eligible(-130.101);
    leader.until(1.0);
    leader.env.dependents.truncate(1);
    leader.reload(|config| {
        config.dependents.truncate(1);
        config.initial_delay = Duration::from_secs(300);
    });
    let names = leader
        .shoot
        .intended()
        .iter()
        .map(|intended| &*intended.name);
    let names: Vec<_> = names.collect();
    assert_eq!(
        names,
        ["machine-controller-manager", "kube-controller-manager"]
    );
    assert_eq!(leader.writes(), []);
    let intended = Report::WouldWrite(MCM, Direction::Down, 1, 0);
    assert_eq!(leader.reported(intended), 1, "it is said once");
}
