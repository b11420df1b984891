//! D-59, D-60: nothing is brought back that was not seen renewed, and nothing is marked that was
//! never held down.

use super::*;

#[test]
fn future_stamp_restores_nothing() {
    for ahead in [0.0, 31.0, 60.0, 600.0] {
        let mut leader = healthy().all_held_down().silent(-60.0);
        leader.nodes.ahead = ahead;
        leader.until(700.0);
        assert_eq!(leader.writes(), [], "{ahead} s ahead");
        leader.nodes_back().until(720.0);
        assert_eq!(leader.scaled(), ALL_UP, "{ahead} s ahead");
    }
}

#[test]
fn nothing_but_renewals_restores() {
    type Case = (&'static str, fn(&mut Timeline), Verdict, Verdict);
    #[rustfmt::skip]
    let cases: [Case; 3] = [
        ("a longer grace", |leader| leader.env.settings.node_monitor_grace = Some(TimeDelta::minutes(10)), Verdict::HoldUndecided, Verdict::ScaleUp),
        ("no node counts", |leader| leader.nodes.excluded = true, Verdict::HoldUndecided, Verdict::ScaleUp),
        ("there are no Machines", |leader| leader.nodes.machines = 0, Verdict::HoldNoMachines, Verdict::HoldNoMachines),
    ];
    for (what, change, meanwhile, in_the_end) in cases {
        let mut leader = outage();
        leader.until(10.0);
        change(&mut leader);
        leader.until(60.0);
        assert_eq!(leader.verdict(), meanwhile, "{what}");
        assert_eq!(leader.scaled(), ALL_DOWN, "{what}");
        leader.nodes_back().until(80.0);
        assert_eq!(leader.verdict(), in_the_end, "{what}");
        assert_eq!(leader.scaled()[2..], ALL_UP, "{what}");
    }
}

#[test]
fn memory_alone_sets_no_marker() {
    let mut stopped = held("2");
    stopped.marks.held_down = false;
    let mut leader = outage()
        .dependents(stopped, running(1))
        .with(|env| env.options.restore_only_held_down.value = true);
    leader.until(20.0);
    assert_eq!(leader.scaled(), [(KCM, 0)]);
}

#[test]
fn lost_marker_is_set_again() {
    let mut leader = outage();
    leader.until(10.0);
    leader.others(MCM, |observed| observed.marks.held_down = false);
    leader.until(20.0);
    assert_eq!(leader.scaled()[2..], [(MCM, 0)]);
    assert_eq!(leader.seen(MCM).marks, held("1").marks);
}

/// A write whose answer will be that its resource is gone.
fn vanishing() -> Timeline {
    let mut leader = outage().holds_writes();
    leader.show(KCM, ignore).until(1.0);
    leader
}

#[test]
fn gone_and_shown_anew_is_scaled() {
    let mut leader = vanishing();
    leader.refuse(MCM, Refusal::NotFound).until(5.0);
    assert_eq!(leader.orders().len(), 1, "the view may lag");
    leader.others(MCM, |observed| observed.replicas = 3);
    leader.until(20.0);
    assert_eq!(leader.orders().len(), 2);
}

#[test]
fn remade_in_time_is_scaled() {
    let mut leader = vanishing();
    leader.others(MCM, |observed| observed.uid = "another".into());
    leader.refuse(MCM, Refusal::NotFound).until(10.0);
    assert_eq!(leader.orders().len(), 2);
}

#[test]
fn read_marker_wants_renewals() {
    let mut leader = outage().holds_writes();
    leader.show(KCM, ignore).until(0.0);
    // Another replica was first; the view does not show it yet.
    leader.seed.read = Some(Observed {
        resource_version: "3".into(),
        ..held("1")
    });
    leader.refuse(MCM, Refusal::Conflict);
    leader.env.settings.node_monitor_grace = Some(TimeDelta::minutes(10));
    leader.until(70.0);
    assert_eq!(leader.orders().len(), 1);
    assert_eq!(leader.verdict(), Verdict::HoldUndecided);
}
