//! What the record of an outage says.

use chrono::{DateTime, Utc};

use super::*;
use crate::outage::OutageEnd;

/// Seconds since the start, to the millisecond.
fn second(at: DateTime<Utc>) -> f64 {
    (at - wall(0.0)).num_milliseconds() as f64 / 1000.0
}

fn open(rig: &Rig) -> &Outage {
    rig.outage.as_deref().expect("an outage")
}

fn only(rig: &Rig) -> &Outage {
    let [outage] = &rig.outages[..] else {
        panic!("{:?}", rig.outages)
    };
    outage
}

#[test]
fn a_leader_records_its_outage_from_the_verdict_to_the_last_restore() {
    let mut rig = Rig::leader().in_outage();
    rig.run(200.0);
    assert_eq!(open(&rig).ended, None);
    rig.renewed();
    rig.run(230.0);
    let outage = only(&rig);
    assert!(rig.outage.is_none() && !outage.found_held_down && !outage.is_blip());
    let judged = outage.verdict.as_ref().expect("a verdict");
    assert_eq!(
        (
            judged.candidates,
            judged.expired,
            judged.fraction,
            judged.grace_seconds
        ),
        (3, 2, 0.6, 40.0)
    );
    assert_eq!((judged.at, outage.began), (outage.began, wall(OUTAGE)));
    let writes: Vec<_> = outage
        .writes
        .iter()
        .map(|write| (second(write.at), &*write.name, write.from, write.to))
        .collect();
    let made: Vec<_> = rig.writes().iter().map(|write| write.0).collect();
    assert_eq!(writes.iter().map(|write| write.0).collect::<Vec<_>>(), made);
    assert_eq!(
        (writes[0].1, writes[0].2, writes[0].3),
        ("machine-controller-manager", 1, 0)
    );
    assert_eq!(
        (writes[3].1, writes[3].2, writes[3].3),
        ("machine-controller-manager", 0, 1)
    );
    assert!(outage.writes.iter().all(|write| write.as_leader));
    let held = &outage.held_down[MCM.0];
    assert_eq!(
        (held.from, held.until, held.returns_to),
        (outage.writes[0].at, Some(outage.writes[3].at), Some(1))
    );
    assert_eq!(
        (outage.end, outage.ended),
        (Some(OutageEnd::Restored), held.until)
    );
    assert!(
        outage.recovered >= Some(wall(200.0)) && outage.recovered <= outage.ended,
        "{outage:?}"
    );
}

#[test]
fn nodes_are_listed_with_when_they_would_have_been_marked_unknown() {
    let mut rig = Rig::leader().in_outage();
    rig.run(139.0);
    assert_eq!((open(&rig).overdue_nodes, open(&rig).nodes.len()), (0, 0));
    rig.run(200.0);
    let nodes: Vec<_> = open(&rig)
        .nodes
        .iter()
        .map(|node| (&*node.name, second(node.unknown_at)))
        .collect();
    // 40 s after their last renewals.
    assert_eq!(
        nodes,
        [("node-0", 140.0), ("node-1", 140.1), ("node-2", 140.2)]
    );
    assert_eq!(open(&rig).overdue_nodes, 3);
}

#[test]
fn nodes_that_were_unknown_before_the_verdict_are_none_that_were_spared() {
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines) = (5, machines(5));
    rig.run(45.0);
    // All but node-0 and node-1 fall silent long before these two.
    rig.spared = 2;
    rig.silent(50.0);
    rig.run(120.0);
    assert_eq!(open(&rig).overdue_nodes, 3);
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines, rig.spared) = (5, machines(5), 3);
    rig.silent(50.0);
    rig.run(120.0);
    rig.spared = 0;
    rig.silent(120.0);
    rig.run(200.0);
    assert_eq!(
        (open(&rig).overdue_nodes, open(&rig).nodes.len()),
        (3, 3),
        "{:?}",
        open(&rig)
    );
}

