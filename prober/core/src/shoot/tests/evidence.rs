//! D-52: a write rests on evidence that is newer than what it changes.

use super::*;

/// A leader that has protected its only dependent.
fn alone() -> Timeline {
    let mut leader = outage().config(|config| config.dependents.truncate(1));
    leader.env.dependents.pop();
    leader.until(0.9);
    assert_eq!(leader.scaled(), [(MCM, 0)]);
    leader
}

#[test]
fn raised_goes_down_at_once() {
    for raised in [0.9, 3.9, 6.9] {
        let mut leader = outage();
        leader.until(raised).others(KCM, raise).until(raised + 1.0);
        assert_eq!(leader.probes(raised), [raised, raised + 1.0]);
        assert_eq!(leader.writes()[2..], [(raised, KCM, 0)]);
        assert!(leader.orders()[2].judged_at > leader.moment(raised));
    }
}

#[test]
fn editor_is_probed_for_rarely() {
    let mut leader = alone();
    for tenth in 0..350 {
        leader.until(7.0 + f64::from(tenth) / 10.0);
        if leader.seen(MCM).replicas == 0 {
            leader.others(MCM, undo);
        }
    }
    assert_eq!(leader.probes(7.0)[..5], [7.0, 8.0, 9.0, 19.0, 29.0]);
    let reported = leader.when(&Action::Report(Report::KeepsChanging(MCM)));
    assert_eq!(reported[0], 9.0, "at the fourth");
}

#[test]
fn editor_delays_no_later_outage() {
    let mut leader = outage();
    for second in 7..17 {
        leader.until(f64::from(second)).others(MCM, undo);
    }
    leader.nodes_back().until(30.0).fall_silent(30.0);
    leader.seed.pods_linger = true;
    leader.until(65.0);
    let verdicts = leader.verdicts.iter().rev();
    let down = verdicts.clone().next().expect("a verdict").1;
    assert_eq!(down, Verdict::ScaleDown);
    let (up, _) = *verdicts
        .into_iter()
        .find(|(_, verdict)| *verdict != down)
        .expect("healthy");
    let probes = leader.probes(leader.seconds(up) + 1.0);
    assert!(longest_gap(&probes[..4]) <= 1.01, "{probes:?}");
}

#[test]
fn earlier_probe_is_no_evidence() {
    let mut leader = alone();
    leader.api = Api::Hangs;
    leader.change_settings();
    leader.until(2.0).others(MCM, raise).until(2.5);
    let writes = leader.writes().len();
    (leader.api, leader.seed.holds_permits) = (Api::Answers, true);
    leader.answer(0.9);
    assert_eq!(leader.writes().len(), writes);
    assert_eq!(leader.probes(0.9), [0.9, 2.5], "probed again at once");
    leader.permit(MCM);
    assert!(leader.orders()[writes].judged_at > leader.moment(2.5));
}

#[test]
fn answer_counts_before_the_view() {
    let mut leader = outage();
    leader.seed.view_lags = true;
    leader.until(30.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    assert!(leader.shoot.dependents().all(|known| known.is_held_down()));
    assert_eq!(leader.seen(MCM).replicas, 1, "by the view");
}

#[test]
fn older_view_replaces_nothing() {
    let mut leader = outage();
    leader.seed.view_lags = true;
    leader.until(-10.0);
    leader.seed.version = 8;
    leader.others(MCM, |_| {}).until(5.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    let known = leader.shoot.dependents[MCM]
        .observed()
        .expect("it is there");
    assert_eq!(known.resource_version, "10", "versions are numbers");
    // Something that was before the write, and is shown only now.
    leader.seed.version = 8;
    leader
        .others(MCM, |observed| observed.ready = 0)
        .until(30.0);
    assert_eq!(leader.writes().len(), 2);
    leader.seed.version = 10;
    leader.others(MCM, |observed| observed.replicas = 2);
    leader.until(31.0);
    assert_eq!(leader.writes().len(), 3);
}

#[test]
fn new_leader_protects_at_once() {
    let mut replica = outage().standby();
    replica.until(0.9);
    (replica.env.leads, replica.env.seed_since.up) = (true, None);
    replica.until(1.4);
    assert_eq!(replica.writes(), [(0.9, MCM, 0), (0.9, KCM, 0)]);
    replica.nodes_back().until(30.0);
    assert_eq!(replica.verdict(), Verdict::ScaleUp);
    assert_eq!(replica.writes().len(), 2);
    replica.env.seed_since.up = Some(replica.moment(30.0));
    replica.until(31.0);
    assert_eq!(replica.scaled_from(30.0), ALL_UP);
}

/// The seed comes back from a backup.
#[test]
fn older_read_is_believed() {
    let mut leader = outage().holds_writes();
    leader.seed.version = 900;
    leader.show(MCM, |_| ()).until(1.0);
    leader.seed.version = 500;
    leader.show(MCM, |_| ()).refuse(MCM, Refusal::Conflict);
    leader.until(3.0);
    let orders = leader.orders();
    let versions = [&orders[0], &orders[orders.len() - 1]]
        .map(|order| order.change.base.resource_version.as_str());
    assert_eq!(versions, ["901", "501"]);
}

#[test]
fn restored_seed_is_believed() {
    let mut leader = outage();
    leader.seed.version = 900;
    leader.until(10.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    leader.seed.version = 500;
    leader.others(MCM, undo).until(299.0);
    assert_eq!(leader.writes().len(), 2, "the view may lag");
    leader.until(306.0);
    assert_eq!(leader.writes().len(), 3);
}
