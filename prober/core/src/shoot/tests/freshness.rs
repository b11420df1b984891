//! D-56, D-57: what a write rests on was asked for since the write is allowed.

use super::*;

#[test]
fn what_becomes_allowed_rests_on_a_later_probe_and_not_on_the_old_verdict() {
    type EnvChange = fn(&mut OwnedEnvironment);
    let kept: [(&str, EnvChange, EnvChange); 4] = [
        (
            "a pause is lifted",
            |env| env.paused = Some(true),
            |env| env.paused = Some(false),
        ),
        (
            "the owner record is ours",
            |env| env.owner = Owner::Unknown,
            |env| env.owner = Owner::Here,
        ),
        (
            "the lead is gained",
            |env| env.leads = false,
            |env| env.leads = true,
        ),
        (
            "the Clusters are seen",
            |env| env.seed_since.down = None,
            |env| env.seed_since.down = Some(at(136.0)),
        ),
    ];
    for (what, prevent, allow) in kept {
        let mut rig = Rig::leader().in_outage();
        rig.env.options.standby_protects.value = false;
        prevent(&mut rig.env);
        rig.run(133.0);
        assert_eq!(
            (rig.verdict(), rig.writes()),
            (Verdict::ScaleDown, vec![]),
            "{what}"
        );
        rig.renewed_at_once();
        rig.run(135.9);
        assert_eq!(
            rig.verdict(),
            Verdict::ScaleDown,
            "{what}: nobody has probed since"
        );
        allow(&mut rig.env);
        rig.now = at(136.0);
        rig.run(200.0);
        assert_eq!(
            (rig.probes(136.0)[0], rig.writes()),
            (136.0, vec![]),
            "{what}"
        );
    }
}

#[test]
fn what_stays_allowed_costs_no_further_probe() {
    let mut rig = Rig::leader().in_outage();
    rig.run(OUTAGE);
    assert_eq!(
        rig.orders()
            .iter()
            .map(|order| seconds(order.judged_at))
            .collect::<Vec<_>>(),
        [OUTAGE; 2]
    );
}

#[test]
fn a_reload_or_other_settings_let_a_write_rest_on_a_later_probe() {
    for change in [Rig::reloaded, Rig::settings_changed] {
        let mut rig = Rig::leader().in_outage();
        rig.holds_permits = true;
        rig.run(OUTAGE);
        rig.api = Api::Hangs;
        rig.now = at(132.0);
        change(&mut rig);
        rig.input(Input::Permitted(MCM));
        assert_eq!(rig.writes(), []);
    }
}

#[test]
fn a_standby_whose_nodes_renew_during_its_patience_writes_nothing() {
    let mut rig = Rig::standby().in_outage();
    rig.run(OUTAGE + 1.0);
    rig.renewed_at_once();
    rig.run(200.0);
    assert_eq!((rig.verdict(), rig.writes()), (Verdict::ScaleUp, vec![]));
    assert!(rig.probes(OUTAGE + 1.0)[0] <= OUTAGE + PATIENCE);
}

#[test]
fn probes_follow_each_other_closely_while_a_scale_down_runs() {
    for leads in [true, false] {
        let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
        rig.pods_linger = true;
        rig.run(140.0);
        let (first, ..) = rig.writes()[0];
        let (second, ..) = rig.writes()[1];
        let probes: Vec<f64> = rig
            .probes(first)
            .into_iter()
            .filter(|probe| *probe <= second)
            .collect();
        assert!(
            second > first + 3.0 && longest_gap(&probes) < 1.01,
            "leads {leads}: {probes:?}"
        );
    }
}

#[test]
fn a_level_whose_time_comes_after_the_nodes_have_renewed_stays_up() {
    let mut rig = Rig::leader().in_outage();
    rig.pods_linger = true;
    rig.run(OUTAGE + 1.0);
    rig.renewed_at_once();
    rig.run(140.0);
    assert_eq!(rig.writes()[0], (OUTAGE, MCM, Some(0)));
    assert!(
        !rig.writes().contains(&(OUTAGE + 5.0, KCM, Some(0))),
        "{:?}",
        rig.writes()
    );
}

#[test]
fn a_hold_for_want_of_proof_lets_no_further_level_go_down() {
    // D-73
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines) = (5, machines(5));
    rig.pods_linger = true;
    rig.spared = 2;
    rig.silent(SILENT);
    rig.run(131.0);
    assert_eq!(rig.writes(), [(130.401, MCM, Some(0))]);
    // Two of the three that were silent are back. The others' next renewals are 10 s apart.
    rig.spared = 4;
    rig.run(139.0);
    assert_eq!(
        (rig.verdict(), rig.writes().len()),
        (Verdict::HoldUndecided, 1),
        "kube-controller-manager's turn was 5 s after the first level's"
    );
    rig.run(150.0);
    assert_eq!(rig.writes()[1..], [(140.401, MCM, Some(1))]);
}

