use proptest::prelude::*;

use super::super::verdict::{Tally, Verdict};
use super::*;
use crate::tests::scene::{GRACE, at, criteria, number, span, table, times, wall};

/// The next probe after one at 0 s, where 30 s are configured: `verdict 20, doubt 7, failures 2`.
fn next(words: &str) -> Moment {
    let mut inputs = ScheduleInputs {
        now: Moment::START,
        judged_at: Moment::START,
        interval: TimeDelta::seconds(30),
        verdict_possible: None,
        doubt_from: None,
        failures: None,
        took: TimeDelta::zero(),
        stretch: 1.0,
    };
    for word in words.split(", ") {
        let (what, number) = word.split_once(' ').expect(word);
        let number = self::number(number);
        match what {
            "ended" => (inputs.now, inputs.judged_at) = (at(number), at(number)),
            "verdict" => inputs.verdict_possible = Some(at(number)),
            "doubt" => inputs.doubt_from = Some(at(number)),
            "took" => inputs.took = span(number),
            "stretch" => inputs.stretch = number,
            "failures" | "urgent" => {
                inputs.failures = Some(Failures {
                    in_a_row: number as u32,
                    urgent: what == "urgent",
                });
            }
            _ => unreachable!("{word}"),
        }
    }
    next_probe(&inputs)
}

#[test]
fn first_reason_sets_the_probe() {
    for [words, expected] in table(
        "
        ended 0 | 30
        ended 100 | 130
        verdict 20 | 20
        verdict 31 | 30
        doubt 7 | 7
        verdict 5, doubt 7 | 5
        # Long ago, just over, and now.
        verdict -100, doubt -100 | 30
        verdict -0.001, doubt -0.001 | 30
        verdict 0, doubt 0 | 30
        # A slow probe that would miss the verdict begins then.
        verdict 20, doubt 16, took 3.9 | 16
        verdict 20, doubt 16, took 4.9 | 20
        # Failures far from a verdict, and before any probe was complete.
        failures 1 | 30
        failures 1, verdict 30.001 | 30
        urgent 1 | 1
        # Near one.
        failures 4, verdict 3 | 3
        failures 1, verdict 30 | 1
        failures 2, verdict 0 | 2
        failures 3, verdict -50 | 4
        failures 5, verdict -50 | 16
        failures 6, verdict -50 | 30
        failures 4294967295, verdict -50 | 30
        failures 2, verdict -1, stretch 1.15 | 2.3
        ",
    ) {
        assert_eq!(next(words), at(number(expected)), "{words}");
    }
}

fn clocks() -> impl Strategy<Value = Vec<LeaseClock>> {
    let clock =
        (0.0..40.0_f64, any::<bool>(), -60.0..60.0_f64).prop_map(|(when, watched, skew)| {
            if !watched {
                return LeaseClock::new(&times(when), wall(when - 30.0 + skew), Some(40));
            }
            let before = when - 10.0;
            let mut clock = LeaseClock::new(&times(before), wall(before + skew), Some(40));
            clock.observe(&times(when), at(before), wall(when + skew), Some(40), GRACE);
            clock
        });
    prop::collection::vec(clock, 0..8)
}

proptest! {
    /// With the candidates known these are all leases; else any of them may be.
    #[test]
    fn verdict_falls_no_sooner_than_it_can(leases in clocks(), candidates_known in any::<bool>(), fraction in 0.01..=1.0_f64) {
        let choices = match 1_u32 << leases.len() {
            all if candidates_known => all - 1..all,
            all => 0..all,
        };
        let can_fall = |now: Moment| choices.clone().any(|mask| {
            let chosen = leases.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0);
            Tally::of(chosen.map(|(_, clock)| clock.state(criteria(now)))).verdict(fraction) == Verdict::ScaleDown
        });
        match verdict_possible(&leases, candidates_known, fraction, criteria(at(0.0))).map(|moment| moment - JUST_AFTER) {
            Some(expiry) => {
                prop_assert!(!can_fall(expiry - TimeDelta::nanoseconds(1)));
                prop_assert!(can_fall(expiry), "no probe is wasted");
            }
            None => prop_assert!(!can_fall(at(1e6))),
        }
    }
}
