//! A probe over TLS of a shoot that answers from afar, and what it allocates on this side.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use api_server::{Fault, Options, When};
use chrono::Utc;
use tokio::runtime::{Builder, Runtime};

use super::shoot::TestShoot;
use super::work::{self, CHUNK};

/// One client in its steady state.
pub struct ProbeBench {
    runtime: Runtime,
    shoot: TestShoot,
    /// Runtime of the server, which gives the same answers again and again, in a thread of its own, so that
    /// nothing it does is counted as its client's.
    _apart: Runtime,
}

impl ProbeBench {
    /// Connects to a shoot of so many nodes and probes a few times.
    pub fn new(count: usize) -> Self {
        let [apart, runtime] = [Builder::new_multi_thread(), Builder::new_current_thread()]
            .map(|mut builder| builder.enable_all().build().expect("a runtime"));
        let shoot = apart.block_on(TestShoot::with(Options {
            requests_kept: 1,
            ..Options::default()
        }));
        let chunks = Fault::Slow {
            bytes: CHUNK,
            pause: Duration::ZERO,
        };
        shoot.api.faults().add(When::any(), chunks);
        let (lists, leases) = (shoot.api.computed(), work::leases(count, Utc::now()));
        lists.set("leases.coordination.k8s.io", move || leases.clone());
        let mut probing = Self {
            runtime,
            shoot,
            _apart: apart,
        };
        for _ in 0..5 {
            assert_eq!(probing.leases(), count);
        }
        probing
    }

    /// Lists the leases; how many there are.
    pub fn leases(&mut self) -> usize {
        let leases = self.runtime.block_on(self.shoot.leases());
        leases.expect("a complete answer").items.len()
    }

    /// Allocations of a probe: the median of several, since timers and buffers add a few now and then.
    pub fn allocations(&mut self) -> AllocationInfo {
        let runs = (0..15).map(|_| measure(|| assert!(self.leases() > 0)));
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|run| run.count_total);
        runs[runs.len() / 2]
    }
}
