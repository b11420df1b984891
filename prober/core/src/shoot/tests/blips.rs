//! D-69: nodes that renew once and are silent again are no nodes whose clocks are behind.

use super::*;

#[test]
fn start_and_blip_restore_nothing() {
    for blip in [57, 60, 63, 66, 69] {
        let mut replica = begin("held down, standby, silent from -35 s");
        // By 41 s after it they have been marked Unknown.
        replica.then(&format!("{blip} mark, blip; 41 lead; 100"));
        assert_eq!(replica.writes(), NOTHING, "a blip at {blip} s");
    }
}

/// Probes fail for so long after a blip. The last write, which takes down, comes before the nodes are
/// marked Unknown; as soon as leases expire if the blip is not seen so late that it is doubted then.
#[test]
fn blip_delays_no_protection() {
    for failing in [0.0, 10.0, 12.0, 15.0, 20.0, 25.0] {
        for (begins, blip) in [("silent from -35 s", 61), ("outage", 3570)] {
            let mut leader = begin(begins);
            leader.then(&format!(
                "{blip} mark, blip, probes fail; {failing} probes answered; 80"
            ));
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
