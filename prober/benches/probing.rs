//! A probe over TLS of a shoot that answers from afar, and what it allocates on this side.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use chrono::Utc;
use prober::clock::Clock;
use prober::core::lease::LeaseClocks;
use prober::shoot_client::{Budget, ShootClient};
use tokio::runtime::Runtime;

use super::bodies;
use super::canned::{Canned, Known};
use super::work::GRACE;

/// One client in its steady state: connected, all leases known.
pub struct Probing {
    runtime: Runtime,
    engine: ShootClient<Known>,
    book: LeaseClocks,
    /// Dropped last: the client's connection ends before its server.
    _server: Canned,
}

impl Probing {
    /// Connects to a shoot of so many nodes and probes a few times.
    pub fn new(count: usize) -> Self {
        let server = Canned::start(bodies::leases(count, Utc::now()), bodies::nodes(count.min(500)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let engine = {
            let _inside = runtime.enter();
            ShootClient::new(Clock::start(), server.secret())
        };
        let mut probing = Self { runtime, engine, book: LeaseClocks::default(), _server: server };
        for _ in 0..5 {
            assert_eq!(probing.leases(), count);
        }
        probing
    }

    /// Lists the leases and takes them in; how many there are.
    pub fn leases(&mut self) -> usize {
        self.runtime.block_on(async {
            let budget = Budget::starting_now(Duration::from_secs(10));
            let seen = self.engine.leases(budget).await.expect("a complete answer");
            let count = seen.items.len();
            self.book.observe(&seen.times, seen.items.iter(), GRACE);
            count
        })
    }

    /// Lists the nodes; how many there are.
    pub fn nodes(&mut self) -> usize {
        self.runtime.block_on(async {
            let budget = Budget::starting_now(Duration::from_secs(10));
            self.engine.nodes(budget).await.expect("a complete answer").items.len()
        })
    }

    /// What one such piece of work allocates: the median of several, since timers and buffers add a few now and then.
    pub fn allocations(&mut self, work: fn(&mut Self) -> usize) -> AllocationInfo {
        let mut runs: Vec<AllocationInfo> = (0..15).map(|_| measure(|| assert!(work(self) > 0))).collect();
        runs.sort_by_key(|run| run.count_total);
        runs[runs.len() / 2]
    }
}
