use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::tests::scene::{GRACE, at, criteria, lease, span, times, wall};

/// Observations of a lease: probe and renew time in seconds.
type Shown = &'static [(f64, f64)];

/// A clock after these observations.
fn shown(probes: &[(f64, f64)]) -> LeaseClock {
    let ((first, stamp), further) = probes
        .split_first()
        .map(|(first, further)| (*first, further))
        .expect("a probe");
    let mut clock = LeaseClock::new(&times(first), wall(stamp), Some(40));
    let mut before = at(first);
    for &(seconds, stamp) in further {
        clock.observe(&times(seconds), before, wall(stamp), Some(40), GRACE);
        before = at(seconds);
    }
    clock
}

impl LeaseClocks {
    fn get(&self, node: &str) -> Option<&LeaseClock> {
        self.iter()
            .find(|(name, _)| *name == node)
            .map(|(_, clock)| clock)
    }
}

#[test]
fn threshold_of_a_grace_and_a_beat() {
    let kubelets = [
        (40.0, Some(40), 30.0),
        (50.0, Some(40), 37.5),
        (20.0, Some(40), 15.0),
        (19.9, Some(40), 15.0),
        (10.0, Some(40), 15.0),
        (0.004, Some(40), 15.0),
    ];
    let others = [
        (8.0, Some(8), 6.0),
        (4.0, Some(8), 3.0),
        (3.9, Some(8), 3.0),
        (40.0, Some(120), 45.0),
        (10.0, None, 15.0),
        (10.0, Some(0), 15.0),
    ];
    for (period, duration, threshold) in kubelets.into_iter().chain(others) {
        let grace = Grace::new(span(period));
        let clock = LeaseClock::new(&times(0.0), wall(0.0), duration);
        let by = Criteria {
            grace,
            ..criteria(at(0.0))
        };
        assert_eq!(
            (clock.expires(by), grace.for_beat(clock.beat()).threshold()),
            (at(threshold), span(threshold)),
            "{period} s, {duration:?}"
        );
        assert_eq!(
            grace.for_beat(clock.beat()).is_too_short(),
            threshold > period * 0.75 + 1e-9,
            "{period} s, {duration:?}"
        );
    }
    assert!(
        Grace::new(TimeDelta::MAX).threshold() > TimeDelta::days(365),
        "a grace beyond reason does not wrap"
    );
}

#[test]
fn endless_lease_never_expires() {
    let clock = LeaseClock::new(&times(0.0), wall(0.0), Some(i32::MAX));
    assert_eq!(
        clock.state(criteria(at(1e8))),
        LeaseState::Valid,
        "{clock:?}"
    );
}

#[test]
fn shortest_beat_sets_the_threshold() {
    let seen = |durations: &[i32]| {
        let mut leases = LeaseClocks::default();
        let names: Vec<_> = (0..durations.len()).map(|at| at.to_string()).collect();
        let records = names
            .iter()
            .zip(durations)
            .map(|(name, &seconds)| LeaseRecord {
                duration_seconds: Some(seconds),
                ..lease(name, 0.0)
            });
        leases.observe(&times(0.0), records, GRACE);
        leases.grace(Grace::new(span(10.0))).threshold()
    };
    assert_eq!(seen(&[40, 40, i32::MAX]), span(15.0));
    assert_eq!(seen(&[40, 8]), span(7.5));
    assert_eq!(seen(&[]), span(15.0), "a kubelet's, before one is seen");
}

#[test]
fn beat_of_a_lease_and_a_grace() {
    let cases = [
        (Some(40), 40.0, 10.0),
        (Some(20), 40.0, 5.0),
        (Some(60), 40.0, 10.0),
        (Some(60), 80.0, 15.0),
        (Some(3), 40.0, 0.75),
        (Some(40), 20.0, 5.0),
        (Some(40), 19.0, 10.0),
    ];
    let absent = [
        (None, 40.0, 10.0),
        (Some(0), 40.0, 10.0),
        (Some(-8), 40.0, 10.0),
        (None, 80.0, 10.0),
        (None, 8.0, 10.0),
    ];
    for (duration, grace, beat) in cases.into_iter().chain(absent) {
        assert_eq!(
            Grace::new(span(grace)).beat(duration),
            span(beat),
            "{duration:?}, grace {grace} s"
        );
    }
}

