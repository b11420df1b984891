//! D-69: nodes that renew once and are silent again are no nodes whose clocks are behind.

use super::*;

#[test]
fn start_and_blip_restore_nothing() {
    // By 41 s after it they have been marked Unknown.
    tell(
        "
        | held down, standby, silent from -35 s; 57 mark, blip; 41 lead; 100 | nothing
        | held down, standby, silent from -35 s; 60 mark, blip; 41 lead; 100 | nothing
        | held down, standby, silent from -35 s; 63 mark, blip; 41 lead; 100 | nothing
        | held down, standby, silent from -35 s; 66 mark, blip; 41 lead; 100 | nothing
        | held down, standby, silent from -35 s; 69 mark, blip; 41 lead; 100 | nothing
        ",
    );
}

#[test]
fn blip_delays_no_protection() {
    // As soon as leases expire if the blip is not seen so late that it is doubted then; and before the
    // nodes are marked Unknown.
    tell(
        "
        after a start | silent from -35 s; 61 mark, blip; 80 | -49.999 mcm 0, -49.999 kcm 0, 1.001 kcm 1, 1.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        probes fail for 10 s | silent from -35 s; 61 mark, blip, probes fail; 10 probes answered; 80 | -49.999 mcm 0, -49.999 kcm 0, 13.001 kcm 1, 13.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        for 15 s | silent from -35 s; 61 mark, blip, probes fail; 15 probes answered; 80 | -49.999 mcm 0, -49.999 kcm 0, 18.001 kcm 1, 18.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        for 25 s | silent from -35 s; 61 mark, blip, probes fail; 25 probes answered; 80 | -49.999 mcm 0, -49.999 kcm 0, 28.001 kcm 1, 28.001 mcm 1, 39.002 mcm 0, 39.002 kcm 0
        after an hour | outage; 3570 mark, blip; 80 | writes from 0: 1.001 kcm 1, 1.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        probes fail for 12 s | outage; 3570 mark, blip, probes fail; 12 probes answered; 80 | writes from 0: 13.001 kcm 1, 13.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        for 15 s | outage; 3570 mark, blip, probes fail; 15 probes answered; 80 | writes from 0: 18.001 kcm 1, 18.001 mcm 1, 30.101 mcm 0, 30.101 kcm 0
        for 25 s | outage; 3570 mark, blip, probes fail; 25 probes answered; 80 | writes from 0: 28.001 kcm 1, 28.001 mcm 1, 39.002 mcm 0, 39.002 kcm 0
        ",
    );
}

#[test]
fn turned_verdict_ends_a_write() {
    // D-23. A restore that is made later than that stays while probes fail.
    tell(
        "
        of a scale-down | outage, writes held; 1 nodes back; 20 | 0 mcm 0; cancelled: 2 mcm
        of a restore | outage; 70 mark, nodes back, writes held; 1 silent from 3 s; 31 probes fail; 60 | writes from 0: 1 kcm 1; cancelled: 30.101 kcm
        nothing else does | outage, writes held; 1 probes fail; 4.9 | 0 mcm 0; cancelled: nothing
        ",
    );
}