#[test]
fn a_hold_for_another_reason_lets_the_next_level_go_down() {
    let machines_are_gone = |rig: &mut Rig| rig.machines = Arc::default();
    let no_node_counts = |rig: &mut Rig| {
        rig.excluded = Some(NodeCondition {
            kind: "NetworkUnavailable",
            status: "True",
            reason: "NoRouteCreated",
        });
        rig.settings_changed();
    };
    for (hold, verdict) in [
        (machines_are_gone as fn(&mut Rig), Verdict::HoldNoMachines),
        (no_node_counts, Verdict::HoldUndecided),
    ] {
        let mut rig = Rig::leader().in_outage();
        rig.pods_linger = true;
        rig.run(131.0);
        hold(&mut rig);
        rig.run(136.0);
        assert_eq!(
            (rig.verdict(), &rig.writes()[1..]),
            (verdict, &[(OUTAGE + 5.0, KCM, Some(0))][..])
        );
    }
}

#[test]
fn a_step_of_a_restore_wants_an_answer_since_its_turn() {
    let mut env = two();
    Arc::make_mut(&mut env.config).dependents[MCM.0]
        .scale_up
        .initial_delay = Duration::from_secs(10);
    env.dependents = vec![DependentState::Present(Arc::new(held("1"))); 2];
    let mut rig = Rig::with(env);
    rig.run(31.0);
    assert_eq!(rig.writes(), [(30.0, KCM, Some(1))]);
    rig.run(39.0);
    rig.api = Api::Hangs;
    rig.run(60.0);
    assert_eq!(rig.writes().len(), 1, "its turn was at 40 s");
    let actions = rig.answer(times(60.0));
    rig.follow(actions);
    rig.run(61.0);
    assert_eq!(rig.writes()[1], (60.0, MCM, Some(1)));
}

#[test]
fn after_failed_probes_in_an_outage_every_replica_asks_again_within_5_s() {
    for leads in [true, false] {
        let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
        rig.run(150.0);
        rig.api = Api::Fails(ProbeFailure::Other);
        rig.run(200.0);
        let probes = rig.probes(170.0);
        assert!(longest_gap(&probes) <= 6.0, "leads {leads}: {probes:?}");
    }
}

#[test]
fn a_leader_that_has_missed_two_renewals_is_not_waited_for() {
    // It was killed before the outage, in the patience, or lives.
    for (silent_from, first) in [
        (120.0, OUTAGE),
        (OUTAGE + 0.5, OUTAGE + 0.5),
        (200.0, OUTAGE + PATIENCE),
    ] {
        let mut rig = Rig::standby().in_outage();
        rig.env.leader_silent_from = Some(at(silent_from));
        rig.run(140.0);
        assert_eq!(
            (rig.writes()[0], rig.writes().len()),
            ((first, MCM, Some(0)), 2),
            "silent from {silent_from}"
        );
        assert_eq!(
            rig.when(&Action::Verify, 0.0),
            [OUTAGE],
            "the seed is read again all the same"
        );
    }
}

#[test]
fn a_leader_that_falls_silent_between_two_levels_is_not_waited_for() {
    let mut rig = Rig::standby().in_outage();
    rig.run(OUTAGE - 1.0);
    rig.others(MCM, |observed| {
        *observed = Observed {
            ready: 1,
            ..held("1")
        }
    });
    rig.env.leader_silent_from = Some(at(136.0));
    rig.run(140.0);
    assert_eq!(rig.writes(), [(136.0, KCM, Some(0))]);
}

/// A standby whose probe is under way when its turn comes, as all are since the verdict.
fn standby_that_waits_for_an_answer() -> Rig {
    let mut rig = Rig::standby().in_outage();
    rig.pods_linger = true;
    rig.run(OUTAGE);
    rig.api = Api::Hangs;
    rig.run(OUTAGE + PATIENCE);
    rig
}

/// Answers a probe that was sent at a moment at another one.
fn answered(rig: &mut Rig, sent: f64, received: f64) {
    rig.run(received);
    let actions = rig.answer(RequestTimes {
        sent: at(sent),
        ..times(received)
    });
    rig.follow(actions);
}

