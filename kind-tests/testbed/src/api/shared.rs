//! What all connections of a server stand on.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{
    access::Access, computed::Computed, faults::Faults, requests::Requests, resource::Resource,
    store::Store,
};
use crate::authority::Serving;

/// What a server is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Resources beside [`Resource::built_in`].
    pub resources: Vec<Resource>,
    /// How many changes watches can go back. A change keeps two versions of an object alive: small
    /// for many servers in one process.
    pub history: usize,
    /// How many requests the log keeps in full.
    pub requests_kept: usize,
    /// Whether the server refuses protobuf.
    pub json_only: bool,
    /// Bytes of a chunk, where answers come in chunks, as a kube-apiserver sends lists; none:
    /// whole, under their length.
    pub chunk: Option<usize>,
    /// How often a quiet watch gets a bookmark; about a minute on a real server.
    pub bookmark_interval: Duration,
    /// What the serving certificate says.
    pub serving: Serving,
    /// The token of a user who may do everything.
    pub admin_token: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            history: 1024,
            requests_kept: 10_000,
            json_only: false,
            chunk: None,
            bookmark_interval: Duration::from_secs(60),
            serving: Serving::default(),
            admin_token: "admin".to_owned(),
        }
    }
}

/// How many connections there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Accepted so far.
    pub accepted: u64,
    /// With a finished TLS handshake so far.
    pub handshakes: u64,
    /// Open now.
    pub open: u64,
}

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

pub(crate) struct Shared {
    pub store: Store,
    pub access: Access,
    pub computed: Computed,
    pub faults: Faults,
    pub requests: Requests,
    pub options: Options,
    pub network: watch::Sender<Network>,
    pub connections: Mutex<Connections>,
    /// Cancelled to cut the connections that are open now, then replaced.
    pub cut: Mutex<CancellationToken>,
}

impl Shared {
    pub fn count<T>(&self, change: impl FnOnce(&mut Connections) -> T) -> T {
        change(&mut self.connections.lock())
    }

    pub async fn until_not_silent(&self) {
        // The sender is part of `self`, so waiting cannot fail.
        self.network
            .subscribe()
            .wait_for(|network| *network != Network::Silent)
            .await
            .ok();
    }
}