#[test]
fn renewal_by_what_was_shown() {
    #[rustfmt::skip]
    let cases: [(&str, Shown, f64, f64); 23] = [
        // From -1 s to a beat and 1 s the clocks agree.
        ("at once", &[(0.0, -20.0), (10.0, 10.0)], 0.0, 10.0),
        ("5 s later", &[(0.0, -20.0), (10.0, 5.0)], 0.0, 5.0),
        ("11 s later", &[(0.0, -20.0), (10.0, -1.0)], 0.0, -1.0),
        ("1 s ahead", &[(0.0, -20.0), (10.0, 11.0)], 0.0, 10.0),
        ("just behind", &[(0.0, -21.001), (10.0, -1.001)], 11.001, 10.0),
        ("1 min behind", &[(0.0, -70.0), (10.0, -50.0)], 60.0, 10.0),
        ("1 h behind", &[(0.0, -3610.0), (10.0, -3590.0)], 3600.0, 10.0),
        ("just ahead", &[(0.0, -8.999), (10.0, 11.001)], -1.001, 10.0),
        ("1 min ahead", &[(0.0, 50.0), (10.0, 70.0)], -60.0, 10.0),
        ("the future at first sight", &[(0.0, 600.0)], 0.0, 0.0),
        // D-69: the clocks may agree, and the node be silent since. The next change tells.
        ("one late change", &[(0.0, -35.0), (20.0, 1.0)], 0.0, 1.0),
        ("from before the last probe", &[(0.0, -35.0), (20.0, -1.001)], 21.001, 20.0),
        ("then behind", &[(0.0, -35.0), (20.0, 1.0), (30.0, 11.0)], 19.0, 30.0),
        ("then they agree", &[(0.0, -35.0), (20.0, 1.0), (30.0, 28.0)], 0.0, 28.0),
        ("a second blip", &[(0.0, -35.0), (20.0, 1.0), (100.0, 85.0)], 0.0, 85.0),
        // D-69: no drift is forgiven beyond ten minutes of silence.
        ("10 min", &[(0.0, -1.0), (10.0, 9.0), (610.0, 591.0)], 0.0, 591.0),
        ("1 h", &[(0.0, -1.0), (10.0, 9.0), (3610.0, 3591.0)], 0.0, 3591.0),
        ("1 d", &[(0.0, -1.0), (10.0, 9.0), (86_410.0, 86_391.0)], 0.0, 86_391.0),
        // A stamp more than a beat and 1 s before the last probe was set by another clock, and may
        // be the last one before an outage.
        ("late", &[(0.0, -1.0), (10.0, 9.5), (20.0, 19.5), (30.0, 9.0)], 0.0, 9.0),
        ("a step", &[(0.0, -1.0), (10.0, 9.5), (20.0, 19.5), (30.0, 8.999)], 21.001, 20.0),
        ("a step in an outage", &[(0.0, -1.0), (10.0, 9.5), (20.0, 19.5), (55.0, -5.0)], 60.0, 20.0),
        ("the next stamp", &[(0.0, -1.0), (20.0, 19.5), (55.0, -5.0), (60.0, 5.0)], 55.0, 60.0),
        ("a step forward", &[(0.0, -1.0), (10.0, 9.5), (20.0, 79.5)], -59.5, 20.0),
    ];
    for (what, probes, skew, renewed) in cases {
        let clock = shown(probes);
        assert_eq!(clock.skew(GRACE), span(skew), "{what}");
        assert_eq!(clock.renewed(GRACE), at(renewed), "{what}");
    }
}

