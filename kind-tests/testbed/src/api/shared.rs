//! What all connections of a server stand on.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{access::Access, computed::Computed, faults::Faults, requests::Requests, store::Store};

/// How the way to a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Open.
    Up,
    /// Nobody listens; open connections are cut.
    Refused,
    /// Connections are taken, but handshakes and requests wait until this ends. Open watches go on.
    Silent,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub accepted: AtomicU64,
    pub handshakes: AtomicU64,
    pub open: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub store: Store,
    pub access: Access,
    pub computed: Computed,
    pub faults: Faults,
    pub requests: Requests,
    pub json_only: bool,
    pub chunk: Option<usize>,
    pub bookmark_interval: Duration,
    pub git_version: String,
    pub network: watch::Sender<Network>,
    pub counters: Counters,
    /// Cancelled to cut the connections that are open now, then replaced.
    pub cut: Mutex<CancellationToken>,
}

impl Shared {
    pub async fn until_not_silent(&self) {
        // The sender is part of `self`, so waiting cannot fail.
        self.network.subscribe().wait_for(|network| *network != Network::Silent).await.ok();
    }
}
