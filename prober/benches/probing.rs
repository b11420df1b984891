//! A probe over TLS of a shoot that answers from afar, and what it allocates on this side.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use api_server::{Authority, MemoryApi, Options};
use chrono::Utc;
use prober::clock::Clock;
use prober::shoot_client::error::Cause;
use prober::shoot_client::resources::Resources;
use prober::shoot_client::{Budget, KubeconfigSecret, Secrets, ShootClient};
use prober_core::lease::LeaseClocks;
use tokio::runtime::{Builder, Runtime};

use super::bodies;
use super::work::GRACE;

/// One client in its steady state: connected, all leases known.
pub struct ProbeBench {
    runtime: Runtime,
    client: ShootClient<KnownSecret>,
    book: LeaseClocks,
    /// Dropped last: the client's connection ends before its server, which gives the same answers
    /// again and again, in a thread of its own, so that nothing it does is counted as its client's.
    _server: (MemoryApi, Runtime),
}

/// A Secret that does not change.
struct KnownSecret(Arc<KubeconfigSecret>);

impl Secrets for KnownSecret {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        Ok(Arc::clone(&self.0))
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        self.current()
    }
}

impl ProbeBench {
    /// Connects to a shoot of so many nodes and probes a few times.
    pub fn new(count: usize) -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let apart = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let options = Options {
            chunk: Some(bodies::CHUNK),
            requests_kept: 1,
            ..Options::default()
        };
        let authority = Authority::new().expect("an authority");
        let api = apart
            .block_on(MemoryApi::start(&authority, options))
            .expect("a server");
        let (leases, nodes) = (
            bodies::leases(count, Utc::now()),
            bodies::nodes(count.min(500)),
        );
        api.computed()
            .set("leases.coordination.k8s.io", move || leases.clone());
        api.computed().set("nodes", move || nodes.clone());
        let kubeconfig = api.kubeconfig(&Options::default().admin_token).into_bytes();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let client = {
            let _inside = runtime.enter();
            let known = KnownSecret(Arc::new(KubeconfigSecret {
                kubeconfig: Some(kubeconfig),
            }));
            ShootClient::new(Clock::start(), Arc::new(Resources::of_system()), known)
        };
        let mut probing = Self {
            runtime,
            client,
            book: LeaseClocks::default(),
            _server: (api, apart),
        };
        for _ in 0..5 {
            assert_eq!(probing.leases(), count);
        }
        probing
    }

    /// Lists the leases and takes them in; how many there are.
    pub fn leases(&mut self) -> usize {
        self.runtime.block_on(async {
            let budget = Budget::starting_now(Duration::from_secs(10));
            let seen = self.client.leases(budget).await.expect("a complete answer");
            let count = seen.items.len();
            self.book.observe(&seen.times, seen.items.iter(), GRACE);
            count
        })
    }

    /// Lists the nodes; how many there are.
    pub fn nodes(&mut self) -> usize {
        self.runtime.block_on(async {
            let budget = Budget::starting_now(Duration::from_secs(10));
            self.client
                .nodes(budget)
                .await
                .expect("a complete answer")
                .items
                .len()
        })
    }

    /// What one of these allocates: the median of several, since timers and buffers add a few now and
    /// then.
    pub fn allocations(&mut self, work: fn(&mut Self) -> usize) -> AllocationInfo {
        let mut runs: Vec<AllocationInfo> = (0..15)
            .map(|_| measure(|| assert!(work(self) > 0)))
            .collect();
        runs.sort_by_key(|run| run.count_total);
        runs[runs.len() / 2]
    }
}
