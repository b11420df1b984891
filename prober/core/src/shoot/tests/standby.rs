//! D-50: what a replica writes that does not lead. Its patience is 1.5 s at a grace of 40 s.

use super::*;

#[test]
fn standby_waits_for_the_leader() {
    tell(
        "
        the leader writes at its verdict | outage; 5 | 0 mcm 0, 0 kcm 0; probes from 0 to 0.5: 0
        a standby has its patience | outage, standby; 20 | 1.5 mcm 0, 1.5 kcm 0
        less where nodes are marked sooner | outage, grace 20 s, standby; 20 | 0.75 mcm 0, 0.75 kcm 0
        from the end of initialDelay on | outage, initialDelay 40 s, eligible at -30 s, standby; 30 | 11.5 mcm 0, 11.5 kcm 0
        of a longer one | outage, initialDelay 60 s, eligible at -30 s, standby; 50 | 31.5 mcm 0, 31.5 kcm 0
        from the end of a pause on | outage, standby, paused; 10 unpaused; 20 | 11.5 mcm 0, 11.5 kcm 0
        level by level | outage, standby, pods linger; 20 | 1.5 mcm 0, 5 kcm 0
        each level is the leader's first | outage, standby; 0.5 mcm ending; 3 mcm down; 20 | 4.5 kcm 0
        a conflict is no step taken | outage, standby, writes held; 2 mcm down; 2 conflict mcm; 20 | 1.5 mcm 0, 3.5 kcm 0
        raised when the last answer ends the scaling | outage, standby, writes held; 2 make mcm, writes made, mcm raised, make kcm; 20 | writes from 1.6: 2 kcm 0, 12 mcm 0
        a leader was killed before the outage | outage, standby, leader silent from -10 s; 10 | 0 mcm 0, 0 kcm 0
        in the patience | outage, standby, leader silent from 0.5 s; 10 | 0.5 mcm 0, 0.5 kcm 0
        it lives | outage, standby, leader silent from 60 s; 10 | 1.5 mcm 0, 1.5 kcm 0
        it falls silent between two levels | outage, standby; -1 mcm ending, leader silent from 6 s; 10 | 6 kcm 0
        ",
    );
}

#[test]
fn standby_wants_the_seeds_word() {
    tell(
        "
        a second later again | outage, standby, seed disagrees; 20 seed agrees; 22 | 20 kcm 0, 20.5 mcm 0
        the nodes renew meanwhile | outage, standby, seed disagrees; 0.5 nodes back; 20 seed agrees; 22 | nothing
        it is off | outage, standby, protects off; 300 | nothing; verdicts: ScaleUp, ScaleDown
        it is off | held down, standby, protects off; 300 | nothing; verdicts: HoldUndecided, ScaleUp
        ",
    );
}

#[test]
fn standby_awaits_a_probe() {
    // D-84: an answer since its time, for 2 s, and none that is old.
    tell(
        "
        there is none | outage, standby, pods linger; 0 probes hang; 1.5; 3.51 | 3.5 mcm 0
        an answer counts from when it is there | outage, standby, pods linger; 0 probes hang; 2.4 answer 1; 3.51 | 2.4 mcm 0
        for 5 s | outage, standby, pods linger, permits held; 0 probes hang; 5.1 permit; 20 answer 1, permit; 20 | 20 mcm 0
        the nodes renew meanwhile | outage, standby; 1 nodes back; 70 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 1 to 1.5: 1, 1.5
        ",
    );
}

#[test]
fn standby_reports_what_it_takes_over() {
    tell(
        "
        the leader does it | outage, standby, kcm missing; 0.5 mcm down; 20 | nothing; reports: nothing
        it does not | outage, standby, kcm missing; 20 | 1.5 mcm 0; failed: 1.7 kcm Down, 4.7 kcm Down, 10.7 kcm Down
        ",
    );
}

#[test]
fn standby_takes_turns() {
    // Replicas with different verdicts do not fight.
    tell(
        "
        once an outage | outage, standby; 10 mcm undone, kcm undone; 170 nodes back; 200 silent from 275 s; 320 | 1.5 mcm 0, 1.5 kcm 0, 301.601 mcm 0, 301.601 kcm 0
        a hold turns no verdict | outage, standby; 10 mcm undone, kcm undone; 20 probes fail; 60 probes answered; 170 | 1.5 mcm 0, 1.5 kcm 0; verdicts: ScaleUp, ScaleDown, HoldUndecided, ScaleDown
        an unanswered write is its turn | outage, standby, writes held; 2 timeout mcm, writes made, mcm down; 15 mcm undone; 70 | scaled: mcm 0, kcm 0
        a leader takes no turns | outage; 10 mcm undone; 10.5 mcm undone; 20 | 0 mcm 0, 0 kcm 0, 10 mcm 0, 11 mcm 0
        renewals stop the next one | outage, standby, leader silent from -130 s; 6 mcm raised; 9 nodes back; 10.1 | 0 mcm 0, 0 kcm 0; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 9.1: 10, 10
        what is raised is its turn at once | outage, standby; 20 mcm raised; 21 | 1.5 mcm 0, 1.5 kcm 0, 20 mcm 0
        raised one by one | outage, standby; 20 kcm raised; 21 mcm raised; 24 | 1.5 mcm 0, 1.5 kcm 0, 20 kcm 0, 21 mcm 0
        it repairs nothing | outage, standby; 1 mcm held at 2; 1 mcm unmarked, kcm down; 20 | nothing
        which the leader does | outage, standby; 1 mcm held at 2; 1 mcm unmarked, kcm down, lead; 20 | 1 mcm 0 of 2
        what is raised with its marker | outage, standby; 6 to 69 by 1 mcm raised; 69 | mcm: 1.5 0, 11.5 0, 21.5 0, 31.5 0, 41.5 0, 51.5 0, 61.5 0
        ",
    );
}

#[test]
fn standby_restores_after_a_minute() {
    tell(
        "
        in which all probes say up | held down, standby; 110 | 76.4 kcm 1, 76.4 mcm 1
        and the time for which they must | held down, standby, stabilization 40 s; 150 | 116.4 kcm 1, 116.4 mcm 1
        an unprobed minute does not count | held down, standby; 0 probes fail; 70 probes answered, settings; 71; 150 | 130 kcm 1, 130 mcm 1
        nor does one after it was well | standby; 100 mcm down, probes fail; 190 probes answered, settings; 191; 320 | 250 mcm 1
        what the leader takes down | standby; 100 mcm down; 200 | 176.4 mcm 1
        only what is marked and at 0 | standby, mcm stopped, kcm held at 2, kcm ready at 2; 400 lead; 450 | 400 kcm 2, 400 mcm 1
        ",
    );
}
