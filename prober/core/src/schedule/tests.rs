use proptest::prelude::*;

use super::super::verdict::{Tally, Verdict};
use super::*;
use crate::tests::scene::{GRACE, at, criteria, renewed, span, times, wall};

/// A lease with this stamp, first seen then, and never seen to change.
fn unwatched(stamp: f64, seen: f64) -> LeaseClock {
    LeaseClock::new(&times(seen), wall(stamp), Some(40))
}

fn possible(leases: &[LeaseClock], candidates_known: bool, fraction: f64) -> Option<Moment> {
    verdict_possible(leases, candidates_known, fraction, criteria(at(0.0)))
}

fn just_after(seconds: f64) -> Option<Moment> {
    Some(at(seconds) + JUST_AFTER)
}

#[test]
fn verdict_can_fall_with_the_oldest() {
    let five = [3.0, 1.0, 5.0, 2.0, 4.0].map(renewed);
    let one = [renewed(0.0)];
    let doubted = [unwatched(-100.0, 0.0), unwatched(-200.0, 0.0)];
    #[rustfmt::skip]
    let cases = [
        ("the third oldest of five", &five[..], true, 0.6, just_after(33.0)),
        ("all", &five, true, 1.0, just_after(35.0)),
        ("the oldest", &five, true, 0.2, just_after(31.0)),
        ("both of two candidates", &five, false, 0.6, just_after(32.0)),
        ("one of two candidates", &five, false, 0.5, just_after(31.0)),
        ("one lease", &one, true, 0.1, None),
        ("one lease", &one, false, 0.1, None),
        ("no lease", &[], true, 0.1, None),
        ("no lease", &[], false, 1.0, None),
        ("not believed yet", &doubted, true, 0.6, just_after(11.0)),
    ];
    for (what, leases, known, fraction, expected) in cases {
        assert_eq!(possible(leases, known, fraction), expected, "{what}");
    }
}

const CALM: ScheduleInputs = ScheduleInputs {
    now: Moment::START,
    judged_at: Moment::START,
    interval: TimeDelta::seconds(30),
    verdict_possible: None,
    doubt_from: None,
    failures: None,
    took: TimeDelta::zero(),
    stretch: 1.0,
};

/// The schedule after a probe at 0 s: when the verdict can fall, when doubt begins, and failures.
fn after_a_probe(possible: Option<f64>, doubt: Option<f64>, failures: Option<Failures>) -> Moment {
    next_probe(&ScheduleInputs {
        verdict_possible: possible.map(at),
        doubt_from: doubt.map(at),
        failures,
        ..CALM
    })
}

#[test]
fn first_reason_sets_the_probe() {
    let failed = |in_a_row, urgent| Some(Failures { in_a_row, urgent });
    #[rustfmt::skip]
    let cases = [
        ("nothing", None, None, None, 30.0),
        ("a verdict", Some(20.0), None, None, 20.0),
        ("a later verdict", Some(31.0), None, None, 30.0),
        ("doubt", None, Some(7.0), None, 7.0),
        ("a verdict before doubt", Some(5.0), Some(7.0), None, 5.0),
        ("it was long ago", Some(-100.0), Some(-100.0), None, 30.0),
        ("it is just over", Some(-0.001), Some(-0.001), None, 30.0),
        ("it is now", Some(0.0), Some(0.0), None, 30.0),
        ("a failure", None, None, failed(1, false), 30.0),
        ("and a later verdict", Some(30.001), None, failed(1, false), 30.0),
        ("no probe was complete", None, None, failed(1, true), 1.0),
        ("a verdict before the retry", Some(3.0), None, failed(4, false), 3.0),
    ];
    for (what, possible, doubt, failures, next) in cases {
        assert_eq!(after_a_probe(possible, doubt, failures), at(next), "{what}");
    }
}

#[test]
fn interval_counts_from_the_end() {
    let next = next_probe(&ScheduleInputs {
        now: at(100.0),
        judged_at: at(100.0),
        interval: span(11.9),
        ..CALM
    });
    assert_eq!(next, at(111.9));
}

#[test]
fn retries_are_stretched() {
    let failures = Some(Failures {
        in_a_row: 2,
        urgent: false,
    });
    let next = next_probe(&ScheduleInputs {
        failures,
        stretch: 1.15,
        verdict_possible: Some(at(-1.0)),
        ..CALM
    });
    assert_eq!(next, at(2.3));
}

