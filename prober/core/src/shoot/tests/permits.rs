//! What is written is decided once the permit is there.

use super::*;

#[test]
fn change_gives_the_permit_back() {
    tell(
        "
        it serves whichever is next | outage, permits held; 1 mcm down, permit; 1 | 1 kcm 0
        one write each | outage, permits held; 1 permit; 2 permit; 3 | 1 mcm 0, 2 kcm 0
        others change it | outage, permits held; 0.9 probes hang, mcm at 3; 0.9 permit; 0.9 probes answered, permits given, suspended to 1 s, probe fails; 10 | 2 mcm 0 of 3, 2 kcm 0; probes from 0.9 to 1.5: 0.9
        others do it | outage, permits held; 0.9 mcm down, kcm down, permit; 0.9 | nothing
        the verdict turns | outage, permits held; 0.9 nodes back; 20 permit; 20 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp
        ",
    );
}

#[test]
fn failing_probes_stop_a_restore() {
    tell(
        "
        a scale-down goes on | outage, permits held; 0.9 probes fail; 1.5 permit; 1.5 | 1.5 mcm 0
        a restore waits | held down, permits held; 31 probes fail, settings; 31 permit; 31 probes answered, permits given; 40 | 35 kcm 1, 35 mcm 1
        ",
    );
}

#[test]
fn refused_write_is_decided_again() {
    tell(
        "
        a conflict is read, and probed for | outage, writes held; 1 read at 2, writes made, conflict mcm; 2 | 0 mcm 0, 1 mcm 0 of 2, 1 kcm 0; probes from 1 to 1.5: 1, 1
        what vanished is done | outage, writes held; 1 writes made, vanished mcm; 20 | 0 mcm 0, 1 kcm 0
        ",
    );
}
