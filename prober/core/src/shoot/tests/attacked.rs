//! Timelines in which others, clocks and answers do their worst, and all is well.

use super::*;

/// Between two levels of a scale-down the config, the settings or the lead changes, and probes
/// fail or hang from then on.
#[test]
fn change_leaves_nothing_up() {
    for change in ["nothing", "reload", "settings", "lead"] {
        for api in ["probes answered", "probes fail", "probes hang"] {
            let replica = if change == "lead" {
                "standby"
            } else {
                "nothing"
            };
            let mut shoot = begin(&format!("outage, pods linger, {replica}"));
            shoot.then(&format!("2.1 {api}, {change}; {}", DEADLINE + 0.1));
            assert_eq!(shoot.shown("scaled"), "mcm 0, kcm 0", "{change}, {api}");
        }
    }
}

/// A controller or an HPA raises what is at 0 for a minute, at once or every 3 s.
#[test]
fn persistent_undoer_is_not_fought() {
    for (every, pods) in [
        (0.2, ""),
        (0.2, ", pods linger"),
        (3.0, ""),
        (3.0, ", pods linger"),
    ] {
        let mut leader = begin(&format!("outage{pods}"));
        let mut time = 0.1;
        while time < 60.0 {
            leader.then(&format!("{time} mcm ready at 1"));
            time += every;
        }
        leader.until(time);
        let (fought, others): (Vec<_>, Vec<_>) = leader
            .writes()
            .into_iter()
            .partition(|write| write.1 == MCM);
        assert!(
            fought.len() <= 16 && leader.probes(0.1).len() <= 20,
            "every {every} s: {fought:?}"
        );
        assert!(others[0].0 <= DEADLINE + 0.1, "every {every} s: {others:?}");
    }
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
        for (replica, latest) in [("nothing", by_leader), ("standby", by_standby)] {
            let mut shoot = begin(&format!("outage, pods linger, {replica}"));
            shoot.until(-25.0);
            until_with_slow_answers(&mut shoot, 45.0, latency);
            let writes = shoot.writes();
            assert!(
                writes.len() == 2 && writes[1].0 <= latest,
                "answers in {latency} s, {replica}: {writes:?}"
            );
        }
    }
}
