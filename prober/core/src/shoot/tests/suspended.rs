//! What operators stop: the pause, known and unknown.

use super::*;

#[test]
fn unknown_pause_lets_protect() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("a leader protects", "outage, pause unknown; 100 unpaused; 102", "0 mcm 0, 0 kcm 0; verified: nothing"),
        ("a standby does not, nor does it read the seed", "outage, standby, pause unknown; 100 unpaused; 102", "101.5 mcm 0, 101.5 kcm 0; verified: 100"),
        ("a restore waits", "held down, pause unknown; 100 unpaused; 102", "100 kcm 1, 100 mcm 1"),
    ];
    tell(rows);
}

#[test]
fn known_pause_stays_in_effect() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("until it is lifted; it is said once", "outage, paused; 10 pause unknown; 70 unpaused; 71", "70 mcm 0, 70 kcm 0; waits: 0 mcm NotPaused, 0 kcm NotPaused"),
    ];
    tell(rows);
}

#[test]
fn pause_or_move_abandons_a_scaling() {
    // A late permit is given back.
    for change in ["paused", "elsewhere"] {
        for (held, writes) in [("permits held", "nothing"), ("writes held", "0 mcm 0")] {
            let mut leader = begin(&format!("outage, {held}"));
            leader.then(&format!("1 {change}; 20"));
            assert_eq!(leader.shoot.scaling(), None);
            leader.then("20 permit mcm; 20");
            let expected = "reports: Begun(Down), Abandoned(Down); cancelled: 1 mcm, 20 mcm";
            assert_eq!(leader.comes_to(expected), expected, "{change}, {held}");
            assert_eq!(leader.shown("writes"), writes, "{change}, {held}");
        }
    }
}

/// Nothing is decided again before the end of a longer delay.
#[test]
fn reload_keeps_dry_run_names() {
    let mut leader = begin("outage, dry run, eligible at -130.101 s");
    leader.then("1 mcm alone, initialDelay 300 s; 1");
    let intended = leader.shoot.intended().iter();
    let names: Vec<_> = intended.map(|intended| &*intended.name).collect();
    assert_eq!(
        names,
        ["machine-controller-manager", "kube-controller-manager"]
    );
    let expected = "nothing; reports: WouldWrite(mcm, Down, 1, 0), WouldWrite(kcm, Down, 1, 0)";
    assert_eq!(leader.comes_to(expected), expected, "each is said once");
}
