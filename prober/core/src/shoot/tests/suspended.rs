//! What operators stop: the pause, known and unknown.

use super::*;

#[test]
fn unknown_pause_lets_protect() {
    tell(
        "
        a leader protects | outage, pause unknown; 100 unpaused; 102 | 0 mcm 0, 0 kcm 0
        a standby does not | outage, standby, pause unknown; 100 unpaused; 102 | 101.5 mcm 0, 101.5 kcm 0
        a restore waits | held down, pause unknown; 100 unpaused; 102 | 100 kcm 1, 100 mcm 1
        ",
    );
}

#[test]
fn known_pause_stays_in_effect() {
    tell(
        "
        until it is lifted; it is said once | outage, paused; 10 pause unknown; 70 unpaused; 71 | 70 mcm 0, 70 kcm 0; waits: 0 mcm Paused, 0 kcm Paused
        ",
    );
}

#[test]
fn pause_or_move_ends_a_scaling() {
    tell(
        "
        paused | outage, permits held; 1 paused; 20 permit; 20 | nothing
        in a write | outage, writes held; 1 paused; 20 | 0 mcm 0; cancelled: 1 mcm
        elsewhere | outage, permits held; 1 elsewhere; 20 permit; 20 | nothing
        in a write | outage, writes held; 1 elsewhere; 20 | 0 mcm 0; cancelled: 1 mcm
        of a standby | outage, standby, writes held; 1.6 paused; 20 | 1.5 mcm 0; cancelled: 1.6 mcm
        ",
    );
}

#[test]
fn what_is_forbidden_is_no_scaling() {
    for (change, scaling) in [
        ("", Some(Direction::Down)),
        ("paused", None),
        ("elsewhere", None),
        ("owner unknown", None),
    ] {
        let mut timeline = begin("outage, permits held");
        timeline.then(&format!("1 {change}; 2"));
        assert_eq!(timeline.shoot.scaling(), scaling, "{change}");
    }
}

#[test]
fn dry_run_says_each_write_once() {
    tell(
        "
        each level in its time | outage, dry run; 20 reload; 70 | nothing; would: 0 mcm 0, 5 kcm 0
        on the way up, too | held down, dry run; 60 | nothing; would: 30 kcm 1, 35 mcm 1
        and probes no longer for it | outage, dry run; 40 | probes from 3: 3, 4, 5, 21.4, 37.8
        ",
    );
}
