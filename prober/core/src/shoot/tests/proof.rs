//! D-54, D-55, D-59, D-60: what silence proves, and what brings back and marks.

use super::*;

#[test]
fn silence_counts_when_it_was_watched() {
    tell(
        "
        not in a break, as of a suspended process | silent from 104 s; 103 settings; 103 suspended to 138 s; 160 | 149.001 mcm 0, 149.001 kcm 0; verdicts: ScaleUp, HoldUndecided, ScaleDown
        after which the nodes renew | silent from 104 s; 103 settings; 103 suspended to 138 s; 140 nodes back; 160 | nothing; verdicts: ScaleUp, HoldUndecided, ScaleUp
        an unanswered probe is no break: D-70 | outage; -11 settings; -4 probes fail, settings; 2.8 probes answered; 2.9 settings; 2.9 | 2.9 mcm 0, 2.9 kcm 0
        ",
    );
}

#[test]
fn leases_alone_prove_nothing() {
    tell(
        "
        for ten minutes; then as without candidates | silent from 104.5 s, 0 machines; 110 kcm stopped; 740 | 705.2 kcm 1
        one lease alone is no candidate | 1 nodes, 0 machines; 10 | nothing; verdicts: ScaleUp
        ",
    );
}

#[test]
fn future_stamp_restores_nothing() {
    tell(
        "
        | held down, silent from -60 s; 700 nodes back; 720 | 701.001 kcm 1, 701.001 mcm 1
        | held down, silent from -60 s, clocks ahead 31 s; 700 nodes back; 720 | 701.001 kcm 1, 701.001 mcm 1
        | held down, silent from -60 s, clocks ahead 60 s; 700 nodes back; 720 | 700.101 kcm 1, 700.101 mcm 1
        | held down, silent from -60 s, clocks ahead 600 s; 700 nodes back; 720 | 705.001 kcm 1, 705.001 mcm 1
        ",
    );
}

#[test]
fn nothing_but_renewals_restores() {
    tell(
        "
        a longer grace | outage; 10 monitor grace 600 s; 60 nodes back; 80 | 0 mcm 0, 0 kcm 0, 65 kcm 1, 65 mcm 1; verdicts from 10: HoldUndecided, ScaleUp
        no node counts | outage; 10 no node counts; 60 nodes back; 80 | 0 mcm 0, 0 kcm 0, 61 kcm 1, 61 mcm 1; verdicts from 10: HoldUndecided, ScaleUp
        there are no Machines | outage; 10 0 machines; 60 nodes back; 80 | 0 mcm 0, 0 kcm 0, 61 kcm 1, 61 mcm 1; verdicts from 10: HoldNoMachines, ScaleUpHeldDown, HoldNoMachines
        another replica takes one down | mcm held, permits held; 30 probes hang; 33 kcm held; 34 permit; 34 | nothing
        a marker that only a read shows wants them too | outage, writes held, kcm ignored; 0 read held, conflict mcm, monitor grace 600 s; 70 | 0 mcm 0; verdicts: ScaleUp, ScaleDown, HoldUndecided
        ",
    );
}

#[test]
fn marker_is_of_what_was_held_down() {
    tell(
        "
        memory alone sets none | outage, mcm held at 2, mcm unmarked, only held down; 20 | 0 kcm 0
        a lost one is set again | outage; 10 mcm unmarked; 20 | 0 mcm 0, 0 kcm 0, 10 mcm 0
        ",
    );
}

#[test]
fn gone_and_shown_anew_is_scaled() {
    tell(
        "
        the view may lag | outage, writes held, kcm ignored; 1 vanished mcm; 5 mcm at 3; 20 | 0 mcm 0, 5 mcm 0 of 3
        on the way up, too | outage, kcm ignored; 20 writes held, nodes back; 40 vanished mcm; 60 | 0 mcm 0, 21 mcm 1
        it was made again in time | outage, writes held, kcm ignored; 1 mcm remade; 1 vanished mcm; 10 | 0 mcm 0, 1 mcm 0
        ",
    );
}
