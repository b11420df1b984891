use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::tests::scene::{GRACE, at, criteria, lease, span, times, wall};

/// A clock after these observations: `0 -20, 10 9.5` are two probes, each with the renew time shown.
fn shown(probes: &str) -> LeaseClock {
    let number = |text: &str| -> f64 { text.parse().expect("a number") };
    let probes = probes.split(", ").filter_map(|probe| probe.split_once(' '));
    let mut probes = probes.map(|(probe, stamp)| (number(probe), wall(number(stamp))));
    let (mut before, first) = probes.next().expect("a probe");
    let mut clock = LeaseClock::new(&times(before), first, Some(40));
    for (probe, stamp) in probes {
        clock.observe(&times(probe), at(before), stamp, Some(40), GRACE);
        before = probe;
    }
    clock
}

/// Criteria with this grace at a moment.
fn by(grace: Grace, now: f64) -> Criteria {
    Criteria {
        grace,
        ..criteria(at(now))
    }
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
    #[rustfmt::skip]
    let cases = [
        (40.0, Some(40), 30.0), (50.0, Some(40), 37.5), (20.0, Some(40), 15.0), (19.9, Some(40), 15.0), (10.0, Some(40), 15.0), (0.004, Some(40), 15.0),
        (8.0, Some(8), 6.0), (4.0, Some(8), 3.0), (3.9, Some(8), 3.0), (40.0, Some(120), 45.0), (10.0, None, 15.0), (10.0, Some(0), 15.0),
    ];
    for (period, duration, threshold) in cases {
        let case = format!("{period} s, {duration:?}");
        let grace = Grace::new(span(period));
        let clock = LeaseClock::new(&times(0.0), wall(0.0), duration);
        assert_eq!(clock.expires(by(grace, 0.0)), at(threshold), "{case}");
        let grace = grace.for_beat(clock.beat());
        assert_eq!(grace.threshold(), span(threshold), "{case}");
        assert_eq!(
            grace.is_too_short(),
            threshold > period * 0.75 + 1e-9,
            "{case}"
        );
    }
    let beyond_reason = Grace::new(TimeDelta::MAX).threshold();
    assert!(beyond_reason > TimeDelta::days(365), "it does not wrap");
}

#[test]
fn shortest_beat_sets_the_threshold() {
    let cases: [(&[(&str, i32)], f64); 3] = [
        (&[("a", 40), ("b", 40), ("c", i32::MAX)], 15.0),
        (&[("a", 40), ("b", 8)], 7.5),
        // A kubelet's, before one is seen.
        (&[], 15.0),
    ];
    for (shown, threshold) in cases {
        let mut leases = LeaseClocks::default();
        let records = shown.iter().map(|&(name, seconds)| LeaseRecord {
            duration_seconds: Some(seconds),
            ..lease(name, 0.0)
        });
        leases.observe(&times(0.0), records, GRACE);
        let grace = leases.grace(Grace::new(span(10.0)));
        assert_eq!(grace.threshold(), span(threshold), "{shown:?}");
    }
}

#[test]
fn beat_of_a_lease_and_a_grace() {
    #[rustfmt::skip]
    let cases = [
        (Some(40), 40.0, 10.0), (Some(20), 40.0, 5.0), (Some(60), 40.0, 10.0), (Some(60), 80.0, 15.0), (Some(3), 40.0, 0.75), (Some(40), 20.0, 5.0), (Some(40), 19.0, 10.0),
        (None, 40.0, 10.0), (Some(0), 40.0, 10.0), (Some(-8), 40.0, 10.0), (None, 80.0, 10.0), (None, 8.0, 10.0),
    ];
    for (duration, grace, beat) in cases {
        let shown = Grace::new(span(grace)).beat(duration);
        assert_eq!(shown, span(beat), "{duration:?}, grace {grace} s");
    }
}

