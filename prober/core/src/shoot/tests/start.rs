//! D-51 and D-54: what is probed and written how soon after a start.

use super::*;

#[test]
fn start_protects_in_time() {
    // A beat of 10 s and a second after the first probe the nodes could have renewed.
    tell(
        "
        in operation | silent from -50 s; 100 | 11.001 mcm 0, 11.001 kcm 0
        a new shoot | new, silent from -50 s; 100 | 30 mcm 0, 30 kcm 0; verdicts: HoldUndecided, ScaleDown
        ",
    );
}

#[test]
fn initial_delay_holds_restores() {
    tell(
        "
        in operation | held down; 40 | 30 kcm 1, 30 mcm 1
        a new shoot | new, held down; 40 | 30 kcm 1, 30 mcm 1
        a level waits for its pods | held down, pods linger; 60 | 30 kcm 1, 35 mcm 1; reports: NotReady(kcm)
        ",
    );
}

#[test]
fn first_probes_are_spread() {
    tell(
        "
        over the spread | chance 0.5, interval 1 s; 20 | probes from 0 to 0.9: 0.5
        whoever gains the lead | standby, chance 0.5, interval 1 s; 0.1 lead; 20 | probes from 0 to 0.9: 0.5
        over half of initialDelay | new, chance 0.5, interval 1 s; 20 | probes from 0 to 8: 7.5
        over the spread where that is over | eligible at -100 s, chance 0.5, interval 1 s; 20 | probes from 0 to 0.9: 0.5
        whoever gains the lead | new, standby, chance 0.5, interval 1 s; 0.1 lead; 20 | probes from 0 to 8: 7.5
        ",
    );
}

#[test]
fn chance_stretches_the_interval() {
    tell(
        "
        not at all | interval 4 s, jitter 0.5; 300 | gap from 200: 4.0
        by half of the factor | interval 4 s, jitter 0.5, chance 0.5; 300 | gap from 200: 5.0
        by all of it | interval 4 s, jitter 0.5, chance 1; 300 | gap from 200: 6.0
        ",
    );
}

#[test]
fn failed_probe_is_repeated_soon() {
    tell(
        "
        before any was complete | probes fail; 60 | probes from 0 to 60: 0, 1, 3, 7, 15, 31
        shoots apart | chance 0.5, probes fail; 8 | probes from 0 to 8: 0.5, 1.6, 3.8
        near a verdict | standby; 100 probes fail; 145 | probes from 99: 114.8, 115.8, 117.8, 120.101, 128.101, 144.101
        ",
    );
}

#[test]
fn retry_after_beats_urgency() {
    // No probe was complete yet, initialDelay ends at 30 s, and settings may have changed since.
    tell(
        "
        10 s | new, throttled 10 s; 0.2; 50 | probes from 0 to 10: 0, 10
        10 s, other settings | new, throttled 10 s; 0.2 settings; 50 | probes from 0 to 10: 0, 10
        45 s, other settings | new, throttled 45 s; 0.2 settings; 50 | probes from 0 to 45: 0, 45
        0.5 s, other settings | new, throttled 0.5 s; 0.2 settings; 50 | probes from 0 to 0.6: 0, 0.5
        longer than a minute | new, throttled 600 s; 0.2; 70 | probes from 0 to 69: 0, 60
        0.5 s | new, throttled 0.5 s; 0.2; 50 | probes from 0 to 1: 0, 1
        ",
    );
}
