//! Timelines in which others, clocks and answers do their worst, and all is well.

use super::*;

#[test]
fn stepped_clocks_delay_no_restore() {
    for by in [-15.0, -25.0, -35.0, -60.0, 35.0] {
        let mut leader = outage();
        leader.until(170.0).mark();
        leader.nodes.ahead = by;
        leader.nodes_back().until(120.0);
        let restored = leader.writes_from(0.0);
        assert!(
            restored.len() == 2 && restored[1].0 < 20.0,
            "{by}: {restored:?}"
        );
    }
}

/// Between two levels of a scale-down the config, the settings or the lead changes, and probes
/// fail or hang from then on.
#[test]
fn change_leaves_nothing_up() {
    for what in ["nothing", "reload", "settings", "lead"] {
        for api in [Api::Answers, FAILS, Api::Hangs] {
            let mut shoot = outage().leads(what != "lead").pods_linger();
            shoot.until(2.1);
            shoot.api = api;
            match what {
                "reload" => shoot.reload(|_| ()),
                "settings" => shoot.change_settings(),
                "lead" => shoot.gain_lead(),
                _ => &mut shoot,
            }
            .until(DEADLINE + 0.1);
            assert_eq!(shoot.scaled(), ALL_DOWN, "{what}, {api:?}");
        }
    }
}

/// A controller or an HPA raises what is at 0 for a minute, at once or every 3 s.
#[test]
fn persistent_undoer_is_not_fought() {
    for (every, lingers) in [(0.2, false), (0.2, true), (3.0, false), (3.0, true)] {
        let mut leader = outage();
        leader.seed.pods_linger = lingers;
        let mut time = 0.1;
        leader.until(time);
        while time < 60.0 {
            leader.others(MCM, |observed| (observed.replicas, observed.ready) = (1, 1));
            time += every;
            leader.until(time);
        }
        let writes = leader.writes().into_iter();
        let (fought, others): (Vec<_>, Vec<_>) = writes.partition(|write| write.1 == MCM);
        assert!(
            fought.len() <= 16 && leader.probes(0.1).len() <= 20,
            "every {every} s: {fought:?}"
        );
        assert!(others[0].0 <= DEADLINE + 0.1, "every {every} s: {others:?}");
    }
}

/// Of five nodes three are silent; between two levels one of these is deleted.
#[test]
fn deleted_node_stops_a_level() {
    let mut leader = outage().of_nodes(5).spared(2).pods_linger();
    leader.until(2.0);
    let mut leader = leader.of_nodes(4);
    leader.until(20.0);
    assert!(leader.scaled().iter().all(|(id, _)| *id == MCM));
}

/// Lets time pass while answers of the shoot take so long.
fn until_with_slow_answers(shoot: &mut Timeline, end: f64, latency: f64) {
    shoot.api = Api::Hangs;
    let mut answered = shoot.probes(f64::MIN).len();
    while shoot.time() < end {
        let sent = shoot.probes(f64::MIN).get(answered).copied();
        let answer = sent.map_or(end, |sent| sent + latency);
        // A probe may begin meanwhile.
        let now = answer.min(shoot.time() + 0.05);
        shoot.until(now);
        if let Some(sent) = sent.filter(|_| now >= answer) {
            answered += 1;
            shoot.answer(sent);
        }
    }
}

/// Duration of the shoot's answers, and when all is down at the latest; the first node is marked at
/// 9.9 s.
#[test]
fn slow_answers_delay_each_level() {
    for (latency, by_leader, by_standby) in [
        (0.0, 5.1, 5.1),
        (1.0, 6.1, 6.1),
        (1.9, 7.0, 7.0),
        (3.0, 7.0, 7.0),
        (4.9, 7.0, 9.1),
    ] {
        for (leads, latest) in [(true, by_leader), (false, by_standby)] {
            let mut shoot = outage().leads(leads).pods_linger();
            shoot.until(-25.0);
            until_with_slow_answers(&mut shoot, 45.0, latency);
            let writes = shoot.writes();
            assert!(
                writes.len() == 2 && writes[1].0 <= latest,
                "answers in {latency} s, leads {leads}: {writes:?}"
            );
        }
    }
}
