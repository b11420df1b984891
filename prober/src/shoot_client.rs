//! The client of shoots: what one shoot's API server says of its leases and nodes, at the cost of one request while all is well.
//!
//! ```text
//! [GET /version,] GET leases [, GET nodes, page by page]      over one kept connection, HTTP/1.1, protobuf
//! ```
//!
//! `GET /version` is asked on the first probe, after a failed one and when the connection was replaced as planned; otherwise the list of
//! leases proves as well that the API server can be reached.

pub mod error;
pub mod kubeconfig;
mod link;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use self::error::{Cause, ProbeError, Stage};
use self::kubeconfig::{Access, KubeconfigError};
use self::link::{Answer, Link};
use self::wire::{DecodeError, Next};
use crate::clock::Clock;
use crate::core::lease::LeaseList;
use crate::core::moment::{Moment, RequestTimes};
use crate::core::verdict::NodeRecord;

/// A connection is replaced after this time, so that load balancers and rolled API servers get their share (D-17).
const LINK_LIFE: Duration = Duration::from_secs(600);
/// Bounds of an attempt on a kept connection and of connecting (dwd#61); both at most a quarter of probeTimeout.
const KEPT_ATTEMPT: Duration = Duration::from_secs(2);
const CONNECT: Duration = Duration::from_secs(3);
/// Nodes per page, the size that kubectl uses.
const NODES_PER_PAGE: &str = "500";
/// More pages than this are no honest list: Kubernetes supports 5,000 nodes.
const MAX_PAGES: usize = 100;
/// No honest answer is larger: 500 nodes (one page) come to 5 MB, 5,000 leases to 1.5 MB.
const MAX_ANSWER: usize = 32 << 20;
/// The pages of a list together. Leases come in one page unless the API server wants it otherwise; of the nodes, which come to 10 kB each,
/// a list of 5,000 that are five times as large.
const MAX_LEASES: usize = MAX_ANSWER;
const MAX_NODES: usize = 256 << 20;

/// What is kept of the Secret with a kubeconfig. Has no `Debug`: it holds credentials.
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
        Self { deadline: Instant::now() + probe_timeout, probe_timeout }
    }

    fn connect(self) -> Duration {
        CONNECT.min(self.probe_timeout / 4)
    }

    fn attempt_on_kept_connection(self) -> Instant {
        self.deadline.min(Instant::now() + KEPT_ATTEMPT.min(self.probe_timeout / 4))
    }
}

#[derive(Debug)]
pub struct Listing<T> {
    pub times: RequestTimes,
    pub items: T,
}

/// What is listed, and how.
struct List<T> {
    path: &'static str,
    query: &'static [(&'static str, &'static str)],
    /// Adds what a page holds; see [`wire`].
    decode: fn(&str, &[u8], &mut T) -> Result<Next, DecodeError>,
    /// The most bytes of all pages together.
    limit: usize,
}

const LEASES: List<LeaseList> = List {
    path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    query: &[],
    decode: wire::leases,
    limit: MAX_LEASES,
};
const NODES: List<Vec<NodeRecord>> =
    List { path: "/api/v1/nodes", query: &[("limit", NODES_PER_PAGE)], decode: wire::nodes, limit: MAX_NODES };

pub struct ShootClient<S> {
    clock: Clock,
    secrets: S,
    /// What `link` was made from.
    secret: Option<Arc<KubeconfigSecret>>,
    link: Option<Link>,
    /// Whether the API server must show first that it can be reached.
    ask_version: bool,
}

impl<S: Secrets + Sync> ShootClient<S> {
    pub fn new(clock: Clock, secrets: S) -> Self {
        Self { clock, secrets, secret: None, link: None, ask_version: true }
    }

    /// Begins a probe: lists the leases of all nodes, asking for the version first where that is due.
    pub async fn leases(&mut self, budget: Budget) -> Result<Listing<LeaseList>, ProbeError> {
        self.follow_secret().map_err(|cause| self.failed(Stage::Kubeconfig, cause))?;
        self.retire_link();
        if self.ask_version {
            let answer = self.get("/version", &[], MAX_ANSWER, budget).await;
            answer.map_err(|cause| self.failed(Stage::Version, cause))?;
            self.ask_version = false;
        }
        let leases = self.list(&LEASES, budget).await;
        leases.map_err(|cause| self.failed(Stage::Leases, cause))
    }

