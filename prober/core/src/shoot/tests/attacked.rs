//! Timelines in which others, clocks and answers do their worst, and all is well.

use super::*;

/// Clocks of all nodes, or this machine's, are put back, or ahead, in mid-outage.
#[test]
fn clocks_that_step_in_mid_outage_do_not_delay_the_restore() {
    for by in [-15.0, -25.0, -35.0, -60.0, 35.0] {
        let mut rig = Rig::leader().in_outage();
        rig.run(300.0);
        rig.ahead = by;
        rig.renewed_at_once();
        rig.run(420.0);
        let restored: Vec<_> = rig
            .writes()
            .into_iter()
            .filter(|write| write.2 != Some(0))
            .collect();
        assert!(
            restored.len() == 2 && restored[1].0 < 320.0,
            "{by}: {restored:?}"
        );
    }
}

/// Between two levels of a scale-down the config, the settings or the lead changes, and probes
/// fail or hang from then on.
#[test]
fn a_change_between_two_levels_while_probes_fail_leaves_nothing_up() {
    for what in ["nothing", "reload", "settings", "lead"] {
        for api in [Api::Answers, Api::Fails(ProbeFailure::Other), Api::Hangs] {
            let leads = what != "lead";
            let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
            rig.pods_linger = true;
            rig.run(132.2);
            rig.api = api;
            match what {
                "reload" => rig.reloaded(),
                "settings" => rig.settings_changed(),
                "lead" => {
                    rig.env.leads = true;
                    rig.env.seed_since.up = Some(rig.now);
                    rig.input(Input::Woken);
                }
                _ => {}
            }
            rig.run(DEADLINE + 0.1);
            let down: Vec<_> = rig
                .writes()
                .into_iter()
                .map(|(_, at, to)| (at, to))
                .collect();
            assert_eq!(down, [(MCM, Some(0)), (KCM, Some(0))], "{what}, {api:?}");
        }
    }
}

/// A controller or an HPA raises what is at 0 for a minute, at once or every 3 s.
#[test]
fn somebody_who_undoes_each_write_is_not_fought() {
    for (every, lingers) in [(0.2, false), (0.2, true), (3.0, false), (3.0, true)] {
        let mut rig = Rig::leader().in_outage();
        rig.pods_linger = lingers;
        let mut t = 130.2;
        rig.run(t);
        while t < 190.0 {
            rig.others(MCM, |observed| (observed.replicas, observed.ready) = (1, 1));
            t += every;
            rig.run(t);
        }
        let writes = rig.writes().into_iter();
        let (fought, others): (Vec<_>, Vec<_>) = writes.partition(|write| write.1 == MCM);
        let probes = rig.probes(130.2).len();
        assert!(
            fought.len() <= 16 && probes <= 20,
            "every {every} s: {fought:?}"
        );
        assert!(others[0].0 <= DEADLINE + 0.1, "every {every} s: {others:?}");
    }
}

/// Of five nodes three are silent; between two levels one of these is deleted.
#[test]
fn a_silent_node_that_is_deleted_lets_no_further_level_go_down() {
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines) = (5, machines(5));
    rig.pods_linger = true;
    rig.spared = 2;
    rig.silent(SILENT);
    rig.run(132.0);
    (rig.nodes, rig.machines) = (4, machines(4));
    rig.run(150.0);
    assert!(rig.writes().iter().all(|(_, at, _)| *at == MCM));
}

/// Runs to this moment, while answers of the shoot take so long.
fn run_with_slow_answers(rig: &mut Rig, until: f64, latency: f64) {
    rig.api = Api::Hangs;
    let mut answered = rig.probes(0.0).len();
    while seconds(rig.now) < until {
        let sent = rig.probes(0.0).get(answered).copied();
        let end = sent.map_or(until, |sent| sent + latency);
        // A probe may begin meanwhile.
        let now = end.min(seconds(rig.now) + 0.05);
        rig.run(now);
        if let Some(sent) = sent.filter(|_| now >= end) {
            answered += 1;
            let actions = rig.answer(RequestTimes {
                sent: at(sent),
                ..times(now)
            });
            rig.follow(actions);
        }
    }
}

/// The duration of the shoot's answers, and when all is down at the latest; the first node is
/// marked at 140 s.
#[test]
fn a_slow_api_server_delays_each_level_by_its_answers() {
    for (latency, by_leader, by_standby) in [
        (0.0, 135.2, 135.2),
        (1.0, 136.2, 136.2),
        (1.9, 137.1, 137.1),
        (3.0, 137.1, 137.1),
        (4.9, 137.1, 139.2),
    ] {
        for (leads, until) in [(true, by_leader), (false, by_standby)] {
            let mut rig = Rig::with(OwnedEnvironment { leads, ..two() }).in_outage();
            rig.pods_linger = true;
            rig.run(SILENT);
            run_with_slow_answers(&mut rig, 175.0, latency);
            let writes = rig.writes();
            assert!(
                writes.len() == 2 && writes[1].0 <= until,
                "answers in {latency} s, leads {leads}: {writes:?}"
            );
        }
    }
}
