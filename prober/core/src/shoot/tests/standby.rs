//! D-50: what a replica writes that does not lead.

use super::*;
use crate::judgement::Finding;

#[test]
fn a_leader_writes_at_its_verdict_and_asks_nobody() {
    let mut rig = Rig::leader().in_outage();
    rig.run(135.0);
    assert_eq!(
        rig.writes(),
        [(OUTAGE, MCM, Some(0)), (OUTAGE, KCM, Some(0))]
    );
    assert!(rig.orders().iter().all(|order| order.needs_lead));
    assert_eq!(rig.when(&Action::Verify, 0.0), [0.0; 0]);
}

#[test]
fn a_standby_leaves_the_first_writes_to_the_leader_and_uses_the_time_to_verify() {
    let mut rig = Rig::standby().in_outage();
    rig.run(OUTAGE + PATIENCE - 0.01);
    assert_eq!(rig.writes(), []);
    assert_eq!(rig.when(&Action::Verify, 0.0), [OUTAGE]);
    rig.run(150.0);
    assert_eq!(
        rig.writes(),
        [
            (OUTAGE + PATIENCE, MCM, Some(0)),
            (OUTAGE + PATIENCE, KCM, Some(0))
        ]
    );
    assert!(rig.orders().iter().all(|order| !order.needs_lead));
    assert_eq!(
        rig.when(&Action::Verify, 0.0),
        [OUTAGE],
        "once in an outage"
    );
}

#[test]
fn a_standby_leaves_the_first_writes_to_the_leader_also_when_a_pause_ends() {
    let mut rig = Rig::standby().in_outage();
    rig.env.paused = Some(true);
    rig.run(140.0);
    rig.env.paused = Some(false);
    rig.run(150.0);
    assert_eq!(
        rig.writes(),
        [
            (140.0 + PATIENCE, MCM, Some(0)),
            (140.0 + PATIENCE, KCM, Some(0))
        ]
    );
}

#[test]
fn a_standby_leaves_the_first_writes_to_the_leader_also_when_the_initial_delay_ends() {
    let start = Start {
        eligible: at(100.0),
        in_operation: false,
    };
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    Arc::make_mut(&mut env.config).initial_delay = Duration::from_secs(40);
    let mut rig = Rig::starting(start, env).in_outage();
    rig.run(150.0);
    assert_eq!(rig.writes()[0].0, 140.0 + PATIENCE);
}

#[test]
fn what_others_raise_after_a_standbys_last_write_is_back_at_0_within_seconds() {
    let mut rig = Rig::standby().in_outage();
    rig.holds_writes = true;
    rig.run(132.0);
    let mcm = rig.orders().pop().expect("the first order");
    let actions = rig.write(&mcm);
    rig.follow(actions);
    let kcm = rig.orders().pop().expect("the second order");
    // In the moment in which the last answer ends the scaling.
    rig.show(MCM, |observed| {
        *observed = Observed {
            marks: held("1").marks,
            ..running(1)
        }
    });
    let actions = rig.write(&kcm);
    rig.holds_writes = false;
    rig.follow(actions);
    rig.run(150.0);
    assert_eq!(
        rig.writes().last(),
        Some(&(142.0 + PATIENCE, MCM, Some(0))),
        "{:?}",
        rig.writes()
    );
}

#[test]
fn a_standby_keeps_the_order_of_the_levels() {
    let mut rig = Rig::standby().in_outage();
    rig.pods_linger = true;
    rig.run(150.0);
    assert_eq!(
        rig.writes(),
        [
            (OUTAGE + PATIENCE, MCM, Some(0)),
            (OUTAGE + 5.0, KCM, Some(0))
        ]
    );
}

#[test]
fn a_standby_has_less_patience_where_nodes_are_given_up_sooner() {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    env.settings.node_monitor_grace = Some(TimeDelta::seconds(20));
    let mut rig = Rig::with(env);
    rig.beat = 5.0;
    rig.silent(SILENT - 0.5);
    rig.run(150.0);
    // The last renewals are at 100.0, 100.1 and 100.2 s.
    assert_eq!(rig.writes().first(), Some(&(115.101 + 0.75, MCM, Some(0))));
}