#[test]
fn expiry_by_what_was_shown() {
    use LeaseState::{Expired, Undecided, Valid};
    #[rustfmt::skip]
    let cases: [(&str, Shown, LeaseState, f64); 10] = [
        ("a fresh first sight", &[(0.0, -5.0)], Valid, 25.0),
        ("an old first sight", &[(0.0, -31.0)], Undecided, 11.0),
        ("the future", &[(0.0, 600.0)], Valid, 30.0),
        ("a change", &[(0.0, -1.0), (9.5, 9.0)], Valid, 39.0),
        ("a change, behind", &[(0.0, -50.0), (1.0, -45.0)], Valid, 31.0),
        ("a change, old", &[(0.0, -35.0), (1.0, -10.0)], Valid, 20.0),
        ("one late change", &[(0.0, -35.0), (20.0, 1.0)], Valid, 31.0),
        ("a later one", &[(0.0, -35.0), (40.0, 1.0)], Undecided, 51.0),
        ("a step", &[(0.0, -1.0), (20.0, 19.5), (30.0, 8.0)], Valid, 50.0),
        ("in an outage", &[(0.0, -1.0), (20.0, 19.5), (55.0, -5.0)], Undecided, 66.0),
    ];
    for (what, probes, before, expires) in cases {
        let clock = shown(probes);
        assert_eq!(clock.expires(criteria(at(0.0))), at(expires), "{what}");
        let just_before = at(expires) - TimeDelta::nanoseconds(1);
        assert_eq!(clock.state(criteria(just_before)), before, "{what}");
        assert_eq!(clock.state(criteria(at(expires))), Expired, "{what}");
    }
}

#[test]
fn another_grace_holds_at_once() {
    let clock = shown(&[(0.0, -1.0), (9.5, 9.0)]);
    assert_eq!(clock.state(criteria(at(45.0))), LeaseState::Expired);
    assert_eq!(
        clock.state(Criteria {
            grace: Grace::new(span(50.0)),
            ..criteria(at(45.0))
        }),
        LeaseState::Valid
    );
    assert_eq!(
        clock.state(Criteria {
            grace: Grace::new(span(8.0)),
            ..criteria(at(45.0))
        }),
        LeaseState::Expired
    );
}

#[test]
fn smallest_distance_is_the_offset() {
    let behind = 20.0;
    let clock = shown(&[
        (0.0, -5.0 - behind),
        (10.0, 5.0 - behind),
        (16.0, 15.0 - behind),
        (30.0, 25.0 - behind),
    ]);
    let offset = span(behind + 1.0) + span(14.0) / FORGIVEN_IN;
    assert_eq!(
        clock.skew(GRACE),
        offset,
        "seen 5, 1 and 5 s after a renewal, the last 14 s after the one before"
    );
    assert_eq!(clock.renewed(GRACE), at(25.0 - behind) + offset);
}

#[test]
fn unchanged_stamp_ages_on_our_clock() {
    let mut clock = shown(&[(0.0, -1.0), (9.5, 9.0)]);
    for (seconds, our_wall_clock) in [(20.0, 3620.0), (30.0, -7170.0)] {
        let stepped = RequestTimes {
            wall: wall(our_wall_clock),
            ..times(seconds)
        };
        clock.observe(&stepped, at(9.5), wall(9.0), Some(40), GRACE);
        assert_eq!(
            clock.renewed(GRACE),
            at(9.0),
            "our wall clock steps to {our_wall_clock} s"
        );
    }
}

#[test]
fn step_of_a_skewed_clock_is_seen() {
    let behind = 40.0;
    let before = [
        (0.0, -1.0 - behind),
        (10.0, 9.5 - behind),
        (20.0, 19.5 - behind),
    ];
    // The offset was 0.5 s larger, and has grown by 1/300 of the 10 s since then.
    let offset = behind + 0.5 + 0.0333;
    let tolerated = shown(&[before.as_slice(), &[(30.0, 19.0 - offset)]].concat());
    assert!(
        (at(19.0)..at(19.001)).contains(&tolerated.renewed(GRACE)),
        "19 s is no more than 1 s before the probe at 20 s"
    );
    let stepped = shown(&[before.as_slice(), &[(30.0, 18.999 - offset)]].concat());
    assert_eq!(stepped.renewed(GRACE), at(20.0));
}

#[test]
fn clock_put_back_is_forgiven() {
    // Ahead by 15 s, set back by 10 s between two renewals: from then on each renew time is
    // observed 10 s later than the offset says.
    let mut clock = LeaseClock::new(&times(0.0), wall(15.0), Some(40));
    let beat = |clock: &mut LeaseClock, t: f64, skew: f64| {
        clock.observe(&times(t), at(t - 10.0), wall(t + skew), Some(40), GRACE)
    };
    for t in [10.0, 20.0, 30.0] {
        beat(&mut clock, t, 15.0);
    }
    assert_eq!(clock.skew(GRACE), span(-15.0));
    let mut t = 40.0;
    while t < 3100.0 {
        beat(&mut clock, t, 5.0);
        t += 10.0;
    }
    assert_eq!(clock.skew(GRACE), span(-5.0), "after 10 s times 300");
}

