//! An API server that gives the same answers again and again, in a thread of its own, so that nothing it does is counted as its client's.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use std::sync::Arc;

use bytes::Bytes;
use prober::shoot_client::error::Cause;
use prober::shoot_client::{KubeconfigSecret, Secrets};
use testbed::api::{MemoryApi, Options};
use testbed::authority::Authority;
use tokio::runtime::{Builder, Runtime};

/// Go's HTTP server sends what is written to it in chunks of its buffer's size.
const CHUNK: usize = 2048;

/// A running server; ends when dropped.
pub struct Canned {
    api: MemoryApi,
    _runtime: Runtime,
}

impl Canned {
    /// Answers with these leases, and with nodes that belong to them.
    pub fn start(leases: Vec<Bytes>, nodes: Vec<Bytes>) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let options = Options { chunk: Some(CHUNK), requests_kept: 1, ..Options::default() };
        let authority = Authority::new().expect("an authority");
        let api = runtime.block_on(MemoryApi::start(&authority, options)).expect("a server");
        api.computed().set("leases.coordination.k8s.io", move || leases.clone());
        api.computed().set("nodes", move || nodes.clone());
        Self { api, _runtime: runtime }
    }

    /// The Secret that leads there.
    pub fn secret(&self) -> Known {
        let kubeconfig = self.api.kubeconfig(&Options::default().admin_token);
        Known(Arc::new(KubeconfigSecret { kubeconfig: Some(kubeconfig.into_bytes()) }))
    }
}

/// A Secret that does not change.
pub struct Known(Arc<KubeconfigSecret>);

impl Secrets for Known {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        Ok(Arc::clone(&self.0))
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        self.current()
    }
}
