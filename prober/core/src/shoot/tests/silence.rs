//! D-54 and D-55: what silence proves.

use super::*;

/// After a long time without a probe, for whatever reason: here this process was suspended.
#[test]
fn break_discounts_silence() {
    for renewed in [true, false] {
        let mut leader = healthy().silent(104.0);
        leader.until(103.0).change_settings();
        leader.jump(138.0).until(138.0);
        assert_eq!(leader.verdict(), Verdict::HoldUndecided);
        if renewed {
            leader.until(140.0).nodes_back();
        }
        leader.until(160.0);
        let expected = if renewed {
            vec![]
        } else {
            vec![(149.001, MCM, 0), (149.001, KCM, 0)]
        };
        assert_eq!(leader.writes(), expected, "renewed: {renewed}");
    }
}

#[test]
fn unanswered_probe_starts_no_doubt() {
    // D-70
    let mut leader = outage();
    leader.until(-11.0).change_settings().until(-4.0);
    leader.api = FAILS;
    leader.change_settings().until(2.8);
    leader.api = Api::Answers;
    leader.until(2.9).change_settings();
    assert_eq!(leader.writes()[0], (2.9, MCM, 0));
}

#[test]
fn leases_alone_prove_nothing() {
    let mut leader = healthy().silent(104.5);
    leader.nodes.machines = 0;
    leader.until(110.0).show(KCM, |kcm| *kcm = running(0));
    leader.until(690.0);
    let mut verdicts = leader.verdicts.iter();
    assert!(verdicts.all(|(_, verdict)| *verdict == Verdict::HoldNoMachines));
    assert_eq!(leader.writes(), []);
    leader.until(740.0);
    assert_eq!(leader.verdict(), Verdict::ScaleUp, "as without candidates");
    assert_eq!(leader.scaled(), [(KCM, 1)]);
}

#[test]
fn one_lease_alone_is_no_candidate() {
    let mut leader = healthy().of_nodes(1);
    leader.nodes.machines = 0;
    leader.until(10.0);
    assert_eq!(leader.verdict(), Verdict::ScaleUp);
}