#[test]
fn silence_counts_from_answers() {
    // D-54
    let clock = shown(&[(0.0, -1.0), (9.5, 9.0)]);
    let answering = at(45.0);
    assert_eq!(
        clock.state(Criteria {
            answering,
            ..criteria(at(45.0))
        }),
        LeaseState::Undecided
    );
    assert_eq!(
        clock.state(Criteria {
            answering,
            ..criteria(at(56.0) - TimeDelta::nanoseconds(1))
        }),
        LeaseState::Undecided
    );
    assert_eq!(
        clock.state(Criteria {
            answering,
            ..criteria(at(56.0))
        }),
        LeaseState::Expired
    );
    assert_eq!(
        clock.expires(Criteria {
            answering,
            ..criteria(at(0.0))
        }),
        at(56.0)
    );
    assert_eq!(
        shown(&[(0.0, -1.0), (50.0, 49.0)]).state(Criteria {
            answering,
            ..criteria(at(50.0))
        }),
        LeaseState::Valid
    );
}

#[test]
fn remade_lease_is_another_one() {
    let mut book = LeaseClocks::default();
    book.observe(&times(0.0), vec![lease("a", -1.0)], GRACE);
    book.observe(&times(10.0), vec![lease("a", 9.0)], GRACE);
    let again = LeaseRecord {
        uid: "another".into(),
        ..lease("a", -50.0)
    };
    book.observe(&times(20.0), vec![again], GRACE);
    assert_eq!(
        book.get("a").map(|clock| clock.state(criteria(at(20.0)))),
        Some(LeaseState::Undecided),
        "never seen to change"
    );
}

#[test]
fn old_value_counts_since_sent() {
    let mut clock = shown(&[(0.0, -1.0), (10.0, 9.5)]);
    let slow = RequestTimes {
        sent: at(20.0),
        received: at(28.0),
        wall: wall(28.0),
    };
    clock.observe(&slow, at(10.0), wall(9.5), Some(40), GRACE);
    clock.observe(&times(30.0), slow.sent, wall(9.7), Some(40), GRACE);
    assert_eq!(
        clock.renewed(GRACE),
        at(9.7),
        "9.7 s is within a beat and 1 s of the request at 20 s, not of the answer"
    );
}

#[test]
fn watching_lasts_for_a_beat() {
    let faster = LeaseClock::new(&times(0.0), wall(-31.0), Some(20));
    assert_eq!(faster.expires(criteria(at(0.0))), at(6.0));
    let unsaid = LeaseClock::new(&times(0.0), wall(-31.0), None);
    assert_eq!(unsaid.expires(criteria(at(0.0))), at(11.0));
    assert_eq!(
        unsaid.expires(Criteria {
            grace: Grace::new(span(24.0)),
            ..criteria(at(0.0))
        }),
        at(7.0),
        "at most a quarter of the grace"
    );
}

#[test]
fn no_renew_time_means_no_clock() {
    let mut book = LeaseClocks::default();
    let stampless = LeaseRecord {
        renew_time: None,
        ..lease("b", 0.0)
    };
    book.observe(&times(0.0), vec![lease("a", -1.0), stampless], GRACE);
    assert_eq!(book.without_renew_time, 1);
    assert!(book.get("a").is_some() && book.get("b").is_none());
    book.observe(&times(10.0), vec![lease("a", 9.0), lease("b", 9.0)], GRACE);
    assert_eq!(book.without_renew_time, 0);
    assert_eq!(book.iter().count(), 2);
}

#[test]
fn vanished_lease_is_forgotten() {
    let mut book = LeaseClocks::default();
    book.observe(&times(0.0), vec![lease("a", -1.0), lease("b", -1.0)], GRACE);
    book.observe(&times(10.0), vec![lease("a", 9.0), lease("b", 9.0)], GRACE);
    book.observe(&times(20.0), vec![lease("a", 19.0)], GRACE);
    assert!(book.get("b").is_none());
    book.observe(&times(60.0), vec![lease("a", 19.0), lease("b", 9.0)], GRACE);
    assert_eq!(
        book.get("a").map(|clock| clock.state(criteria(at(60.0)))),
        Some(LeaseState::Expired)
    );
    assert_eq!(
        book.get("b").map(|clock| clock.state(criteria(at(60.0)))),
        Some(LeaseState::Undecided)
    );
}