#[test]
fn renewal_by_what_was_shown() {
    #[rustfmt::skip]
    let cases = [
        // From -1 s to a beat and 1 s the clocks agree.
        ("at once", "0 -20, 10 10", 0.0, 10.0),
        ("5 s later", "0 -20, 10 5", 0.0, 5.0),
        ("11 s later", "0 -20, 10 -1", 0.0, -1.0),
        ("1 s ahead", "0 -20, 10 11", 0.0, 10.0),
        ("just behind", "0 -21.001, 10 -1.001", 11.001, 10.0),
        ("1 min behind", "0 -70, 10 -50", 60.0, 10.0),
        ("1 h behind", "0 -3610, 10 -3590", 3600.0, 10.0),
        ("just ahead", "0 -8.999, 10 11.001", -1.001, 10.0),
        ("1 min ahead", "0 50, 10 70", -60.0, 10.0),
        ("the future at first sight", "0 600", 0.0, 0.0),
        // D-69: the clocks may agree, and the node be silent since. The next change tells.
        ("one late change", "0 -35, 20 1", 0.0, 1.0),
        ("from before the last probe", "0 -35, 20 -1.001", 21.001, 20.0),
        ("then behind", "0 -35, 20 1, 30 11", 19.0, 30.0),
        ("then they agree", "0 -35, 20 1, 30 28", 0.0, 28.0),
        ("a second blip", "0 -35, 20 1, 100 85", 0.0, 85.0),
        // D-69: no drift is forgiven beyond ten minutes of silence.
        ("10 min", "0 -1, 10 9, 610 591", 0.0, 591.0),
        ("1 h", "0 -1, 10 9, 3610 3591", 0.0, 3591.0),
        ("1 d", "0 -1, 10 9, 86410 86391", 0.0, 86_391.0),
        // A stamp more than a beat and 1 s before the last probe was set by another clock, and may
        // be the last one before an outage.
        ("late", "0 -1, 10 9.5, 20 19.5, 30 9", 0.0, 9.0),
        ("a step", "0 -1, 10 9.5, 20 19.5, 30 8.999", 21.001, 20.0),
        ("a step in an outage", "0 -1, 10 9.5, 20 19.5, 55 -5", 60.0, 20.0),
        ("the next stamp", "0 -1, 20 19.5, 55 -5, 60 5", 55.0, 60.0),
        ("a step forward", "0 -1, 10 9.5, 20 79.5", -59.5, 20.0),
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
    let cases = [
        ("a fresh first sight", "0 -5", Valid, 25.0),
        ("an old first sight", "0 -31", Undecided, 11.0),
        ("the future", "0 600", Valid, 30.0),
        ("a change", "0 -1, 9.5 9", Valid, 39.0),
        ("a change, behind", "0 -50, 1 -45", Valid, 31.0),
        ("a change, old", "0 -35, 1 -10", Valid, 20.0),
        ("one late change", "0 -35, 20 1", Valid, 31.0),
        ("a later one", "0 -35, 40 1", Undecided, 51.0),
        ("a step", "0 -1, 20 19.5, 30 8", Valid, 50.0),
        ("in an outage", "0 -1, 20 19.5, 55 -5", Undecided, 66.0),
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
    let clock = shown("0 -1, 9.5 9");
    let states = [40.0, 50.0, 8.0].map(|grace| clock.state(by(Grace::new(span(grace)), 45.0)));
    use LeaseState::{Expired, Valid};
    assert_eq!(states, [Expired, Valid, Expired]);
}

#[test]
fn smallest_distance_is_the_offset() {
    // Seen 5, 1 and 5 s after a renewal, the last 14 s after the one before.
    let clock = shown("0 -25, 10 -15, 16 -5, 30 5");
    let offset = span(21.0) + span(14.0) / FORGIVEN_IN;
    assert_eq!(clock.skew(GRACE), offset);
    assert_eq!(clock.renewed(GRACE), at(5.0) + offset);
}

#[test]
fn unchanged_stamp_ages_on_our_clock() {
    let mut clock = shown("0 -1, 9.5 9");
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
    // Behind by 40 s; the offset was 0.5 s larger, and has grown by 1/300 of the 10 s since then.
    let renewed = |last: f64| {
        let last = last - 40.0 - 0.5 - 0.0333;
        shown(&format!("0 -41, 10 -30.5, 20 -20.5, 30 {last}")).renewed(GRACE)
    };
    // No more than 1 s before the probe at 20 s.
    assert!((at(19.0)..at(19.001)).contains(&renewed(19.0)));
    assert_eq!(renewed(18.999), at(20.0));
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
    use LeaseState::{Expired, Undecided, Valid};
    let answering = at(45.0);
    let clock = shown("0 -1, 9.5 9");
    let by = |now| Criteria {
        answering,
        ..criteria(now)
    };
    let before = at(56.0) - TimeDelta::nanoseconds(1);
    let states = [at(45.0), before, at(56.0)].map(|now| clock.state(by(now)));
    assert_eq!(states, [Undecided, Undecided, Expired]);
    assert_eq!(clock.expires(by(at(0.0))), at(56.0));
    let renewed = shown("0 -1, 50 49");
    assert_eq!(renewed.state(by(at(50.0))), Valid);
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
    let mut clock = shown("0 -1, 10 9.5");
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
    // At most a quarter of the grace.
    for (duration, grace, expires) in [(Some(20), 40.0, 6.0), (None, 40.0, 11.0), (None, 24.0, 7.0)]
    {
        let clock = LeaseClock::new(&times(0.0), wall(-31.0), duration);
        let by = by(Grace::new(span(grace)), 0.0);
        assert_eq!(clock.expires(by), at(expires), "{duration:?}, {grace} s");
    }
    let endless = LeaseClock::new(&times(0.0), wall(0.0), Some(i32::MAX));
    assert_eq!(endless.state(criteria(at(1e8))), LeaseState::Valid);
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
