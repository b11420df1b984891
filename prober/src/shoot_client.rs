//! The client of shoots: reads the leases and nodes of one shoot from its API server, at the cost
//! of one request while all is well.
//!
//! ```text
//! [GET /version,] GET leases [, GET nodes, page by page]      over one kept connection, HTTP/1.1, protobuf
//! ```
//!
//! `GET /version` is sent on the first probe, after a failed one and when the connection was
//! replaced as planned; otherwise the list of leases also proves that the API server is reachable.

mod connection;
pub mod error;
pub mod kubeconfig;
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
use prober_core::moment::RequestTimes;
use prober_core::verdict::NodeRecord;
use tokio::time::{Instant, timeout, timeout_at};

use self::connection::{ApiConnection, ApiResponse, LastAnswer};
use self::error::{Cause, ProbeError, ProbeStep};
use self::kubeconfig::{KubeconfigError, shoot_access};
use self::resources::Resources;
use self::wire::{DecodeError, ItemList, ListReader, NodeList, Page, ReadBody};
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
/// No honest answer is larger: 200 nodes (one page) come to 2 to 3.5 MB, 5,000 leases to 2.5 MB.
const MAX_ANSWER: usize = 8 << 20;
/// The limit for /version, which has some 400 bytes.
const MAX_VERSION: usize = 64 << 10;
/// The pages of a list of nodes together: 5,000 come to 10 kB each, and may be five times as large.
const MAX_NODES: usize = 256 << 20;

/// Kept part of the Secret with a kubeconfig. Has no `Debug`: it holds credentials.
#[derive(PartialEq, Eq)]
pub struct KubeconfigSecret {
    pub kubeconfig: Option<Vec<u8>>,
}

pub trait Secrets {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause>;

    fn reread(&self) -> impl Future<Output = Result<Arc<KubeconfigSecret>, Cause>> + Send;
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

    /// Like the hedge at most a quarter of probeTimeout.
    fn connect(self) -> Duration {
        CONNECT_TIMEOUT.min(self.probe_timeout / 4)
    }

    /// Time after which a request is sent on another connection as well; `None` if this one is new.
    fn hedge(self, connection: &ApiConnection) -> Option<Duration> {
        match connection.answered {
            LastAnswer::Never => None,
            LastAnswer::InEarlierProbe => Some(HEDGE.min(self.probe_timeout / 4)),
            // A page of nodes may take longer than HEDGE, as long as no connection may.
            LastAnswer::InThisProbe => Some(self.connect()),
        }
    }
}

#[derive(Debug)]
pub struct Listing<T> {
    pub times: RequestTimes,
    pub items: T,
}

/// A list, and how it is requested.
struct ListRequest {
    stage: ProbeStep,
    /// With the query.
    path: &'static str,
    /// The most bytes of all pages together.
    limit: usize,
}

/// In one page unless the API server wants it otherwise.
const LEASES: ListRequest = ListRequest {
    stage: ProbeStep::Leases,
    path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    limit: MAX_ANSWER,
};
/// In pages that stay within [`MAX_ANSWER`] if a node has 40 kB: kubectl's 500 nodes would not.
const NODES: ListRequest = ListRequest {
    stage: ProbeStep::Nodes,
    path: "/api/v1/nodes?limit=200",
    limit: MAX_NODES,
};

#[derive(Clone, Copy)]
struct GetRequest<'a> {
    /// With the query.
    path: &'a str,
    /// The most bytes of the answer.
    limit: usize,
    budget: Budget,
}

/// A connection and the answer to a request on it.
type ConnectionAttempt<T> = (Box<ApiConnection>, Result<ApiResponse<T>, Cause>);

pub struct ShootClient<S> {
    clock: Clock,
    resources: Arc<Resources>,
    secrets: S,
    /// Source of `connection`.
    secret: Option<Arc<KubeconfigSecret>>,
    /// In a box, as readers are: each future on the way would have room for it.
    connection: Option<Box<ApiConnection>>,
    /// True if the API server must first prove that it is reachable.
    needs_version: bool,
}

/// Reads over an answer of which only the status matters.
impl ReadBody for () {
    type Read = ();

    fn feed(&mut self, _piece: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    fn finish(self) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl<S: Secrets + Sync> ShootClient<S> {
    pub fn new(clock: Clock, resources: Arc<Resources>, secrets: S) -> Self {
        Self {
            clock,
            resources,
            secrets,
            secret: None,
            connection: None,
            needs_version: true,
        }
    }

    /// A client with the same Secret and a connection of its own, for requests at the same time.
    pub fn beside(&self) -> Self
    where
        S: Clone,
    {
        Self {
            secret: self.secret.clone(),
            ..Self::new(
                self.clock,
                Arc::clone(&self.resources),
                self.secrets.clone(),
            )
        }
    }

    /// Begins a probe: lists the leases of all nodes, after `/version` where that is due.
    pub async fn leases(&mut self, budget: Budget) -> Result<Listing<LeaseList>, ProbeError> {
        self.renew_connection()
            .map_err(|cause| self.failed(ProbeStep::Kubeconfig, cause))?;
        if self.needs_version {
            let request = GetRequest {
                path: "/version",
                limit: MAX_VERSION,
                budget,
            };
            let answer = self.get(request, &|| ()).await;
            answer.map_err(|cause| self.failed(ProbeStep::Version, cause))?;
            self.needs_version = false;
        }
        self.list(&LEASES, budget).await
    }

    pub async fn nodes(&mut self, budget: Budget) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        let Listing { times, items } = self.list::<NodeList>(&NODES, budget).await?;
        Ok(Listing {
            times,
            items: items.nodes,
        })
    }

    /// Applies a changed Secret, which then holds for the whole probe; retires a connection that
    /// has reached its age, and doubts what was answered in earlier probes.
    fn renew_connection(&mut self) -> Result<(), Cause> {
        let current = self.secrets.current()?;
        let is_old = self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.created.elapsed() >= CONNECTION_LIFE);
        if is_old || self.secret.as_ref() != Some(&current) {
            self.adopt(current);
        }
        if let Some(connection) = &mut self.connection {
            connection.answered = LastAnswer::InEarlierProbe;
        }
        Ok(())
    }