#[test]
fn an_outage_whose_nodes_are_back_within_25_s_is_a_blip() {
    for (back, blip) in [(150.0, true), (160.0, false)] {
        let mut rig = Rig::leader().in_outage();
        rig.run(back);
        rig.renewed();
        rig.run(200.0);
        assert_eq!(
            (only(&rig).end, only(&rig).is_blip()),
            (Some(OutageEnd::Restored), blip),
            "back at {back} s"
        );
    }
}

#[test]
fn nodes_that_are_lost_again_before_all_is_restored_are_in_the_same_outage() {
    let mut env = two();
    Arc::make_mut(&mut env.config).dependents[MCM.0]
        .scale_up
        .initial_delay = Duration::from_secs(60);
    let mut rig = Rig::with(env).in_outage();
    rig.run(135.0);
    rig.renewed();
    rig.run(160.0);
    assert!(open(&rig).recovered < Some(wall(150.0)));
    rig.silent(160.0);
    rig.run(220.0);
    assert_eq!(
        (open(&rig).recovered, open(&rig).writes.len()),
        (None, 4),
        "kube-controller-manager once more"
    );
    rig.renewed();
    rig.run(320.0);
    assert!(
        !only(&rig).is_blip() && only(&rig).recovered > Some(wall(220.0)),
        "{:?}",
        only(&rig)
    );
}

#[test]
fn a_process_that_starts_in_mid_outage_begins_with_what_it_finds_held_down() {
    let mut env = two();
    env.dependents = vec![
        DependentState::Present(Arc::new(held("3"))),
        DependentState::Present(Arc::new(held("none"))),
    ];
    let mut rig = Rig::with(env);
    rig.silent(-60.0);
    rig.run(5.0);
    let outage = open(&rig);
    assert!(
        outage.found_held_down && outage.verdict.is_none() && outage.began == wall(0.0),
        "{outage:?}"
    );
    let returns: Vec<_> = outage
        .held_down
        .iter()
        .map(|held| held.returns_to)
        .collect();
    assert_eq!(
        returns,
        [Some(3), None],
        "an annotation that cannot be read is left out"
    );
    assert!(
        outage
            .sentence()
            .contains("kube-controller-manager (its replicas annotation cannot be read)"),
        "{}",
        outage.sentence()
    );
    assert!(
        outage.nodes.is_empty() && outage.overdue_nodes == 0,
        "stamps that are doubted say nothing: {outage:?}"
    );
    rig.run(60.0);
    assert_eq!(open(&rig).overdue_nodes, 3);
    assert_eq!(
        open(&rig).verdict.as_ref().map(|judged| judged.expired),
        Some(3)
    );
    rig.renewed();
    rig.run(100.0);
    assert_eq!(
        (only(&rig).end, only(&rig).writes.len()),
        (Some(OutageEnd::Restored), 2)
    );
    let told = only(&rig).sentence();
    assert!(
        told.starts_with("3 of 3 leases expired, found held down (written as the leader): ")
            && told.contains("; without protection 3 nodes would have been Unknown from "),
        "{told}"
    );
    let mut of_one_node = only(&rig).clone();
    of_one_node.overdue_nodes = 1;
    let told = of_one_node.sentence();
    assert!(
        told.contains(" 1 node would have been Unknown from "),
        "{told}"
    );
}

#[test]
fn a_replica_that_writes_nothing_records_what_others_did() {
    let mut rig = Rig::standby().in_outage();
    rig.run(OUTAGE + 0.5);
    for at in [MCM, KCM] {
        rig.others(at, |observed| *observed = held("1"));
    }
    rig.run(200.0);
    rig.renewed();
    rig.run(201.0);
    for at in [KCM, MCM] {
        rig.others(at, |observed| *observed = running(1));
    }
    rig.run(240.0);
    let outage = only(&rig);
    assert_eq!(
        (outage.end, outage.acted(), outage.ended),
        (Some(OutageEnd::Restored), None, Some(wall(201.0)))
    );
    assert_eq!(
        outage.recovered, outage.ended,
        "it probes less often than the leader"
    );
    assert!(
        outage.sentence().contains("held down (written by others)"),
        "{}",
        outage.sentence()
    );
}

