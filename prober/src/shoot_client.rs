//! The client of shoots: reads the leases and nodes of one shoot from its API server, at the cost
//! of one request while all is well.
//!
//! ```text
//! GET leases [, GET nodes, page by page]      over one kept connection, HTTP/1.1, protobuf
//! ```
//!
//! The list of leases also proves that the API server is reachable.

mod connection;
pub mod error;
pub mod kubeconfig;
mod probe;
pub mod resources;
pub mod wire;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use common::transport::CONNECT_TIMEOUT;
use futures::FutureExt;
use futures::future::{Either, select};
use prober_core::lease::LeaseList;
use prober_core::moment::{Moment, RequestTimes};
use prober_core::verdict::NodeRecord;
use tokio::time::{Instant, timeout, timeout_at};

use self::connection::ApiConnection;
use self::error::{Cause, ProbeError};
use self::kubeconfig::shoot_server;
use self::resources::Resources;
use self::wire::{ItemList, NodeList, Page};
use crate::clock::Clock;

/// A connection is replaced after this time, so that load balancers and rolled API servers get
/// their share (D-17).
const CONNECTION_LIFE: Duration = Duration::from_secs(600);
/// A kept connection may have died without a sign (dwd#61): a request that it has not answered by
/// then is sent on another one as well (D-58), so that half a second is left of the second by which
/// a probe precedes the moment it is needed at. Healthy API servers answer in milliseconds.
const HEDGE: Duration = Duration::from_millis(500);
/// No honest list has more pages: Kubernetes supports 5,000 nodes.
const MAX_PAGES: usize = 100;

/// Kept part of the Secret with a kubeconfig. Has no `Debug`: it holds credentials.
#[derive(PartialEq, Eq)]
pub struct KubeconfigSecret {
    pub kubeconfig: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    deadline: Instant,
    probe_timeout: Duration,
}

impl Budget {
    pub fn starting_now(probe_timeout: Duration) -> Self {
        Self {
            deadline: Instant::now() + probe_timeout,
            probe_timeout,
        }
    }

    /// Time for TCP and TLS, once the name is resolved: like the hedge at most a quarter of
    /// probeTimeout.
    fn connect(self) -> Duration {
        CONNECT_TIMEOUT.min(self.probe_timeout / 4)
    }

    /// Time after which a request is sent on another connection as well, if this one has answered
    /// in an earlier probe.
    fn hedge(self) -> Duration {
        HEDGE.min(self.probe_timeout / 4)
    }
}

#[derive(Debug)]
pub struct Listing<T> {
    pub times: RequestTimes,
    pub items: T,
}

/// A connection and the answer to a request on it: the time of the request and the page.
type ConnectionAttempt<L> = (Box<ApiConnection>, Result<(Moment, Page<L>), Cause>);

pub struct ShootClient {
    clock: Clock,
    resources: Arc<Resources>,
    /// Source of `connection`.
    secret: Option<Arc<KubeconfigSecret>>,
    /// In a box, as readers are: each future on the way would have room for it.
    connection: Option<Box<ApiConnection>>,
}

impl ShootClient {
    pub fn new(clock: Clock, resources: Arc<Resources>) -> Self {
        Self {
            clock,
            resources,
            secret: None,
            connection: None,
        }
    }

    /// A client with a connection of its own, for requests at the same time.
    fn beside(&self, secret: &Arc<KubeconfigSecret>) -> Self {
        Self {
            secret: Some(Arc::clone(secret)),
            ..Self::new(self.clock, Arc::clone(&self.resources))
        }
    }

    /// Lists the leases of all nodes. The Secret holds for the whole probe.
    pub async fn leases(
        &mut self,
        secret: &Arc<KubeconfigSecret>,
        budget: Budget,
    ) -> Result<Listing<LeaseList>, ProbeError> {
        if self.secret.as_ref() != Some(secret) {
            (self.secret, self.connection) = (Some(Arc::clone(secret)), None);
        }
        self.connection
            .take_if(|connection| connection.created.elapsed() >= CONNECTION_LIFE);
        if let Some(connection) = &mut self.connection {
            connection.hedge = Some(budget.hedge());
        }
        self.list(budget).await
    }

