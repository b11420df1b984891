use super::*;
use crate::tests::scene::{GRACE, at, criteria, lease, number, span, table, times, wall};

/// A clock after these observations: `0 -20, 10 9.5` are two probes, each with the renew time shown.
fn shown(probes: &str) -> LeaseClock {
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

#[test]
fn beat_and_threshold_of_a_grace() {
    // Grace, duration of the lease, beat and threshold.
    for [grace, duration, beat, threshold] in table(
        "
        40 | 40 | 10 | 30
        50 | 40 | 10 | 37.5
        20 | 40 | 5 | 15
        19.9 | 40 | 10 | 15
        10 | 40 | 10 | 15
        0.004 | 40 | 10 | 15
        40 | 20 | 5 | 30
        40 | 3 | 0.75 | 30
        40 | 60 | 10 | 30
        80 | 60 | 15 | 60
        40 | 120 | 30 | 45
        40 | 2147483647 | 536870911.75 | 805306367.625
        8 | 8 | 2 | 6
        4 | 8 | 1 | 3
        3.9 | 8 | 2 | 3
        80 | none | 10 | 60
        10 | none | 10 | 15
        10 | 0 | 10 | 15
        40 | -8 | 10 | 30
        ",
    ) {
        let case = format!("{grace} s, {duration}");
        let grace = Grace::new(span(number(grace)));
        let clock = LeaseClock::new(&times(0.0), wall(0.0), duration.parse().ok());
        let threshold = span(number(threshold));
        assert_eq!(
            grace.beat(duration.parse().ok()),
            span(number(beat)),
            "{case}"
        );
        let by = Criteria {
            grace,
            ..criteria(at(0.0))
        };
        assert_eq!(clock.expires(by), Moment::START + threshold, "{case}");
        let grace = grace.for_beat(clock.beat());
        assert_eq!(grace.threshold(), threshold, "{case}");
        let is_longer = threshold > grace.period() / 4 * 3;
        assert_eq!(grace.is_too_short(), is_longer, "{case}");
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
fn renewal_by_what_was_shown() {
    let exact_to_a_microsecond = |span: TimeDelta| span.num_microseconds();
    for [what, probes, skew, renewed] in table(
        "
        # From -1 s to a beat and 1 s the clocks agree.
        at once | 0 -20, 10 10 | 0.0 | 10.0
        5 s later | 0 -20, 10 5 | 0.0 | 5.0
        11 s later | 0 -20, 10 -1 | 0.0 | -1.0
        1 s ahead | 0 -20, 10 11 | 0.0 | 10.0
        just behind | 0 -21.001, 10 -1.001 | 11.001 | 10.0
        1 min behind | 0 -70, 10 -50 | 60.0 | 10.0
        1 h behind | 0 -3610, 10 -3590 | 3600.0 | 10.0
        just ahead | 0 -8.999, 10 11.001 | -1.001 | 10.0
        1 min ahead | 0 50, 10 70 | -60.0 | 10.0
        the future at first sight | 0 600 | 0.0 | 0.0
        # D-69: the clocks may agree, and the node be silent since. The next change tells.
        one late change | 0 -35, 20 1 | 0.0 | 1.0
        from before the last probe | 0 -35, 20 -1.001 | 21.001 | 20.0
        then behind | 0 -35, 20 1, 30 11 | 19.0 | 30.0
        then they agree | 0 -35, 20 1, 30 28 | 0.0 | 28.0
        a second blip | 0 -35, 20 1, 100 85 | 0.0 | 85.0
        # D-69: no drift is forgiven beyond ten minutes of silence.
        10 min | 0 -1, 10 9, 610 591 | 0.0 | 591.0
        1 h | 0 -1, 10 9, 3610 3591 | 0.0 | 3591.0
        1 d | 0 -1, 10 9, 86410 86391 | 0.0 | 86391.0
        # A stamp more than a beat and 1 s before the last probe was set by another clock, and may
        # be the last one before an outage.
        late | 0 -1, 10 9.5, 20 19.5, 30 9 | 0.0 | 9.0
        a step | 0 -1, 10 9.5, 20 19.5, 30 8.999 | 21.001 | 20.0
        a step in an outage | 0 -1, 10 9.5, 20 19.5, 55 -5 | 60.0 | 20.0
        the next stamp | 0 -1, 20 19.5, 55 -5, 60 5 | 55.0 | 60.0
        a step forward | 0 -1, 10 9.5, 20 79.5 | -59.5 | 20.0
        # The smallest distance counts, and grows by 1/300 of the time since. One that is more than
        # 1 s from before the last probe is a step.
        seen 5, 1 and 5 s late | 0 -25, 10 -15, 16 -5, 30 5 | 21.046666 | 26.046666
        behind, and just late | 0 -41, 10 -30.5, 20 -20.5, 30 -21.5333 | 40.533333 | 19.000033
        behind, and a step | 0 -41, 10 -30.5, 20 -20.5, 30 -21.5343 | 51.5343 | 20.0
        ",
    ) {
        let clock = shown(probes);
        let known = [clock.skew(GRACE), clock.renewed(GRACE) - Moment::START];
        let expected = [skew, renewed].map(number).map(span);
        assert_eq!(
            known.map(exact_to_a_microsecond),
            expected.map(exact_to_a_microsecond),
            "{what}"
        );
    }
}

#[test]
fn expiry_by_what_was_shown() {
    for [what, probes, before, expires] in table(
        "
        a fresh first sight | 0 -5 | Valid | 25.0
        an old first sight | 0 -31 | Undecided | 11.0
        the future | 0 600 | Valid | 30.0
        a change | 0 -1, 9.5 9 | Valid | 39.0
        a change, behind | 0 -50, 1 -45 | Valid | 31.0
        a change, old | 0 -35, 1 -10 | Valid | 20.0
        one late change | 0 -35, 20 1 | Valid | 31.0
        a later one | 0 -35, 40 1 | Undecided | 51.0
        a step | 0 -1, 20 19.5, 30 8 | Valid | 50.0
        in an outage | 0 -1, 20 19.5, 55 -5 | Undecided | 66.0
        ",
    ) {
        let (clock, expires) = (shown(probes), at(number(expires)));
        assert_eq!(clock.expires(criteria(at(0.0))), expires, "{what}");
        let just_before = clock.state(criteria(expires - TimeDelta::nanoseconds(1)));
        assert_eq!(format!("{just_before:?}"), before, "{what}");
        assert_eq!(
            clock.state(criteria(expires)),
            LeaseState::Expired,
            "{what}"
        );
    }
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

/// The clocks after a probe every 10 s, each with a list such as `a 1 -0.5`: a node, the uid of its lease
/// and the stamp, if it has one.
fn listed(lists: &str) -> LeaseClocks {
    let mut book = LeaseClocks::default();
    for (probe, list) in lists.split("; ").enumerate() {
        let leases = list.split(", ").map(|text| {
            let words: Vec<_> = text.split(' ').collect();
            LeaseRecord {
                uid: LeaseUid::from(words[1]),
                renew_time: words.get(2).map(|stamp| wall(number(stamp))),
                ..lease(words[0], 0.0)
            }
        });
        book.observe(&times(10.0 * probe as f64), leases, GRACE);
    }
    book
}

#[test]
fn each_lease_has_its_own_clock() {
    for [what, lists, clocks] in table(
        "
        whatever their order | b 1 -1, a 1 -2; c 1 0, a 1 8, b 1 9 | a: 0 -2, 10 8; b: 0 -1, 10 9; c: 10 0
        one made again | a 1 -1, b 1 -1; a 2 9, b 1 9 | a: 10 9; b: 0 -1, 10 9
        gone and back | a 1 -1, b 1 -1; b 1 9; a 1 19, b 1 19 | a: 20 19; b: 0 -1, 10 9, 20 19
        listed twice | a 1 -1; a 1 9, a 1 8; a 1 18 | a: 10 8, 20 18
        new and listed twice | a 1 -1, a 2 -2 | a: 0 -2
        without a renew time | a 1 -1, b 1; a 1, b 1 9 | b: 10 9
        ",
    ) {
        let book = listed(lists);
        let expected = clocks.split("; ").map(|clock| {
            let (name, probes) = clock.split_once(": ").expect(clock);
            (name, shown(probes))
        });
        let found = book.iter().map(|(name, clock)| (name, clock.clone()));
        assert!(found.eq(expected), "{what}: {book:?}");
        let without = usize::from(what == "without a renew time");
        assert_eq!(book.without_renew_time, without, "{what}");
    }
}