#[test]
fn the_last_write_is_in_the_record_also_when_a_watch_is_faster_than_its_answer() {
    let mut env = two();
    Arc::make_mut(&mut env.config).dependents[MCM.0]
        .scale_up
        .initial_delay = Duration::from_secs(10);
    let mut rig = Rig::with(env).in_outage();
    rig.run(160.0);
    rig.renewed();
    rig.run(170.0);
    rig.holds_writes = true;
    rig.run(180.0);
    assert_eq!((rig.writes().len(), open(&rig).writes.len()), (4, 3));
    rig.others(MCM, |observed| *observed = running(1));
    rig.input(Input::Written(MCM, Ok(Arc::new(rig.seen(MCM)))));
    assert_eq!(
        (only(&rig).end, only(&rig).writes.len()),
        (Some(OutageEnd::Restored), 4)
    );
}

#[test]
fn a_standby_that_acts_is_recorded_as_such() {
    let mut rig = Rig::standby().in_outage();
    rig.run(200.0);
    assert_eq!(
        (open(&rig).acted(), open(&rig).writes.len()),
        (Some("standby"), 2)
    );
}

#[test]
fn an_outage_in_which_nothing_was_held_down_ends_with_its_nodes() {
    let mut rig = Rig::with(OwnedEnvironment {
        dry_run: true,
        ..two()
    })
    .in_outage();
    rig.run(160.0);
    rig.renewed();
    rig.run(190.0);
    assert_eq!(
        (only(&rig).end, only(&rig).ended),
        (Some(OutageEnd::NothingHeldDown), only(&rig).recovered)
    );
}

#[test]
fn a_pause_ends_the_record_when_the_nodes_are_back_and_its_end_begins_another() {
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    rig.env.paused = Some(true);
    rig.run(200.0);
    rig.renewed();
    rig.run(260.0);
    assert_eq!(only(&rig).end, Some(OutageEnd::Paused));
    assert_eq!(
        (rig.outage.as_ref(), only(&rig).held_down[KCM.0].until),
        (None, None)
    );
    rig.env.paused = Some(false);
    rig.run(290.0);
    let [_, after] = &rig.outages[..] else {
        panic!("{:?}", rig.outages)
    };
    assert!(
        after.found_held_down && after.end == Some(OutageEnd::Restored),
        "{after:?}"
    );
}

#[test]
fn a_probe_that_ends_leaves_what_it_holds_down_still_held_down() {
    let ended = |mut rig: Rig| {
        Outage::probe_ended(&mut rig.outage, wall(200.0))
            .expect("a record")
            .end
    };
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    assert_eq!(ended(rig), Some(OutageEnd::StillHeldDown));
    let mut rig = Rig::with(OwnedEnvironment {
        dry_run: true,
        ..two()
    })
    .in_outage();
    rig.run(160.0);
    assert_eq!(ended(rig), Some(OutageEnd::ProbeEnded));
}

#[test]
fn what_a_reload_drops_while_it_is_held_down_was_not_restored() {
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    Arc::make_mut(&mut rig.env.config).dependents.remove(MCM.0);
    rig.env.dependents.remove(MCM.0);
    rig.reloaded();
    rig.renewed();
    rig.run(190.0);
    assert_eq!(
        (only(&rig).end, only(&rig).held_down[MCM.0].until),
        (Some(OutageEnd::StillHeldDown), None)
    );
}

#[test]
fn a_view_of_the_seed_that_breaks_is_no_restore() {
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    rig.env.dependents = vec![DependentState::Unknown; 2];
    rig.renewed();
    rig.run(200.0);
    assert!(
        rig.outages.is_empty() && open(&rig).held_down.iter().all(|held| held.until.is_none()),
        "{:?}",
        rig.outage
    );
}

#[test]
fn a_shoot_that_is_well_has_no_record() {
    let mut rig = Rig::leader();
    rig.run(3600.0);
    assert!(rig.outage.is_none() && rig.outages.is_empty());
}