#[test]
fn a_standby_writes_nothing_that_the_seed_itself_does_not_confirm() {
    let verified = |is_ours, is_paused, nodes| {
        Some(Verified {
            is_ours,
            is_paused,
            standby_protects: true,
            machines: machines(nodes),
        })
    };
    let not_wanted = Verified {
        is_ours: true,
        is_paused: false,
        standby_protects: false,
        machines: machines(3),
    };
    for (read, why) in [
        (None, "it cannot be read"),
        (
            verified(false, false, 3),
            "the Cluster does not want this probe",
        ),
        (verified(true, true, 3), "operators want nothing written"),
        (
            Some(not_wanted),
            "operators want nothing written without the lead",
        ),
    ] {
        let mut rig = Rig::standby().in_outage();
        rig.verified = Some(read);
        rig.run(150.0);
        assert_eq!(rig.writes(), [], "{why}");
        assert_eq!(
            rig.when(&Action::Verify, 0.0)[..3],
            [OUTAGE, OUTAGE + 1.0, OUTAGE + 2.0],
            "{why}"
        );
        rig.verified = None;
        rig.run(152.0);
        assert_eq!(
            rig.writes().len(),
            2,
            "as soon as it is confirmed; before, {why}"
        );
    }
    let mut rig = Rig::standby().in_outage();
    rig.verified = Some(verified(true, false, 0));
    rig.run(150.0);
    assert_eq!(
        rig.writes(),
        [],
        "there is no outage by the Machines that were read"
    );
    assert_eq!(rig.when(&Action::Verify, 0.0)[0], OUTAGE);
}

#[test]
fn each_outage_is_verified_for_itself() {
    let mut rig = Rig::standby().in_outage();
    rig.run(150.0);
    rig.renewed();
    rig.run(250.0);
    rig.silent(305.0);
    rig.run(350.0);
    assert_eq!(rig.when(&Action::Verify, 0.0), [OUTAGE, OUTAGE + 200.0]);
}

#[test]
fn a_standby_leaves_each_level_to_the_leader_first() {
    let mut rig = Rig::standby().in_outage();
    rig.run(OUTAGE + 0.5);
    rig.others(MCM, |observed| {
        *observed = Observed {
            ready: 1,
            ..held("1")
        }
    });
    rig.run(133.0);
    rig.others(MCM, |observed| observed.ready = 0);
    rig.run(133.0 + PATIENCE - 0.01);
    assert_eq!(rig.writes(), []);
    rig.run(150.0);
    assert_eq!(rig.writes(), [(133.0 + PATIENCE, KCM, Some(0))]);
}

#[test]
fn a_standby_has_taken_no_step_that_the_leader_took_first() {
    let mut rig = Rig::standby().in_outage();
    rig.holds_writes = true;
    rig.run(132.0);
    rig.others(MCM, |observed| *observed = held("1"));
    rig.input(Input::Written(MCM, Err(Refusal::Conflict)));
    rig.run(150.0);
    assert_eq!(
        rig.writes(),
        [
            (OUTAGE + PATIENCE, MCM, Some(0)),
            (132.0 + PATIENCE, KCM, Some(0))
        ]
    );
}

/// How a scaling was reported.
fn flows(rig: &Rig) -> Vec<Report> {
    let flow = |action: &Action| match action {
        Action::Report(
            report @ (Report::Begun(_)
            | Report::Ended(..)
            | Report::Abandoned(_)
            | Report::NotScaled(..)),
        ) => Some(report.clone()),
        _ => None,
    };
    rig.said(flow)
        .into_iter()
        .map(|(_, report)| report)
        .collect()
}

#[test]
fn a_standby_reports_no_scaling_that_is_all_the_leaders() {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    env.dependents[KCM.0] = DependentState::Absent;
    let mut rig = Rig::with(env).in_outage();
    rig.run(OUTAGE + 0.5);
    assert_eq!(rig.shoot.scaling(), None);
    rig.others(MCM, |observed| *observed = held("1"));
    rig.run(150.0);
    assert_eq!((flows(&rig), rig.writes()), (vec![], vec![]));
}

#[test]
fn a_standby_that_stands_in_reports_all_of_the_scaling() {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    env.dependents[KCM.0] = DependentState::Absent;
    let mut rig = Rig::with(env).in_outage();
    rig.run(150.0);
    assert_eq!(
        flows(&rig),
        [
            Report::Begun(Direction::Down),
            Report::NotScaled(KCM, Direction::Down, Refusal::NotFound),
            Report::Ended(Direction::Down, 1, 1)
        ]
    );
}

