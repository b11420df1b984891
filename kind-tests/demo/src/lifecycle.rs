//! A shoot's kube-controller-manager, which acts in a real landscape and is not built here: there a
//! node that is marked Unknown takes the endpoints of its pods along.

use crate::scene::GRACE;

/// What its node lifecycle controller would do: mark nodes Unknown that were silent for too long.
/// It works only while a kube-controller-manager pod of that shoot is ready, and one that starts
/// knows nothing of the silence before.
#[derive(Default)]
pub struct NodeLifecycle {
    /// When it last did not work, in seconds of the demo.
    rested: f64,
    /// How many nodes were Unknown at the same time, at most.
    pub unknown_nodes: usize,
}

impl NodeLifecycle {
    /// Goes on to this moment, at which the leases have these ages. Seconds until it marks the
    /// next node Unknown; `None` while it does not work.
    pub fn step(&mut self, works: bool, ages: &[f64], now: f64) -> Option<f64> {
        if !works {
            self.rested = now;
            return None;
        }
        let silences = ages.iter().map(|age| age.min(now - self.rested));
        self.unknown_nodes = self
            .unknown_nodes
            .max(silences.clone().filter(|silence| *silence >= GRACE).count());
        silences
            .max_by(f64::total_cmp)
            .map(|longest| GRACE - longest)
    }
}
