//! D-54 and D-55: what silence proves.

use super::*;

const UNDECIDED: Verdict = Verdict::HoldUndecided;

#[test]
fn after_a_long_time_without_a_probe_old_leases_prove_nothing_for_a_beat_and_a_second() {
    for renewed in [true, false] {
        let mut rig = Rig::leader();
        rig.silent(104.0);
        rig.run(103.0);
        rig.settings_changed();
        // Whatever the reason: here this process was suspended.
        rig.now = at(138.0);
        if renewed {
            rig.silences[0].1 = 140.0;
        }
        rig.run(138.0);
        assert_eq!(rig.verdict(), UNDECIDED);
        rig.run(160.0);
        let expected = if renewed {
            vec![]
        } else {
            vec![(149.001, MCM, Some(0)), (149.001, KCM, Some(0))]
        };
        assert_eq!(rig.writes(), expected, "renewed: {renewed}");
    }
}

#[test]
fn a_probe_without_an_answer_starts_no_doubt() {
    // D-70
    let mut rig = Rig::leader().in_outage();
    rig.run(119.0);
    rig.settings_changed();
    rig.run(126.0);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.settings_changed();
    rig.run(132.99);
    rig.api = Api::Answers;
    rig.run(133.0);
    rig.settings_changed();
    assert_eq!(rig.writes()[0], (133.0, MCM, Some(0)));
}

#[test]
fn without_a_single_machine_leases_prove_nothing_for_ten_minutes() {
    let mut rig = Rig::leader().in_outage();
    rig.machines = Arc::default();
    rig.run(110.0);
    rig.show(KCM, |observed| (observed.replicas, observed.ready) = (0, 0));
    rig.run(690.0);
    assert!(
        rig.verdicts
            .iter()
            .all(|(_, verdict)| *verdict == Verdict::HoldNoMachines)
    );
    assert_eq!(rig.writes(), []);
    rig.run(740.0);
    assert_eq!(rig.verdict(), Verdict::ScaleUp, "as without candidates");
    assert_eq!(
        rig.writes()
            .iter()
            .map(|write| (write.1, write.2))
            .collect::<Vec<_>>(),
        [(KCM, Some(1))]
    );
}

#[test]
fn one_lease_without_a_machine_is_no_candidate() {
    let mut rig = Rig::leader();
    (rig.nodes, rig.machines) = (1, Arc::default());
    rig.run(10.0);
    assert_eq!(rig.verdict(), Verdict::ScaleUp);
}
