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
fn the_smallest_failing_count_is_found_by_the_verdicts_own_expression() {
    for (candidates, fraction, count) in [
        (5, 0.6, Some(3)),
        (10, 0.6, Some(6)),
        (2, 0.6, Some(2)),
        (2, 0.5, Some(1)),
        (100, 0.6, Some(60)),
        (3, 1.0, Some(3)),
        (1, 0.6, None),
        (0, 0.6, None),
        (5, 1.1, None),
    ] {
        assert_eq!(
            failing_count(candidates, fraction),
            count,
            "{candidates} at {fraction}"
        );
    }
}

#[test]
fn with_known_candidates_the_verdict_can_fall_when_enough_of_the_oldest_expire() {
    let leases = [3.0, 1.0, 5.0, 2.0, 4.0].map(renewed);
    assert_eq!(
        possible(&leases, true, 0.6),
        just_after(33.0),
        "the third oldest of five"
    );
    assert_eq!(possible(&leases, true, 1.0), just_after(35.0));
    assert_eq!(possible(&leases, true, 0.2), just_after(31.0));
}

#[test]
fn without_known_candidates_two_of_the_oldest_are_enough() {
    let leases = [3.0, 1.0, 5.0, 2.0, 4.0].map(renewed);
    assert_eq!(
        possible(&leases, false, 0.6),
        just_after(32.0),
        "both of two candidates"
    );
    assert_eq!(
        possible(&leases, false, 0.5),
        just_after(31.0),
        "one of two candidates"
    );
}

#[test]
fn fewer_than_two_leases_never_bring_a_verdict() {
    for fraction in [0.1, 0.6, 1.0] {
        for known in [true, false] {
            assert_eq!(possible(&[], known, fraction), None);
            assert_eq!(possible(&[renewed(0.0)], known, fraction), None);
        }
    }
}

#[test]
fn a_stamp_that_cannot_be_believed_yet_brings_a_verdict_only_when_it_can() {
    let leases = [unwatched(-100.0, 0.0), unwatched(-200.0, 0.0)];
    assert_eq!(possible(&leases, true, 0.6), just_after(11.0));
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

const FAILED: Failures = Failures {
    in_a_row: 1,
    urgent: false,
};

#[test]
fn without_anything_to_wait_for_the_interval_counts_from_the_end_of_the_probe() {
    // What the probe took does not count; the jitter is in the interval already.
    assert_eq!(next_probe(&CALM), at(30.0));
    assert_eq!(
        next_probe(&ScheduleInputs {
            now: at(100.0),
            judged_at: at(100.0),
            interval: span(11.9),
            ..CALM
        }),
        at(111.9)
    );
}

#[test]
fn the_next_probe_is_when_the_verdict_can_fall_if_that_is_earlier() {
    assert_eq!(
        next_probe(&ScheduleInputs {
            verdict_possible: Some(at(20.0)),
            ..CALM
        }),
        at(20.0)
    );
    assert_eq!(
        next_probe(&ScheduleInputs {
            verdict_possible: Some(at(31.0)),
            ..CALM
        }),
        at(30.0)
    );
}

#[test]
fn an_instant_that_has_passed_or_is_now_never_schedules() {
    for passed in [-100.0, -0.001, 0.0] {
        let inputs = ScheduleInputs {
            verdict_possible: Some(at(passed)),
            doubt_from: Some(at(passed)),
            ..CALM
        };
        assert_eq!(next_probe(&inputs), at(30.0), "{passed} s");
    }
}

#[test]
fn what_waits_for_a_probe_is_served_in_time() {
    assert_eq!(
        next_probe(&ScheduleInputs {
            doubt_from: Some(at(7.0)),
            ..CALM
        }),
        at(7.0)
    );
    assert_eq!(
        next_probe(&ScheduleInputs {
            doubt_from: Some(at(7.0)),
            verdict_possible: Some(at(5.0)),
            ..CALM
        }),
        at(5.0)
    );
}

#[test]
fn a_failure_long_before_a_verdict_waits_for_the_interval() {
    assert_eq!(
        next_probe(&ScheduleInputs {
            failures: Some(FAILED),
            ..CALM
        }),
        at(30.0)
    );
    assert_eq!(
        next_probe(&ScheduleInputs {
            failures: Some(FAILED),
            verdict_possible: Some(at(30.001)),
            ..CALM
        }),
        at(30.0)
    );
}

#[test]
fn failures_near_or_past_a_verdict_are_repeated_after_1_2_and_4_s_up_to_the_interval() {
    for possible in [at(-50.0), at(0.0), at(30.0)] {
        let wait = |in_a_row| {
            let failures = Some(Failures { in_a_row, ..FAILED });
            next_probe(&ScheduleInputs {
                verdict_possible: Some(possible),
                failures,
                ..CALM
            })
        };
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7, 1000, u32::MAX].map(wait),
            [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0].map(at)
        );
    }
}

#[test]
fn failures_before_the_first_complete_probe_are_repeated_as_soon() {
    let failures = Some(Failures {
        urgent: true,
        ..FAILED
    });
    assert_eq!(next_probe(&ScheduleInputs { failures, ..CALM }), at(1.0));
}

#[test]
fn a_verdict_that_can_fall_before_the_repetition_is_not_missed() {
    let inputs = ScheduleInputs {
        failures: Some(Failures {
            in_a_row: 4,
            ..FAILED
        }),
        verdict_possible: Some(at(3.0)),
        ..CALM
    };
    assert_eq!(next_probe(&inputs), at(3.0));
}

#[test]
fn repetitions_are_stretched() {
    let failures = Some(Failures {
        in_a_row: 2,
        ..FAILED
    });
    assert_eq!(
        next_probe(&ScheduleInputs {
            failures,
            stretch: 1.15,
            verdict_possible: Some(at(-1.0)),
            ..CALM
        }),
        at(2.3)
    );
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
    fn the_verdict_on_known_candidates_falls_at_that_instant_and_not_before(leases in clocks(), fraction in 0.01..=1.0_f64) {
        match possible(&leases, true, fraction).map(|instant| instant - JUST_AFTER) {
            Some(expiry) => {
                prop_assert_ne!(verdict(&leases, expiry - TimeDelta::nanoseconds(1), fraction), Verdict::ScaleDown);
                prop_assert_eq!(verdict(&leases, expiry, fraction), Verdict::ScaleDown);
            }
            None => prop_assert_ne!(verdict(&leases, at(1e6), fraction), Verdict::ScaleDown),
        }
    }

    #[test]
    fn no_verdict_on_any_candidates_falls_before_that_instant(leases in clocks(), fraction in 0.01..=1.0_f64) {
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
    fn the_next_probe_is_always_ahead_and_never_further_than_the_interval(
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
fn a_probe_that_would_miss_the_verdict_begins_when_it_can_fall() {
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
fn an_api_server_is_left_alone_for_as_long_as_it_asks_and_at_most_a_minute() {
    // Fault 1, rule 43
    let seconds =
        |retry_after: Option<i64>| rest(retry_after.map(TimeDelta::seconds)).num_seconds();
    assert_eq!(
        [Some(0), Some(1), Some(60), Some(61), None].map(seconds),
        [0, 1, 60, 60, 10]
    );
    assert_eq!(rest(Some(TimeDelta::MAX)).num_seconds(), 60);
}
