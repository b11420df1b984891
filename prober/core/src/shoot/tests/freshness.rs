//! D-56, D-57: what a write rests on was asked for since the write is allowed.

use super::*;

#[test]
fn allowed_again_wants_a_new_probe() {
    type Change = fn(&mut OwnedEnvironment);
    #[rustfmt::skip]
    let cases: [(&str, Change, Change); 4] = [
        ("a pause is lifted", |env| env.paused = Some(true), |env| env.paused = Some(false)),
        ("the owner record is ours", |env| env.owner = Owner::Unknown, |env| env.owner = Owner::Here),
        ("the lead is gained", |env| env.leads = false, |env| env.leads = true),
        ("the Clusters are seen", |env| env.seed_since.down = None, |env| env.seed_since.down = env.seed_since.up),
    ];
    for (what, prevent, allow) in cases {
        let mut replica = outage().with(|env| env.options.standby_protects.value = false);
        prevent(&mut replica.env);
        replica.until(3.0).nodes_back().until(5.9);
        assert_eq!(
            (replica.verdict(), replica.writes()),
            (Verdict::ScaleDown, vec![]),
            "{what}: nobody has probed since"
        );
        replica.env.seed_since.up = Some(replica.moment(6.0));
        allow(&mut replica.env);
        replica.jump(6.0).until(70.0);
        assert_eq!(replica.probes(5.9)[0], 6.0, "{what}");
        assert_eq!(replica.writes(), [], "{what}");
    }
}

#[test]
fn new_terms_want_a_new_probe() {
    type Change = fn(&mut Timeline);
    #[rustfmt::skip]
    let cases: [(&str, Change); 3] = [
        ("a reload", |leader| _ = leader.reload(|_| ())),
        ("other settings", |leader| _ = leader.change_settings()),
        ("a suspended process", |leader| leader.env.seed_since.down = Some(leader.moment(1.9))),
    ];
    for (what, change) in cases {
        let mut leader = outage().holds_permits();
        leader.until(0.0);
        leader.api = Api::Hangs;
        change(leader.jump(1.9));
        leader.permit(MCM);
        assert_eq!(leader.probes(1.9), [1.9], "{what}");
        assert_eq!(leader.writes(), [], "{what}");
    }
}

#[test]
fn renewals_stop_a_waiting_standby() {
    let mut standby = outage().standby();
    standby.until(1.0).nodes_back().until(70.0);
    assert_eq!(standby.verdict(), Verdict::ScaleUp);
    assert_eq!(standby.writes(), []);
    assert!(standby.probes(1.0)[0] <= PATIENCE);
}

#[test]
fn scale_down_is_probed_closely() {
    for leads in [true, false] {
        let mut shoot = outage().leads(leads).pods_linger();
        shoot.until(10.0);
        let [(first, ..), (second, ..)] = shoot.writes()[..] else {
            panic!("{:?}", shoot.writes())
        };
        let mut probes = shoot.probes(first);
        probes.retain(|probe| *probe <= second);
        assert!(second > first + 3.0, "leads {leads}");
        assert!(longest_gap(&probes) < 1.01, "leads {leads}: {probes:?}");
    }
}

#[test]
fn long_scale_down_is_probed_less_closely() {
    let mut leader = outage().holds_permits();
    leader.until(40.0);
    let probes = leader.probes(11.0);
    assert!(probes.len() > 9, "{probes:?}");
    for two in probes.windows(2) {
        assert!((2.4..2.6).contains(&(two[1] - two[0])), "{probes:?}");
    }
}

#[test]
fn renewals_keep_the_next_level_up() {
    let mut leader = outage().pods_linger();
    leader.until(1.0).nodes_back().until(10.0);
    assert_eq!(leader.writes()[0], (0.0, MCM, 0));
    assert!(!leader.scaled().contains(&(KCM, 0)));
}

#[test]
fn hold_for_proof_stops_a_level() {
    // D-73
    let mut leader = outage().of_nodes(5).spared(2).pods_linger();
    leader.until(1.0);
    assert_eq!(leader.writes(), [(0.3, MCM, 0)]);
    // Two of the three that were silent are back. The others' next renewals are 10 s apart.
    let mut leader = leader.spared(4);
    leader.until(9.0);
    assert_eq!(leader.verdict(), Verdict::HoldUndecided);
    assert_eq!(leader.writes().len(), 1, "the next level was due at 5.3 s");
    leader.until(20.0);
    assert_eq!(leader.writes()[1..], [(10.3, MCM, 1)]);
}

#[test]
fn another_hold_stops_no_level() {
    for (verdict, machines) in [(Verdict::HoldNoMachines, 0), (Verdict::HoldUndecided, 3)] {
        let mut leader = outage().pods_linger();
        leader.until(1.0);
        leader.nodes.machines = machines;
        leader.nodes.excluded = true;
        leader.change_settings().until(6.0);
        assert_eq!(leader.verdict(), verdict);
        assert_eq!(leader.writes()[1..], [(5.0, KCM, 0)]);
    }
}

