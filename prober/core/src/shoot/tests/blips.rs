//! D-69: nodes that renew once and are silent again are no nodes whose clocks are behind.

use super::*;

/// A replica that starts in mid-outage, beside what others hold down or not.
fn started_in_an_outage(dependent: &Observed) -> Timeline {
    let [mcm, kcm] = [(); 2].map(|()| dependent.clone());
    healthy().dependents(mcm, kcm).silent(-35.0)
}

#[test]
fn start_and_blip_restore_nothing() {
    for blip in [57.0, 60.0, 63.0, 66.0, 69.0] {
        let mut replica = started_in_an_outage(&held("1")).standby();
        replica.until(blip).mark().blip();
        // By then they have been marked Unknown.
        replica.until(41.0);
        replica.env.leads = true;
        replica.until(100.0);
        assert_eq!(replica.writes(), [], "a blip at {blip} s");
    }
}

/// Probes fail for so long after a blip. The last write, which takes down, comes before the nodes are
/// marked Unknown; as soon as leases expire if the blip is not seen so late that it is doubted then.
#[test]
fn blip_delays_no_protection() {
    for failing in [0.0, 10.0, 12.0, 15.0, 20.0, 25.0] {
        for (mut leader, blip) in [
            (started_in_an_outage(&running(1)), 61.0),
            (outage(), 3570.0),
        ] {
            leader.until(blip).mark().blip();
            leader.api = FAILS;
            leader.until(failing);
            leader.api = Api::Answers;
            leader.until(80.0);
            let writes = leader.writes();
            let (last, _, replicas) = writes[writes.len() - 1];
            let latest = if failing > 15.0 { 40.0 } else { 31.0 };
            assert!(
                replicas == 0 && last < latest,
                "blip at {blip} s, probes failed for {failing} s: {writes:?}"
            );
        }
    }
}