/// Expected clocks after lists of (node, renew time), computed the simplest way.
fn known<'a>(lists: &'a [Vec<(&'a str, f64)>]) -> BTreeMap<&'a str, LeaseClock> {
    let mut clocks = BTreeMap::new();
    for (number, list) in lists.iter().enumerate() {
        let (times, probed) = (
            times(10.0 * number as f64),
            at(10.0 * (number as f64 - 1.0)),
        );
        let mut before = std::mem::take(&mut clocks);
        for &(name, stamp) in list {
            let clock = match before.remove(name) {
                Some(mut clock) => {
                    LeaseClock::observe(&mut clock, &times, probed, wall(stamp), Some(40), GRACE);
                    clock
                }
                None => LeaseClock::new(&times, wall(stamp), Some(40)),
            };
            clocks.insert(name, clock);
        }
    }
    clocks
}

/// Probes in ascending order with gaps of up to 90 s.
fn probes() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.001..90.0_f64, 2..30).prop_map(|gaps| {
        gaps.into_iter()
            .scan(0.0, |now, gap| {
                *now += gap;
                Some((*now * 1e6_f64).round() / 1e6)
            })
            .collect()
    })
}

/// Last renewal at `now` of a kubelet that renews every 10 s.
fn last_renewal(phase: f64, now: f64) -> f64 {
    phase + 10.0 * ((now - phase) / 10.0).floor()
}

proptest! {
    #[test]
    fn each_lease_has_its_own_clock(
        lists in prop::collection::vec(prop::collection::vec((prop::sample::select(vec!["a", "aa", "b", "c", "d", "e"]), -60.0..5.0_f64), 0..9), 1..6),
    ) {
        let mut book = LeaseClocks::default();
        for (number, list) in lists.iter().enumerate() {
            book.observe(&times(10.0 * number as f64), list.iter().map(|&(name, stamp)| lease(name, stamp)), GRACE);
        }
        let known = known(&lists);
        prop_assert_eq!(book.iter().map(|(name, clock)| (name, clock.clone())).collect::<Vec<_>>(), known.into_iter().collect::<Vec<_>>());
        for (name, _) in book.iter() {
            prop_assert!(book.get(name).is_some());
        }
    }

    #[test]
    fn healthy_lease_never_expires(probes in probes(), phase in 0.0..10.0_f64, skew in -7200.0..7200.0_f64) {
        let mut clock = LeaseClock::new(&times(probes[0]), wall(last_renewal(phase, probes[0]) + skew), Some(40));
        for (&before, &now) in probes.iter().zip(&probes[1..]) {
            clock.observe(&times(now), at(before), wall(last_renewal(phase, now) + skew), Some(40), GRACE);
            prop_assert_ne!(clock.state(criteria(at(now))), LeaseState::Expired, "at {} s", now);
        }
    }

    #[test]
    fn true_stamp_is_its_renewal(probes in probes(), phase in 0.0..10.0_f64) {
        let mut clock = LeaseClock::new(&times(probes[0]), wall(last_renewal(phase, probes[0])), Some(40));
        let mut before = probes[0];
        for &now in &probes {
            let renewal = last_renewal(phase, now);
            clock.observe(&times(now), at(std::mem::replace(&mut before, now)), wall(renewal), Some(40), GRACE);
            prop_assert_eq!(clock.renewed(GRACE), at(renewal), "at {} s", now);
        }
    }

    #[test]
    fn lease_expires_when_it_says_so(first in -60.0..5.0_f64, change in prop::option::of(-50.0..20.0_f64), grace in 2.0..80.0_f64) {
        let grace = Grace::new(span(grace));
        let mut clock = LeaseClock::new(&times(0.0), wall(first), Some(40));
        if let Some(stamp) = change {
            clock.observe(&times(10.0), at(0.0), wall(stamp), Some(40), grace);
        }
        let expires = clock.expires(Criteria { grace, ..criteria(at(0.0)) });
        prop_assert_ne!(clock.state(Criteria { grace, ..criteria(expires - TimeDelta::nanoseconds(1)) }), LeaseState::Expired);
        prop_assert_eq!(clock.state(Criteria { grace, ..criteria(expires) }), LeaseState::Expired);
    }
}