    pub async fn nodes(&mut self, budget: Budget) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        let Listing { times, items } = self.list::<NodeList>(budget).await?;
        Ok(Listing {
            times,
            items: items.nodes,
        })
    }

    /// Lists all pages of one snapshot; begins again once when the snapshot is gone in between.
    async fn list<L: ItemList>(&mut self, budget: Budget) -> Result<Listing<L>, ProbeError> {
        let listed = match self.pages(budget).await {
            Err(Cause::Gone) => self.pages(budget).await,
            listed => listed,
        };
        let stage = L::STEP;
        listed.map_err(|cause| ProbeError { stage, cause })
    }

    async fn pages<L: ItemList>(&mut self, budget: Budget) -> Result<Listing<L>, Cause> {
        let mut path = Cow::Borrowed(L::PATH);
        let mut first_sent = None;
        let mut items = L::default();
        for _ in 0..MAX_PAGES {
            let (sent, page) = self.request(&path, &items, budget).await?;
            let first_sent = *first_sent.get_or_insert(sent);
            let next;
            Page { items, next } = page;
            let Some(token) = next else {
                let times = self.clock.request_times(first_sent);
                return Ok(Listing { times, items });
            };
            let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
            let separator = if L::PATH.contains('?') { '&' } else { '?' };
            path = format!("{}{separator}continue={token}", L::PATH).into();
        }
        Err(Cause::TooLarge)
    }

    /// One request, for the page behind these items; on a kept connection up to two. The connection
    /// that has answered is kept.
    async fn request<L: ItemList>(
        &mut self,
        path: &str,
        items: &L,
        budget: Budget,
    ) -> Result<(Moment, Page<L>), Cause> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect(budget)?,
        };
        let hedged = self.hedged(connection, path, items, budget);
        let hedged = timeout_at(budget.deadline, hedged);
        let done = hedged.await.map_err(|_| Cause::Timeout)??;
        let is_stale = may_be_stale(&done);
        let (connection, answer) = done;
        self.connection = (!is_stale).then_some(connection);
        answer
    }

    /// Sends a request that a kept connection does not answer soon on a new one as well, and takes
    /// the first complete answer (D-58).
    async fn hedged<L: ItemList>(
        &self,
        connection: Box<ApiConnection>,
        path: &str,
        items: &L,
        budget: Budget,
    ) -> Result<ConnectionAttempt<L>, Cause> {
        let hedge = connection.hedge;
        let mut first = pin!(attempt(connection, path, items));
        let Some(hedge) = hedge else {
            return Ok(first.await);
        };
        let first_failed = match timeout(hedge, &mut first).await {
            Ok(done) if !may_be_stale(&done) => return Ok(done),
            early => early.is_ok(),
        };
        // Boxed, since it hardly ever happens: the probes of all shoots would have room for it.
        let second = attempt(self.connect(budget)?, path, items).boxed();
        if first_failed {
            return Ok(second.await);
        }
        Ok(match select(first, second).await {
            Either::Left((done, second)) if may_be_stale(&done) => second.await,
            Either::Right((failed @ (_, Err(_)), first)) => {
                // Whether the kept connection still lives is unknown. It is not waited for until
                // the probe's end, since the next probe begins with a new one.
                timeout(budget.connect(), first)
                    .await
                    .ok()
                    .filter(|(_, answer)| answer.is_ok())
                    .unwrap_or(failed)
            }
            Either::Left((done, _)) | Either::Right((done, _)) => done,
        })
    }

    fn connect(&self, budget: Budget) -> Result<Box<ApiConnection>, Cause> {
        let secret = self.secret.as_ref().ok_or(Cause::NoSecret)?;
        let server = shoot_server(secret.kubeconfig.as_deref().unwrap_or_default())?;
        let dialer = &self.resources.dialer;
        let connection = ApiConnection::new(&server.route()?, budget.connect(), self.clock, dialer);
        Ok(Box::new(connection))
    }
}

async fn attempt<L: ItemList>(
    mut connection: Box<ApiConnection>,
    path: &str,
    items: &L,
) -> ConnectionAttempt<L> {
    let answer = connection.get(path, items.clone()).await;
    (connection, answer)
}

fn may_be_stale<L>((_, answer): &ConnectionAttempt<L>) -> bool {
    answer.as_ref().is_err_and(Cause::may_be_stale_connection)
}
