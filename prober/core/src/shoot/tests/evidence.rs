//! D-52: a write rests on evidence that is newer than what it changes.

use super::*;

/// A leader that has protected its only dependent.
fn alone() -> Rig {
    let mut env = env([dependent("machine-controller-manager", 0, 0)]);
    env.chance = 0.0;
    let mut rig = Rig::with(env).in_outage();
    rig.run(131.0);
    assert_eq!(rig.writes().len(), 1);
    rig
}

#[test]
fn what_others_bring_up_in_mid_outage_is_probed_for_and_taken_down_at_once() {
    for raised in [131.0, 134.0, 137.0] {
        let mut rig = Rig::leader().in_outage();
        rig.run(raised);
        rig.others(KCM, |observed| observed.replicas = 1);
        rig.run(raised + 1.0);
        assert_eq!(
            rig.probes(raised),
            [raised, raised + 1.0],
            "raised at {raised} s"
        );
        assert_eq!(rig.writes()[2..], [(raised, KCM, Some(0))]);
        assert!(rig.orders()[2].judged_at > at(raised));
    }
}

#[test]
fn who_keeps_writing_a_resource_costs_a_probe_a_second_and_from_the_fourth_on_one_in_10_s() {
    let mut rig = alone();
    let mut reported = vec![];
    for tenth in 1..350 {
        rig.run(137.0 + f64::from(tenth) / 10.0);
        if rig.seen(MCM).replicas == 0 {
            rig.others(MCM, |observed| *observed = running(1));
        }
        reported = rig.when(&Action::Report(Report::KeepsChanging(MCM)), 0.0);
    }
    let probes = rig.probes(137.1);
    assert_eq!(probes[..5], [137.1, 138.1, 139.1, 149.1, 159.1]);
    assert_eq!(reported[0], 139.1, "at the fourth");
}

#[test]
fn who_kept_writing_in_one_outage_delays_no_probe_of_the_next() {
    let mut rig = Rig::leader().in_outage();
    for second in 0..10 {
        rig.run(137.0 + f64::from(second));
        rig.others(MCM, |observed| *observed = running(1));
    }
    rig.renewed_at_once();
    rig.run(160.0);
    rig.silent(160.0);
    rig.pods_linger = true;
    rig.run(189.0);
    let (fell, verdict) = rig.verdicts[rig.verdicts.len() - 1];
    assert_eq!(verdict, Verdict::ScaleDown);
    let (up, _) = *rig
        .verdicts
        .iter()
        .rev()
        .find(|(_, one)| *one != verdict)
        .expect("healthy");
    assert!(up > 150.0 && fell < 189.0);
    let probes = rig.probes(up + 1.0);
    assert!(longest_gap(&probes[..4]) <= 1.01, "{probes:?}");
}

#[test]
fn no_write_rests_on_a_probe_that_was_sent_before_its_resource_was_seen_so() {
    let mut rig = alone();
    rig.api = Api::Hangs;
    rig.settings_changed();
    let sent = rig.now;
    rig.run(132.0);
    rig.others(MCM, |observed| observed.replicas = 1);
    rig.run(132.5);
    let writes = rig.writes().len();
    (rig.api, rig.holds_permits) = (Api::Answers, true);
    let actions = rig.answer(RequestTimes {
        sent,
        received: rig.now,
        wall: wall(132.5),
    });
    rig.follow(actions);
    assert_eq!(rig.writes().len(), writes);
    assert_eq!(rig.probes(131.0), [131.0, 132.5], "probed again at once");
    rig.input(Input::Permitted(MCM));
    assert!(rig.orders()[writes].judged_at > at(132.5));
}

#[test]
fn the_answer_to_a_write_counts_while_the_view_still_shows_what_was_before() {
    let mut rig = Rig::leader().in_outage();
    rig.view_lags = true;
    rig.run(160.0);
    assert_eq!(rig.writes().len(), 2);
    assert!(rig.shoot.dependents().all(|known| known.is_held_down()));
    assert_eq!(rig.seen(MCM).replicas, 1, "by the view");
}

