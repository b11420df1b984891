//! D-51 and D-54: what is probed and written how soon after a start.

use super::*;

/// A beat of 10 s and a second after the first probe the nodes could have renewed.
#[test]
fn start_protects_in_time() {
    for (in_operation, first) in [(true, 11.001), (false, 30.0)] {
        let mut leader = healthy()
            .starting(Moment::START, in_operation)
            .silent(-50.0);
        leader.until(20.0);
        assert_eq!(leader.verdict(), Verdict::ScaleDown);
        leader.until(100.0);
        assert_eq!(leader.writes(), [(first, MCM, 0), (first, KCM, 0)]);
    }
}

#[test]
fn initial_delay_holds_restores() {
    for in_operation in [true, false] {
        let mut leader = healthy().all_held_down();
        leader = leader.starting(Moment::START, in_operation);
        leader.until(29.9);
        assert_eq!(leader.verdict(), Verdict::ScaleUp);
        assert_eq!(leader.writes(), []);
        leader.until(40.0);
        assert_eq!(leader.writes()[0], (30.0, KCM, 1));
    }
}

#[test]
fn first_probes_are_spread() {
    for (what, in_operation, first) in [
        ("over the spread", true, 0.5),
        ("over half of initialDelay", false, 7.5),
    ] {
        for gains_lead in [false, true] {
            let mut replica = healthy()
                .starting(Moment::START, in_operation)
                .config(|config| config.probe_interval = Duration::from_secs(1))
                .leads(!gains_lead)
                .with(|env| env.chance = 0.5);
            replica.until(0.1).gain_lead().until(20.0);
            assert_eq!(replica.probes(0.0)[0], first, "{what}");
        }
    }
}

/// Whatever is urgent: no probe was complete yet, initialDelay ends at 30 s, and settings may have
/// changed since.
#[test]
fn retry_after_beats_urgency() {
    for (asked_ms, changed, second) in [
        (10_000, false, 10.0),
        (10_000, true, 10.0),
        (45_000, true, 45.0),
        (500, true, 0.5),
        (500, false, 1.0),
    ] {
        let mut leader = healthy().eligible(0.0);
        let retry_after = TimeDelta::milliseconds(asked_ms);
        leader.api = Api::Fails(ProbeFailure::Throttled(Some(retry_after)));
        leader.until(0.2);
        if changed {
            leader.change_settings();
        }
        let case = format!("{asked_ms} ms, settings changed: {changed}");
        assert_eq!(leader.seconds(leader.shoot.due()), second, "{case}");
        leader.until(50.0);
        assert_eq!(leader.probes(0.0)[..2], [0.0, second], "{case}");
    }
}
