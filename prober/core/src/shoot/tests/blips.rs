//! D-69: nodes that renew once and are silent again are no nodes whose clocks are behind.

use super::*;

/// A replica that starts in mid-outage, beside what others hold down or not.
fn started_in_an_outage(leads: bool, dependent: &Observed) -> Rig {
    let dependents = vec![DependentState::Present(Arc::new(dependent.clone())); 2];
    let mut rig = Rig::with(OwnedEnvironment {
        leads,
        dependents,
        ..two()
    });
    rig.silent(-35.0);
    rig
}

#[test]
fn a_replica_that_started_in_an_outage_restores_nothing_after_a_blip() {
    for blip in [57.0, 60.0, 63.0, 66.0, 69.0] {
        let mut rig = started_in_an_outage(false, &held("1"));
        rig.run(blip);
        rig.renewed_once();
        // By then they have been marked Unknown.
        rig.run(blip + 41.0);
        rig.env.leads = true;
        rig.run(blip + 100.0);
        assert_eq!(rig.writes(), [], "a blip at {blip} s");
    }
}

/// The nodes renew once now, and probes fail for so long. Returns how long after the renewal the
/// last write was made, which takes down.
fn protected_after_a_blip(rig: &mut Rig, failing: f64) -> f64 {
    let blip = seconds(rig.now);
    rig.renewed_once();
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.run(blip + failing);
    rig.api = Api::Answers;
    rig.run(blip + 80.0);
    let writes = rig.writes();
    let Some((last, _, Some(0))) = writes.last() else {
        panic!("{writes:?}")
    };
    last - blip
}

/// Before the nodes are marked Unknown, 40 s after that; as soon as leases expire if the blip is
/// not seen so late that it is doubted then.
fn assert_in_time(after: f64, failing: f64) {
    let latest = if failing > 15.0 { 40.0 } else { 31.0 };
    assert!(after < latest, "{after} s, probes failed for {failing} s");
}

#[test]
fn a_leader_that_started_in_an_outage_protects_in_time_after_a_blip_that_it_sees_late() {
    for failing in [0.0, 10.0, 12.0, 15.0, 20.0, 25.0] {
        let mut rig = started_in_an_outage(true, &running(1));
        rig.run(61.0);
        assert_in_time(protected_after_a_blip(&mut rig, failing), failing);
    }
}

#[test]
fn a_leader_protects_in_time_after_a_blip_in_an_outage_of_an_hour() {
    for failing in [0.0, 10.0, 12.0, 15.0, 20.0, 25.0] {
        let mut rig = Rig::leader().in_outage();
        rig.run(3700.0);
        assert_in_time(protected_after_a_blip(&mut rig, failing), failing);
    }
}