    pub async fn nodes(&mut self, budget: Budget) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        let nodes = self.list(&NODES, budget).await;
        nodes.map_err(|cause| self.failed(Stage::Nodes, cause))
    }

    /// Applies a changed Secret; the whole probe then uses one snapshot of it.
    fn follow_secret(&mut self) -> Result<(), Cause> {
        let current = self.secrets.current()?;
        if self.secret.as_ref().is_none_or(|used| used.kubeconfig != current.kubeconfig) {
            self.adopt(current);
        }
        Ok(())
    }

    fn adopt(&mut self, secret: Arc<KubeconfigSecret>) {
        (self.secret, self.link, self.ask_version) = (Some(secret), None, true);
    }

    fn retire_link(&mut self) {
        if self.link.as_ref().is_some_and(|link| link.born.elapsed() >= LINK_LIFE) {
            (self.link, self.ask_version) = (None, true);
        }
    }

    fn failed(&mut self, stage: Stage, cause: Cause) -> ProbeError {
        self.ask_version = true;
        if cause.may_be_stale_connection() {
            self.link = None;
        }
        ProbeError { stage, cause }
    }

    /// Lists all pages of one snapshot; begins again once when the snapshot is gone in between.
    async fn list<T: Default>(&mut self, list: &List<T>, budget: Budget) -> Result<Listing<T>, Cause> {
        match self.pages(list, budget).await {
            Err(Cause::Gone) => self.pages(list, budget).await,
            result => result,
        }
    }

    async fn pages<T: Default>(&mut self, list: &List<T>, budget: Budget) -> Result<Listing<T>, Cause> {
        let List { path, query, decode, limit } = *list;
        let mut items = T::default();
        let (sent, answer) = self.get(path, query, limit.min(MAX_ANSWER), budget).await?;
        let mut left = limit - answer.body.len();
        let mut next = decode(answer.content_type(), &answer.body, &mut items)?;
        for _ in 1..MAX_PAGES {
            let Some(token) = next else {
                return Ok(Listing { times: self.clock.request_times(sent), items });
            };
            let query = [query, &[("continue", token.as_str())]].concat();
            let (_, answer) = self.get(path, &query, left.min(MAX_ANSWER), budget).await?;
            left -= answer.body.len();
            next = decode(answer.content_type(), &answer.body, &mut items)?;
        }
        Err(Cause::TooManyPages(MAX_PAGES))
    }

    /// One request: repeated once on a fresh connection when a kept one fails, and once with the Secret read again when the credentials are
    /// not accepted.
    async fn get(&mut self, path: &str, query: &[(&str, &str)], limit: usize, budget: Budget) -> Result<(Moment, Answer), Cause> {
        let (mut redialled, mut reread) = (false, false);
        loop {
            let kept = self.link.as_ref().is_some_and(|link| link.proven);
            match self.attempt(path, query, limit, budget).await {
                Err(cause) if kept && !redialled && cause.may_be_stale_connection() => {
                    (redialled, self.link) = (true, None);
                }
                Err(Cause::Unauthorized) if !reread => {
                    reread = true;
                    let secret = timeout_at(budget.deadline, self.secrets.reread()).await.map_err(|_| Cause::Timeout)??;
                    if self.secret.as_ref().is_some_and(|used| used.kubeconfig == secret.kubeconfig) {
                        return Err(Cause::Unauthorized);
                    }
                    self.adopt(secret);
                }
                result => return result,
            }
        }
    }

    async fn attempt(
        &mut self,
        path: &str,
        query: &[(&str, &str)],
        limit: usize,
        budget: Budget,
    ) -> Result<(Moment, Answer), Cause> {
        let link = match &mut self.link {
            Some(link) => link,
            none => {
                let secret = self.secret.as_ref().ok_or(Cause::NoSecret)?;
                let text = secret.kubeconfig.as_deref().ok_or(KubeconfigError::Missing)?;
                none.insert(Link::new(&Access::from_kubeconfig(text)?, budget.connect())?)
            }
        };
        let deadline = if link.proven { budget.attempt_on_kept_connection() } else { budget.deadline };
        let sent = self.clock.now();
        let answer = timeout_at(deadline, link.get(path, query, limit)).await.map_err(|_| Cause::Timeout)??;
        link.proven = true;
        Ok((sent, answer))
    }
}