#[test]
fn a_standby_does_not_bring_back_at_once_what_a_leader_with_another_verdict_took_down() {
    let mut rig = Rig::standby();
    rig.run(100.0);
    rig.others(MCM, |observed| *observed = held("1"));
    rig.run(159.9);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleUp, vec![]));
    rig.run(200.0);
    assert_eq!(rig.writes()[0].1, MCM);
}

#[test]
fn a_standby_repairs_nothing() {
    let lost = Observed {
        marks: Marks {
            replicas: Some("2".into()),
            ..Marks::default()
        },
        ..held("2")
    };
    for leads in [true, false] {
        let mut rig = Rig::standby().in_outage();
        rig.run(131.0);
        rig.others(MCM, |observed| *observed = held("2"));
        rig.show(MCM, |observed| *observed = lost.clone());
        rig.show(KCM, |observed| *observed = held("1"));
        rig.env.leads = leads;
        rig.run(150.0);
        let writes: Vec<_> = rig
            .writes()
            .iter()
            .map(|write| (write.1, write.2))
            .collect();
        assert_eq!(writes, if leads { vec![(MCM, None)] } else { vec![] });
    }
}

#[test]
fn standby_protects_off_means_that_a_standby_neither_protects_nor_restores() {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    env.options.standby_protects.value = false;
    let mut rig = Rig::with(env.clone()).in_outage();
    rig.run(200.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleDown, vec![]));
    assert_eq!(rig.when(&Action::Verify, 0.0), [0.0; 0]);

    env.dependents = vec![DependentState::Present(Arc::new(held("2"))); 2];
    let mut rig = Rig::with(env);
    rig.run(400.0);
    assert_eq!(rig.writes(), []);
}

/// A standby beside a healthy shoot with these dependents.
fn recovering(mcm: Observed, kcm: Observed, stabilization: u64) -> Rig {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    env.dependents = [mcm, kcm]
        .map(|observed| DependentState::Present(Arc::new(observed)))
        .to_vec();
    env.options.scale_up_stabilization.value = Duration::from_secs(stabilization);
    Rig::with(env)
}

#[test]
fn a_standby_restores_in_order_once_up_was_said_for_a_minute() {
    for stabilization in [0, 40] {
        let mut rig = recovering(held("3"), held("2"), stabilization);
        rig.run(60.0 + stabilization as f64);
        assert_eq!(rig.writes(), []);
        rig.run(110.0 + stabilization as f64);
        let writes = rig.writes();
        assert_eq!(
            writes
                .iter()
                .map(|write| (write.1, write.2))
                .collect::<Vec<_>>(),
            [(KCM, Some(2)), (MCM, Some(3))]
        );
    }
}

#[test]
fn a_standby_restores_nothing_after_a_minute_without_probes() {
    let mut rig = recovering(held("3"), held("2"), 0);
    rig.input(Input::Woken);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.run(70.0);
    rig.api = Api::Answers;
    rig.settings_changed();
    rig.run(71.0);
    assert_eq!(
        (rig.verdicts.len(), rig.writes()),
        (2, vec![]),
        "{:?}",
        rig.verdicts
    );
    rig.run(150.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn a_probe_that_does_not_say_up_lets_a_standbys_minute_begin_again() {
    let mut rig = recovering(held("3"), held("2"), 0);
    rig.run(40.0);
    let down = Finding {
        verdict: Verdict::HoldUndecided,
        judged_at: rig.now,
        ..Finding::default()
    };
    rig.input(Input::Found(down));
    rig.settings_changed();
    rig.run(99.0);
    assert_eq!(rig.writes(), []);
    rig.run(120.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn a_standby_restores_only_what_carries_the_marker_and_takes_no_leftover_marker_away() {
    let marked = Observed {
        replicas: 2,
        ready: 2,
        ..held("2")
    };
    let mut rig = recovering(
        Observed {
            replicas: 0,
            ready: 0,
            ..running(1)
        },
        marked,
        0,
    );
    rig.run(400.0);
    assert_eq!(rig.writes(), []);
    rig.env.leads = true;
    rig.run(450.0);
    assert_eq!(rig.writes().len(), 2, "which the leader does");
}
