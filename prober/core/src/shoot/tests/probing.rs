//! How far apart a healthy shoot is probed.

use super::*;

#[test]
fn chance_stretches_the_interval() {
    for (chance, gap) in [(0.0, 4.0), (0.5, 5.0), (1.0, 6.0)] {
        let mut leader = healthy().config(|config| {
            config.probe_interval = Duration::from_secs(4);
            config.backoff_jitter_factor = 0.5;
        });
        leader = leader.with(|env| env.chance = chance);
        leader.until(300.0);
        let probes = leader.probes(200.0);
        for two in probes.windows(2) {
            assert!((two[1] - two[0] - gap).abs() < 0.002, "{gap}: {probes:?}");
        }
    }
}