#[test]
fn an_older_sighting_never_replaces_a_newer_state_and_versions_are_numbers() {
    let mut rig = Rig::leader().in_outage();
    rig.view_lags = true;
    rig.run(120.0);
    rig.version = 8;
    rig.others(MCM, |_| {});
    rig.run(135.0);
    assert_eq!(rig.writes().len(), 2);
    assert_eq!(
        rig.shoot.dependents[MCM]
            .observed()
            .map(|known| known.resource_version.as_str()),
        Some("10")
    );
    // Something that was before the write, and is shown only now.
    rig.version = 8;
    rig.others(MCM, |observed| observed.ready = 0);
    rig.run(160.0);
    assert_eq!(rig.writes().len(), 2);
    rig.version = 10;
    rig.others(MCM, |observed| observed.replicas = 2);
    rig.run(161.0);
    assert_eq!(rig.writes().len(), 3);
}

#[test]
fn a_write_that_waited_for_the_seed_rests_on_a_probe_that_was_sent_since() {
    let mut rig = Rig::leader().in_outage();
    rig.env.seed_since.down = None;
    rig.run(133.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleDown, vec![]));
    rig.env.seed_since.down = Some(at(133.0));
    rig.api = Api::Hangs;
    rig.run(134.0);
    assert_eq!((rig.probes(133.0), rig.writes()), (vec![133.0], vec![]));
    let actions = rig.answer(times(133.0));
    rig.follow(actions);
    assert!(
        rig.orders()
            .iter()
            .all(|order| order.judged_at == at(133.0))
    );
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn whoever_gains_the_lead_protects_at_once_and_restores_by_a_cluster_that_was_read_since() {
    let mut rig = Rig::standby().in_outage();
    rig.run(131.0);
    (rig.env.leads, rig.env.seed_since.up) = (true, None);
    rig.run(131.5);
    assert_eq!(rig.writes(), [(131.0, MCM, Some(0)), (131.0, KCM, Some(0))]);
    rig.renewed();
    rig.run(160.0);
    assert_eq!((rig.verdict(), rig.writes().len()), (Verdict::ScaleUp, 2));
    rig.env.seed_since.up = Some(at(160.0));
    rig.run(161.0);
    assert_eq!(rig.writes().len(), 4);
}

#[test]
fn what_a_read_shows_is_believed_although_its_version_is_older() {
    let mut rig = Rig::leader().in_outage();
    (rig.version, rig.holds_writes) = (900, true);
    rig.show(MCM, |_| ());
    rig.run(131.0);
    assert_eq!(rig.orders()[0].change.base.resource_version, "901");
    // Meanwhile the seed came back from a backup.
    rig.version = 500;
    rig.show(MCM, |_| ());
    rig.input(Input::Written(MCM, Err(Refusal::Conflict)));
    rig.run(133.0);
    assert_eq!(
        rig.orders()
            .last()
            .map(|order| order.change.base.resource_version.as_str()),
        Some("501")
    );
}

#[test]
fn a_view_that_shows_an_older_version_for_long_is_that_of_a_seed_that_was_restored() {
    let mut rig = Rig::leader().in_outage();
    rig.version = 900;
    rig.run(140.0);
    assert_eq!(
        rig.writes(),
        [(OUTAGE, MCM, Some(0)), (OUTAGE, KCM, Some(0))]
    );
    rig.version = 500;
    rig.others(MCM, |observed| *observed = running(1));
    rig.run(OUTAGE + 299.0);
    assert_eq!(rig.writes().len(), 2, "the view may lag");
    rig.run(OUTAGE + 306.0);
    assert_eq!(rig.writes().len(), 3);
}

#[test]
fn a_write_of_a_process_that_was_suspended_rests_on_a_probe_that_was_sent_since() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_permits = true;
    rig.run(131.0);
    rig.now = at(140.0);
    rig.env.seed_since.down = Some(at(140.0));
    rig.api = Api::Hangs;
    rig.input(Input::Permitted(MCM));
    assert_eq!((rig.probes(140.0), rig.writes()), (vec![140.0], vec![]));
}