    fn adopt(&mut self, secret: Arc<KubeconfigSecret>) {
        self.secret = Some(secret);
        self.connection = None;
        self.needs_version = true;
    }

    fn failed(&mut self, stage: ProbeStep, cause: Cause) -> ProbeError {
        self.needs_version = true;
        if cause.may_be_stale_connection() {
            self.connection = None;
        }
        ProbeError { stage, cause }
    }

    /// Lists all pages of one snapshot; begins again once when the snapshot is gone in between.
    async fn list<L: ItemList>(
        &mut self,
        list: &ListRequest,
        budget: Budget,
    ) -> Result<Listing<L>, ProbeError> {
        let listed = match self.pages(list, budget).await {
            Err(Cause::Gone) => self.pages(list, budget).await,
            listed => listed,
        };
        listed.map_err(|cause| self.failed(list.stage, cause))
    }

    async fn pages<L: ItemList>(
        &mut self,
        list: &ListRequest,
        budget: Budget,
    ) -> Result<Listing<L>, Cause> {
        let mut path = Cow::Borrowed(list.path);
        let mut left = list.limit;
        let mut first_sent = None;
        let mut items = L::default();
        for _ in 0..MAX_PAGES {
            let request = GetRequest {
                path: &path,
                limit: left.min(MAX_ANSWER),
                budget,
            };
            let reader = || ListReader::new(items.clone());
            let answer = self.get(request, &reader).await?;
            let sent = *first_sent.get_or_insert(answer.sent);
            left -= answer.length;
            let next;
            Page { items, next } = answer.read;
            let Some(token) = next else {
                let times = self.clock.request_times(sent);
                return Ok(Listing { times, items });
            };
            let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
            let separator = if list.path.contains('?') { '&' } else { '?' };
            path = format!("{}{separator}continue={token}", list.path).into();
        }
        Err(Cause::TooManyPages(MAX_PAGES))
    }

    /// One request, and another one with the Secret read again when the credentials are not
    /// accepted. Each attempt has a reader of its own.
    async fn get<R: ReadBody>(
        &mut self,
        request: GetRequest<'_>,
        reader: &impl Fn() -> R,
    ) -> Result<ApiResponse<R::Read>, Cause> {
        match self.request(request, reader).await {
            Err(Cause::Unauthorized) => {
                let secret = timeout_at(request.budget.deadline, self.secrets.reread())
                    .await
                    .map_err(|_| Cause::Timeout)??;
                if self.secret.as_ref() == Some(&secret) {
                    return Err(Cause::Unauthorized);
                }
                self.adopt(secret);
                self.request(request, reader).await
            }
            result => result,
        }
    }

    /// One request; on a kept connection up to two. The connection that has answered is kept.
    async fn request<R: ReadBody>(
        &mut self,
        request: GetRequest<'_>,
        reader: &impl Fn() -> R,
    ) -> Result<ApiResponse<R::Read>, Cause> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect(request.budget)?,
        };
        let hedged = self.hedged(connection, request, reader);
        let hedged = timeout_at(request.budget.deadline, hedged);
        let (connection, answer) = hedged.await.map_err(|_| Cause::Timeout)??;
        self.connection = Some(connection);
        answer
    }

    /// Sends a request that a kept connection does not answer soon on a new one as well, and takes
    /// the first complete answer (D-58).
    async fn hedged<R: ReadBody>(
        &self,
        connection: Box<ApiConnection>,
        request: GetRequest<'_>,
        reader: &impl Fn() -> R,
    ) -> Result<ConnectionAttempt<R::Read>, Cause> {
        let budget = request.budget;
        let hedge = budget.hedge(&connection);
        let mut first = pin!(attempt(connection, request, Box::new(reader())));
        let Some(hedge) = hedge else {
            return Ok(first.await);
        };
        let first_failed = match timeout(hedge, &mut first).await {
            Ok(done) if !may_be_stale(&done) => return Ok(done),
            early => early.is_ok(),
        };
        // Boxed, since it hardly ever happens: the probes of all shoots would have room for it.
        let second = attempt(self.connect(budget)?, request, Box::new(reader())).boxed();
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
        let kubeconfig = secret.kubeconfig.as_deref();
        let access = shoot_access(kubeconfig.ok_or(KubeconfigError::Missing)?)?;
        let dialer = &self.resources.dialer;
        let connection = ApiConnection::new(access, budget.connect(), self.clock, dialer)?;
        Ok(Box::new(connection))
    }
}

async fn attempt<R: ReadBody>(
    mut connection: Box<ApiConnection>,
    request: GetRequest<'_>,
    reader: Box<R>,
) -> ConnectionAttempt<R::Read> {
    let answer = connection.get(request.path, request.limit, reader).await;
    (connection, answer)
}

fn may_be_stale<T>((_, answer): &ConnectionAttempt<T>) -> bool {
    answer.as_ref().is_err_and(Cause::may_be_stale_connection)
}