#[test]
fn a_standby_waits_for_a_probe_since_its_turn_but_not_for_long() {
    // D-71
    let latest = OUTAGE + PATIENCE + 2.0;
    let mut rig = standby_that_waits_for_an_answer();
    rig.run(latest - 0.01);
    assert_eq!(rig.writes(), []);
    rig.run(latest + 0.01);
    assert_eq!(rig.writes(), [(latest, MCM, Some(0))]);

    let mut rig = standby_that_waits_for_an_answer();
    answered(&mut rig, OUTAGE + 1.0, 132.5);
    assert_eq!(rig.writes(), [], "it was sent before");
    rig.run(latest + 0.01);
    assert_eq!(rig.writes(), [(latest, MCM, Some(0))]);

    let mut rig = standby_that_waits_for_an_answer();
    answered(&mut rig, OUTAGE + 1.6, 132.5);
    assert_eq!(rig.writes(), [(132.5, MCM, Some(0))]);
}

#[test]
fn a_standby_writes_by_no_probe_that_was_over_more_than_5_s_ago() {
    // D-71
    let mut rig = standby_that_waits_for_an_answer();
    rig.holds_permits = true;
    rig.run(OUTAGE + 5.1);
    let permit = Action::AcquirePermit(MCM, Direction::Down);
    assert_eq!(rig.when(&permit, 0.0), [OUTAGE + PATIENCE + 2.0]);
    rig.input(Input::Permitted(MCM));
    rig.run(150.0);
    assert_eq!(rig.writes(), []);
    answered(&mut rig, 131.2, 150.0);
    rig.input(Input::Permitted(MCM));
    assert_eq!(
        rig.writes(),
        [(150.0, MCM, Some(0))],
        "an answer counts from when it is there"
    );
}

#[test]
fn a_scale_down_that_has_begun_waits_for_an_answer_since_a_reload_but_not_for_long() {
    let gained = |rig: &mut Rig| rig.env.leads = true;
    let reloaded = |rig: &mut Rig| rig.reloaded();
    for (leads, restart) in [(true, reloaded as fn(&mut Rig)), (false, gained)] {
        let mut rig = Rig::with(OwnedEnvironment {
            leads,
            leader_silent_from: Some(at(0.0)),
            ..two()
        })
        .in_outage();
        rig.pods_linger = true;
        rig.run(131.5);
        rig.api = Api::Fails(ProbeFailure::Other);
        restart(&mut rig);
        rig.run(140.0);
        assert_eq!(
            rig.writes()[1..],
            [(DEADLINE, KCM, Some(0))],
            "it led: {leads}"
        );
    }
}

#[test]
fn a_standby_that_gains_the_lead_before_its_turn_waits_for_a_probe_since() {
    let mut rig = Rig::standby().in_outage();
    rig.pods_linger = true;
    rig.run(OUTAGE + 1.2);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.env.leads = true;
    rig.run(DEADLINE + 2.0);
    assert_eq!(rig.writes(), [], "past the ordering deadline");
    rig.api = Api::Answers;
    rig.run(150.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn failed_probes_in_an_outage_follow_each_other_after_growing_waits() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_permits = true;
    rig.run(131.5);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.reloaded();
    rig.run(160.0);
    let probes = rig.probes(132.0);
    assert!(
        probes.len() <= 8 && longest_gap(&probes) <= 6.0,
        "{probes:?}"
    );
}

#[test]
fn after_the_last_protective_write_a_probe_follows_within_a_second() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(OUTAGE + 0.5);
    rig.api = Api::Hangs;
    rig.run(132.0);
    // A probe is under way while both are written.
    for order in rig.orders() {
        let actions = rig.write(&order);
        rig.follow(actions);
    }
    rig.run(132.5);
    rig.api = Api::Answers;
    let actions = rig.answer(times(132.0));
    rig.follow(actions);
    rig.run(140.0);
    assert!(rig.probes(132.1)[0] <= 133.5, "{:?}", rig.probes(132.0));
}

#[test]
fn a_standby_reads_the_seed_during_its_patience_and_not_long_before() {
    let mut env = OwnedEnvironment {
        leads: false,
        ..two()
    };
    Arc::make_mut(&mut env.config).initial_delay = Duration::from_secs(60);
    let start = Start {
        eligible: at(100.0),
        in_operation: false,
    };
    let mut rig = Rig::starting(start, env).in_outage();
    rig.run(200.0);
    assert_eq!(
        (rig.when(&Action::Verify, 0.0), rig.writes()[0].0),
        (vec![160.0], 160.0 + PATIENCE)
    );
}
