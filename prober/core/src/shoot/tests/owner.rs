//! The owner record decides whether anything is written for a shoot here.

use super::*;

#[test]
fn unknown_owner_holds_writes_back() {
    tell(
        "
        since the start | outage, owner unknown; 5 owner here; 6 | 5 mcm 0, 5 kcm 0
        by one odd answer; it is probed all the same | outage; -5 owner unknown; 5 owner here; 6 | 5 mcm 0, 5 kcm 0; probes from -5 to 0.5: 0
        it is said once | outage, owner unknown; 5 | nothing; reports: NotOwner(Down)
        while that is tolerated the leader protects | outage, owner tolerated; 30 nodes back; 170 owner here; 180 | 0 mcm 0, 0 kcm 0, 170 kcm 1, 170 mcm 1
        and no standby | outage, standby, owner tolerated; 70 | nothing
        ",
    );
}

#[test]
fn lost_shoot_is_left_alone() {
    tell(
        "
        a late permit is given back | outage, permits held; 2 owner elsewhere; 2 permits given, permit mcm; 300 | nothing; reports: Begun(Down), Abandoned(Down); cancelled: 2 mcm, 2 mcm
        between two levels | outage, pods linger; 2 owner elsewhere; 300 | 0 mcm 0; reports: Begun(Down), Abandoned(Down)
        in a restore | held down, permits held; 60 owner elsewhere; 60 permits given, permit mcm; 300 | nothing; reports: Begun(Up), Abandoned(Up)
        it is not probed | healthy; 100 owner elsewhere; 1000 owner here; 1001 | nothing; probes from 100.1: 1000
        a probe is not sent twice | healthy; 100 probes hang; 150 owner elsewhere; 150 owner here; 160 probes answered, answer 150; 200 | nothing; probes from 100: 114.8, 166.4, 182.8, 199.2
        ",
    );
}

#[test]
fn regained_shoot_starts_afresh() {
    // As for a shoot that becomes eligible now.
    tell(
        "
        it is restored after initialDelay | held down, owner elsewhere; 500 mark, owner here; 100 | 30 kcm 1, 30 mcm 1
        a new one is protected after it | owner elsewhere, eligible at 0 s, silent from -50 s; 10 mark, owner here; 100 | 30 mcm 0, 30 kcm 0
        silence is believed once it was watched for a renewal's time | owner elsewhere, silent from 104.5 s; 500 mark, owner here; 100 | 11.001 mcm 0, 11.001 kcm 0
        ",
    );
}

#[test]
fn passivation_keeps_the_order() {
    tell(
        "
        one odd answer does nothing, and it is not probed | owner elsewhere, pods linger; 10 passivate since 9 s; 30 | 10 mcm 0, 15 kcm 0; probes: nothing
        it comes back after initialDelay | owner elsewhere; 10 passivate since 9 s; 30 mark, owner here; 70 | -20 mcm 0, -20 kcm 0, 30 kcm 1, 30 mcm 1
        what was raised is left to a later check | owner elsewhere; 10 passivate since 9 s; 30 kcm raised; 40 passivate since 39 s; 41 | 10 mcm 0, 10 kcm 0, 40 kcm 0
        it is ours again | owner elsewhere, pods linger; 10 passivate since 9 s; 11 owner here; 35 | 10 mcm 0, 21 mcm 1; reports: Begun(Down), Abandoned(Down), Begun(Up), Ended(Up, 1, 0)
        nothing says so any more | owner elsewhere, pods linger; 10 passivate since 9 s; 11 owner elsewhere; 35 | 10 mcm 0; reports: Begun(Down), Abandoned(Down)
        ",
    );
}

#[test]
fn passivation_needs_all_to_say_so() {
    tell(
        "
        | owner elsewhere; 10 passivate since 9 s, owner unknown; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, owner elsewhere; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, standby; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, paused; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, elsewhere; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, Clusters unseen; 100 | nothing
        | owner elsewhere; 10 passivate since 9 s, mcm ignored, kcm ignored; 100 | nothing
        ",
    );
}