#[test]
fn restore_wants_a_new_answer() {
    let mut leader = healthy()
        .all_held_down()
        .config(|config| config.dependents[MCM.0].scale_up.initial_delay = Duration::from_secs(10));
    leader.until(31.0);
    assert_eq!(leader.writes(), [(30.0, KCM, 1)]);
    leader.until(39.0);
    leader.api = Api::Hangs;
    leader.until(60.0);
    assert_eq!(leader.writes().len(), 1, "its turn was at 40 s");
    leader.answer(60.0).until(61.0);
    assert_eq!(leader.writes()[1], (60.0, MCM, 1));
}

#[test]
fn silent_leader_is_not_waited_for() {
    for (what, silent_from, first) in [
        ("it was killed before the outage", -10.0, 0.0),
        ("in the patience of the standby", 0.5, 0.5),
        ("it lives", 60.0, PATIENCE),
    ] {
        let mut standby = outage().standby();
        standby.env.leader_silent_from = Some(standby.moment(silent_from));
        standby.until(10.0);
        assert_eq!(standby.writes()[0], (first, MCM, 0), "{what}");
        assert_eq!(standby.writes().len(), 2, "{what}");
        assert_eq!(standby.verified(), [0.0], "{what}");
    }
}

#[test]
fn silent_leader_ends_the_wait() {
    let mut standby = outage().standby();
    standby.until(-1.0);
    standby.others(MCM, |observed| *observed = ending());
    standby.env.leader_silent_from = Some(standby.moment(6.0));
    standby.until(10.0);
    assert_eq!(standby.writes(), [(6.0, KCM, 0)]);
}

/// A standby whose probe is under way when its turn comes, as all are since the verdict.
fn unanswered() -> Timeline {
    let mut standby = outage().standby().pods_linger();
    standby.until(0.0);
    standby.api = Api::Hangs;
    standby.until(PATIENCE);
    standby
}

#[test]
fn standby_awaits_a_probe_for_2_s() {
    // D-71
    for (why, answered, first) in [
        ("there is none", None, PATIENCE + 2.0),
        ("it was sent before", Some(1.0), PATIENCE + 2.0),
        ("it was sent since", Some(PATIENCE + 0.1), 2.4),
    ] {
        let mut standby = unanswered();
        if let Some(sent) = answered {
            standby.until(2.4).answer(sent);
        }
        standby.until(PATIENCE + 2.01);
        assert_eq!(standby.writes(), [(first, MCM, 0)], "{why}");
    }
}

#[test]
fn standby_writes_by_no_old_probe() {
    // D-71
    let mut standby = unanswered().holds_permits();
    standby.until(5.1);
    let permit = Action::AcquirePermit(MCM, Direction::Down);
    assert_eq!(standby.when(&permit), [PATIENCE + 2.0]);
    standby.permit(MCM).until(20.0);
    assert_eq!(standby.writes(), []);
    standby.answer(1.0).permit(MCM);
    assert_eq!(
        standby.writes(),
        [(20.0, MCM, 0)],
        "an answer counts from when it is there"
    );
}

#[test]
fn next_level_awaits_a_probe() {
    for leads in [true, false] {
        let mut replica = outage().leads(leads).pods_linger();
        replica.env.leader_silent_from = Some(Moment::START);
        replica.until(1.4);
        replica.api = FAILS;
        if leads {
            replica.reload(|_| ());
        }
        replica.env.leads = true;
        replica.until(10.0);
        assert_eq!(
            replica.writes()[1..],
            [(DEADLINE, KCM, 0)],
            "it led: {leads}"
        );
    }
}

#[test]
fn order_ends_an_initial_delay() {
    for (delay, taken_down) in [(0, 0.0), (3, 3.0), (120, DEADLINE)] {
        let mut leader = outage().config(|config| {
            config.dependents[KCM.0].scale_down.initial_delay = Duration::from_secs(delay);
        });
        leader.until(20.0);
        assert_eq!(leader.writes(), [(0.0, MCM, 0), (taken_down, KCM, 0)]);
    }
}

#[test]
fn new_leader_awaits_a_probe() {
    let mut replica = outage().standby().pods_linger();
    replica.until(1.2);
    replica.api = FAILS;
    replica.env.leads = true;
    replica.until(DEADLINE + 2.0);
    assert_eq!(replica.writes(), []);
    replica.api = Api::Answers;
    replica.until(20.0);
    assert_eq!(replica.scaled(), ALL_DOWN);
}

#[test]
fn failed_probes_back_off() {
    let mut leader = outage().holds_permits();
    leader.until(1.4);
    leader.api = FAILS;
    leader.reload(|_| ()).until(30.0);
    let probes = leader.probes(2.0);
    assert!(probes.len() <= 8, "{probes:?}");
    assert!(longest_gap(&probes) <= 6.0, "{probes:?}");
}
