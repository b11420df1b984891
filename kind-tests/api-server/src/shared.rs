//! What all connections of a server stand on.

use std::time::Duration;

use parking_lot::Mutex;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::authority::Serving;
use crate::{
    access::Tokens, computed::ComputedLists, counter::Counter, faults::Faults, requests::Requests,
    resource::Resource, store::Store,
};

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
            bookmark_interval: Duration::from_secs(60),
            serving: Serving::default(),
            admin_token: "admin".to_owned(),
        }
    }
}

/// How many connections there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Accepted so far.
    pub accepted: u64,
    /// With a finished TLS handshake so far.
    pub handshakes: u64,
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

pub(crate) struct ServerState {
    pub store: Store,
    pub tokens: Tokens,
    pub computed: ComputedLists,
    pub faults: Faults,
    pub requests: Requests,
    pub options: Options,
    pub tls: TlsAcceptor,
    pub network: Mutex<Network>,
    /// Counts its changes.
    pub network_changes: Counter,
    pub connections: Mutex<ConnectionCounts>,
    /// Cancelled to end everything.
    pub stop: CancellationToken,
    /// Cancelled to cut the connections that are open now, then replaced.
    pub cut: Mutex<CancellationToken>,
}

impl ServerState {
    pub fn new(options: Options, tls: TlsAcceptor) -> Self {
        let stop = CancellationToken::new();
        let resources = [Resource::built_in(), options.resources.clone()].concat();
        Self {
            store: Store::new(resources, options.history),
            tokens: Tokens::default(),
            computed: ComputedLists::default(),
            faults: Faults::default(),
            requests: Requests::new(options.requests_kept),
            options,
            tls,
            network: Mutex::new(Network::Up),
            network_changes: Counter::default(),
            connections: Mutex::default(),
            cut: Mutex::new(stop.child_token()),
            stop,
        }
    }

    pub async fn until_not_silent(&self) {
        loop {
            let seen = self.network_changes.get();
            if *self.network.lock() != Network::Silent {
                return;
            }
            self.network_changes.changed(seen).await;
        }
    }
}
