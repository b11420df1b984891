use proptest::prelude::*;

use super::super::verdict::{Tally, Verdict};
use super::*;
use crate::tests::scene::{GRACE, at, criteria, number, span, table, times, wall};

#[test]
fn oldest_candidate_sets_deadline() {
    let renewed = |seconds| LeaseClock::new(&times(seconds), wall(seconds), Some(40));
    let leases = [9.0, 2.0, 5.0].map(renewed);
    for [what, since, grace, deadline] in table(
        "
        none is marked | 33 | 40 | 39
        the first is lost | 42 | 40 | 42
        it is past: no level waits | 46 | 40 | 46
        all were lost before | 49 | 40 | 0
        no earlier where there is more time | 33 | 50 | 49
        closer to a short grace | 2.5 | 4 | 5.7
        ",
    ) {
        let grace = Grace::new(span(number(grace)));
        let found = ordering_deadline(&leases, at(number(since)), grace);
        assert_eq!(found, at(number(deadline)), "{what}");
    }
    let grace = Grace::new(span(40.0));
    assert_eq!(ordering_deadline(&[], at(0.0), grace), Moment::START);
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
