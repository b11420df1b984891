//! D-51, D-53, D-84: restores, and those that another process began.

use super::*;

#[test]
fn restore_within_half_a_beat() {
    tell(
        "
        of the nodes | outage; 70 mark, nodes back; 16 | writes from 0: 1 kcm 1, 1 mcm 1
        clocks put back by 15 s | outage; 170 mark, clocks ahead -15 s, nodes back; 120 | writes from 0: 1 kcm 1, 1 mcm 1
        by 25 s | outage; 170 mark, clocks ahead -25 s, nodes back; 120 | writes from 0: 1 kcm 1, 1 mcm 1
        by 35 s | outage; 170 mark, clocks ahead -35 s, nodes back; 120 | writes from 0: 1 kcm 1, 1 mcm 1
        by 60 s | outage; 170 mark, clocks ahead -60 s, nodes back; 120 | writes from 0: 1 kcm 1, 1 mcm 1
        clocks put forward | outage; 170 mark, clocks ahead 35 s, nodes back; 120 | writes from 0: 1 kcm 1, 1 mcm 1
        ",
    );
}

#[test]
fn changed_is_scaled_again() {
    // D-84: what others change on what is done.
    tell(
        "
        raised while a write hangs | outage, writes held; 1 make mcm; 6 mcm raised; 10 | 0 mcm 0, 1 kcm 0, 6 mcm 0
        raised while a level waits | outage, kcm delayed down by 120 s; 3 mcm raised; 6 | 0 mcm 0, 3 mcm 0
        changed while its delay runs, which counts once | outage, mcm delayed up by 10 s; 70 mark, nodes back; 8 mcm memory 3; 40 | writes from 0: 1 kcm 1, 11 mcm 3
        not again after a conflict | outage, grace 120 s, kcm delayed down by 8 s, writes held; 1 make mcm; 9.1 kcm at 2, conflict kcm; 40 | kcm: 9 0, 9.2 0
        nor for what is raised | outage, grace 120 s, kcm delayed down by 8 s; 10 kcm raised; 40 | kcm: 8 0, 10 0
        taken down while a level waits | outage, mcm delayed up by 30 s; 70 mark, nodes back; 8 kcm down; 28 | writes from 0: 1 kcm 1, 13 kcm 1
        ",
    );
}

#[test]
fn begun_restore_waits_too() {
    // Two of three nodes renew between the first probe and the next, 5 s later.
    tell(
        "
        for initialDelay | mcm held; 200 | 30 mcm 1
        for the delay of its level | mcm held, mcm delayed up by 30 s; 200 | 35 mcm 1
        whoever gains the lead in it | standby, mcm held, mcm delayed up by 30 s; 2 lead; 200 | 35 mcm 1
        it needs renewals | mcm held, mcm delayed up by 30 s, silent from 5 s; 200 | 30.101 kcm 0
        a scale-down goes on | mcm held, silent from -25 s; 700 | 11.001 kcm 0
        clocks ahead | mcm held, silent from -25 s, clocks ahead 31 s; 700 | 30 kcm 0
        further ahead | mcm held, silent from -25 s, clocks ahead 60 s; 700 | 30 kcm 0
        far ahead | mcm held, silent from -25 s, clocks ahead 600 s; 700 | 30 kcm 0
        no node counts | mcm held, 0 nodes; 200 | 30 mcm 1
        ",
    );
}