#[test]
fn failures_near_a_verdict_retry() {
    for possible in [-50.0, 0.0, 30.0] {
        let wait = |in_a_row| {
            let urgent = false;
            after_a_probe(Some(possible), None, Some(Failures { in_a_row, urgent }))
        };
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7, 1000, u32::MAX].map(wait),
            [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0].map(at)
        );
    }
}

fn clocks() -> impl Strategy<Value = Vec<LeaseClock>> {
    let clock =
        (0.0..40.0_f64, any::<bool>(), -60.0..60.0_f64).prop_map(|(when, watched, skew)| {
            if !watched {
                return unwatched(when - 30.0 + skew, when);
            }
            let mut clock =
                LeaseClock::new(&times(when - 10.0), wall(when - 10.0 + skew), Some(40));
            clock.observe(
                &times(when),
                at(when - 10.0),
                wall(when + skew),
                Some(40),
                GRACE,
            );
            clock
        });
    prop::collection::vec(clock, 0..8)
}

fn verdict<'a>(
    leases: impl IntoIterator<Item = &'a LeaseClock>,
    now: Moment,
    fraction: f64,
) -> Verdict {
    Tally::of(leases.into_iter().map(|clock| clock.state(criteria(now)))).verdict(fraction)
}

proptest! {
    #[test]
    fn verdict_falls_at_that_moment(leases in clocks(), fraction in 0.01..=1.0_f64) {
        match possible(&leases, true, fraction).map(|instant| instant - JUST_AFTER) {
            Some(expiry) => {
                prop_assert_ne!(verdict(&leases, expiry - TimeDelta::nanoseconds(1), fraction), Verdict::ScaleDown);
                prop_assert_eq!(verdict(&leases, expiry, fraction), Verdict::ScaleDown);
            }
            None => prop_assert_ne!(verdict(&leases, at(1e6), fraction), Verdict::ScaleDown),
        }
    }

    #[test]
    fn no_verdict_falls_before_it_can(leases in clocks(), fraction in 0.01..=1.0_f64) {
        let chosen = |mask: u32| leases.iter().enumerate().filter(move |(at, _)| mask & (1 << at) != 0).map(|(_, clock)| clock);
        let choices = 0..1_u32 << leases.len();
        match possible(&leases, false, fraction).map(|instant| instant - JUST_AFTER) {
            Some(expiry) => {
                let before = expiry - TimeDelta::nanoseconds(1);
                for mask in choices.clone() {
                    prop_assert_ne!(verdict(chosen(mask), before, fraction), Verdict::ScaleDown, "{:b}", mask);
                }
                let falls = |mask| verdict(chosen(mask), expiry, fraction) == Verdict::ScaleDown;
                prop_assert!(choices.into_iter().any(falls), "no probe is wasted");
            }
            None => {
                for mask in choices {
                    prop_assert_ne!(verdict(chosen(mask), at(1e6), fraction), Verdict::ScaleDown, "{:b}", mask);
                }
            }
        }
    }

    #[test]
    fn next_probe_is_in_the_interval(
        now in 0.0..1e6_f64,
        interval in 1.0..100.0_f64,
        possible in prop::option::of(-100.0..100.0_f64),
        doubt in prop::option::of(-100.0..100.0_f64),
        failure in prop::option::of((1_u32..40, any::<bool>())),
        stretch in 1.0..1.5_f64,
    ) {
        let failures = failure.map(|(in_a_row, urgent)| Failures { in_a_row, urgent });
        let next = next_probe(&ScheduleInputs {
            now: at(now),
            judged_at: at(now),
            interval: span(interval),
            verdict_possible: possible.map(|ahead| at(now + ahead)),
            doubt_from: doubt.map(|ahead| at(now + ahead)),
            failures,
            took: TimeDelta::zero(),
            stretch,
        });
        prop_assert!(next > at(now) && next <= at(now) + span(interval));
    }
}

#[test]
fn probe_waits_for_the_verdict() {
    let next = |took| {
        next_probe(&ScheduleInputs {
            verdict_possible: Some(at(20.0)),
            doubt_from: Some(at(16.0)),
            took: span(took),
            ..CALM
        })
    };
    assert_eq!(next(3.9), at(16.0));
    assert_eq!(next(4.9), at(20.0));
}

#[test]
fn retry_after_is_a_minute_at_most() {
    // Fault 1, rule 43
    let seconds =
        |retry_after: Option<i64>| rest(retry_after.map(TimeDelta::seconds)).num_seconds();
    assert_eq!(
        [Some(0), Some(1), Some(60), Some(61), None].map(seconds),
        [0, 1, 60, 60, 10]
    );
    assert_eq!(rest(Some(TimeDelta::MAX)).num_seconds(), 60);
}
