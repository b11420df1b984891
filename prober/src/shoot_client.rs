//! The client of shoots: what one shoot's API server says of its leases and nodes, at the cost of
//! one request while all is well.
//!
//! ```text
//! [GET /version,] GET leases [, GET nodes, page by page]      over one kept connection, HTTP/1.1, protobuf
//! ```
//!
//! `GET /version` is asked on the first probe, after a failed one and when the connection was
//! replaced as planned; otherwise the list of leases proves as well that the API server can be
//! reached.

pub mod error;
pub mod kubeconfig;
mod link;
pub mod resources;
pub mod wire;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use prober_core::lease::LeaseList;
use prober_core::moment::{Moment, RequestTimes};
use prober_core::verdict::NodeRecord;
use tokio::time::{Instant, timeout, timeout_at};
use url::form_urlencoded;

use self::error::{Cause, ProbeError, Stage};
use self::kubeconfig::{Access, KubeconfigError};
use self::link::{Answer, Link};
use self::resources::Resources;
use self::wire::{DecodeError, Next};
use crate::clock::Clock;

/// A connection is replaced after this time, so that load balancers and rolled API servers get
/// their share (D-17).
const LINK_LIFE: Duration = Duration::from_secs(600);
/// A kept connection may have died without a sign (dwd#61): what it has not answered by then is
/// asked on another one as well (D-58), so that half a second is left of the second by which a
/// probe precedes the moment it is needed at. Healthy API servers answer in milliseconds.
const HEDGE: Duration = Duration::from_millis(500);
/// The longest that connecting may take. As the hedge at most a quarter of probeTimeout.
const CONNECT: Duration = Duration::from_secs(3);
/// More pages than this are no honest list: Kubernetes supports 5,000 nodes.
const MAX_PAGES: usize = 100;
/// No honest answer is larger: 200 nodes (one page) come to 2 MB, 5,000 leases to 1.5 MB, in JSON
/// to 4 MB.
const MAX_ANSWER: usize = 8 << 20;
/// The same of /version, which has some 400 bytes.
const MAX_VERSION: usize = 64 << 10;
/// The pages of a list of nodes together: 5,000 come to 10 kB each, and may be five times as large.
const MAX_NODES: usize = 256 << 20;

/// What is kept of the Secret with a kubeconfig. Has no `Debug`: it holds credentials.
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

    fn connect(self) -> Duration {
        CONNECT.min(self.probe_timeout / 4)
    }

    fn hedge(self) -> Duration {
        HEDGE.min(self.probe_timeout / 4)
    }
}

#[derive(Debug)]
pub struct Listing<T> {
    pub times: RequestTimes,
    pub items: T,
}

/// What is listed, and how.
struct List<T> {
    stage: Stage,
    /// With the query.
    path: &'static str,
    /// Adds what a page holds; see [`wire`].
    decode: fn(&str, &[u8], &mut T) -> Result<Next, DecodeError>,
    /// The most bytes of all pages together.
    limit: usize,
}

/// They come in one page unless the API server wants it otherwise.
const LEASES: List<LeaseList> = List {
    stage: Stage::Leases,
    path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    decode: wire::leases,
    limit: MAX_ANSWER,
};
/// In pages that need no share of what all shoots have together ([`resources`]): kubectl's 500
/// nodes come to 5 MB.
const NODES: List<Vec<NodeRecord>> = List {
    stage: Stage::Nodes,
    path: "/api/v1/nodes?limit=200",
    decode: wire::nodes,
    limit: MAX_NODES,
};

pub struct ShootClient<S> {
    clock: Clock,
    resources: Arc<Resources>,
    secrets: S,
    /// What `link` was made from.
    secret: Option<Arc<KubeconfigSecret>>,
    link: Option<Link>,
    /// Whether the API server must show first that it can be reached.
    ask_version: bool,
}

impl<S: Secrets + Sync> ShootClient<S> {
    pub fn new(clock: Clock, resources: Arc<Resources>, secrets: S) -> Self {
        Self {
            clock,
            resources,
            secrets,
            secret: None,
            link: None,
            ask_version: true,
        }
    }

    /// One with the same Secret and a connection of its own, for what is asked beside.
    pub fn beside(&self) -> Self
    where
        S: Clone,
    {
        let Self {
            clock,
            resources,
            secrets,
            secret,
            ..
        } = self;
        Self {
            secret: secret.clone(),
            ..Self::new(*clock, Arc::clone(resources), secrets.clone())
        }
    }

    /// Begins a probe: lists the leases of all nodes, asking for the version first where that is
    /// due.
    pub async fn leases(&mut self, budget: Budget) -> Result<Listing<LeaseList>, ProbeError> {
        self.renew_link()
            .map_err(|cause| self.failed(Stage::Kubeconfig, cause))?;
        if self.ask_version {
            let answer = self.get("/version", MAX_VERSION, budget).await;
            answer.map_err(|cause| self.failed(Stage::Version, cause))?;
            self.ask_version = false;
        }
        self.list(&LEASES, budget).await
    }

    pub async fn nodes(&mut self, budget: Budget) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        self.list(&NODES, budget).await
    }

    /// Applies a changed Secret, of which the whole probe then uses one snapshot; retires a link
    /// whose time is over.
    fn renew_link(&mut self) -> Result<(), Cause> {
        let current = self.secrets.current()?;
        let is_old = self
            .link
            .as_ref()
            .is_some_and(|link| link.born.elapsed() >= LINK_LIFE);
        if is_old || self.secret.as_ref() != Some(&current) {
            self.adopt(current);
        }
        Ok(())
    }

    fn adopt(&mut self, secret: Arc<KubeconfigSecret>) {
        (self.secret, self.link, self.ask_version) = (Some(secret), None, true);
    }

    fn failed(&mut self, stage: Stage, cause: Cause) -> ProbeError {
        self.ask_version = true;
        if cause.may_be_stale_connection() {
            self.link = None;
        }
        ProbeError { stage, cause }
    }

    /// Lists all pages of one snapshot; begins again once when the snapshot is gone in between.
    async fn list<T: Default>(
        &mut self,
        list: &List<T>,
        budget: Budget,
    ) -> Result<Listing<T>, ProbeError> {
        let listed = match self.pages(list, budget).await {
            Err(Cause::Gone) => self.pages(list, budget).await,
            listed => listed,
        };
        listed.map_err(|cause| self.failed(list.stage, cause))
    }

    async fn pages<T: Default>(
        &mut self,
        list: &List<T>,
        budget: Budget,
    ) -> Result<Listing<T>, Cause> {
        let List {
            path,
            decode,
            limit: mut left,
            ..
        } = *list;
        let (mut page, mut first_sent, mut items) = (Cow::Borrowed(path), None, T::default());
        for _ in 0..MAX_PAGES {
            let (sent, answer) = self.get(&page, left.min(MAX_ANSWER), budget).await?;
            let sent = *first_sent.get_or_insert(sent);
            left -= answer.body.len();
            let content_type = answer
                .content_type
                .as_ref()
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            let Some(token) = decode(content_type, &answer.body, &mut items)? else {
                return Ok(Listing {
                    times: self.clock.request_times(sent),
                    items,
                });
            };
            let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
            let separator = if path.contains('?') { '&' } else { '?' };
            page = Cow::Owned(format!("{path}{separator}continue={token}"));
        }
        Err(Cause::TooManyPages(MAX_PAGES))
    }

    /// One request, and another one with the Secret read again when the credentials are not
    /// accepted.
    async fn get(
        &mut self,
        path: &str,
        limit: usize,
        budget: Budget,
    ) -> Result<(Moment, Answer), Cause> {
        match self.request(path, limit, budget).await {
            Err(Cause::Unauthorized) => {
                let secret = timeout_at(budget.deadline, self.secrets.reread())
                    .await
                    .map_err(|_| Cause::Timeout)??;
                if self.secret.as_ref() == Some(&secret) {
                    return Err(Cause::Unauthorized);
                }
                self.adopt(secret);
                self.request(path, limit, budget).await
            }
            result => result,
        }
    }

    /// One request; on a kept connection up to two. The link that has answered is kept.
    async fn request(
        &mut self,
        path: &str,
        limit: usize,
        budget: Budget,
    ) -> Result<(Moment, Answer), Cause> {
        let link = self.link.take().map_or_else(|| self.new_link(budget), Ok)?;
        let hedged = async {
            let kept = link.answered;
            let mut first = pin!(attempt(self.clock, link, path, limit));
            if !kept {
                return Ok(first.await);
            }
            // Boxed, since it hardly ever happens: the probes of all shoots would have room for it.
            let second = |link| attempt(self.clock, link, path, limit).boxed();
            match timeout(budget.hedge(), &mut first).await {
                Ok((_, Err(cause))) if cause.may_be_stale_connection() => {
                    return Ok(second(self.new_link(budget)?).await);
                }
                Ok(done) => return Ok(done),
                Err(_) => {}
            }
            Ok::<_, Cause>(match select(first, second(self.new_link(budget)?)).await {
                Either::Left(((_, Err(cause)), second)) if cause.may_be_stale_connection() => {
                    second.await
                }
                Either::Right((failed @ (_, Err(_)), first)) => {
                    // Nobody knows any more whether the kept connection lives. It is not waited for
                    // until the probe's end, since the next probe begins with a new one.
                    timeout(budget.connect(), first)
                        .await
                        .ok()
                        .filter(|(_, answer)| answer.is_ok())
                        .unwrap_or(failed)
                }
                Either::Left((done, _)) | Either::Right((done, _)) => done,
            })
        };
        let (link, answer) = timeout_at(budget.deadline, hedged)
            .await
            .map_err(|_| Cause::Timeout)??;
        self.link = Some(link);
        answer
    }

    fn new_link(&self, budget: Budget) -> Result<Link, Cause> {
        let secret = self.secret.as_ref().ok_or(Cause::NoSecret)?;
        let text = secret
            .kubeconfig
            .as_deref()
            .ok_or(KubeconfigError::Missing)?;
        Ok(Link::new(
            &Access::from_kubeconfig(text)?,
            budget.connect(),
            &self.resources,
        )?)
    }
}

/// A request on a link, which comes back with the answer and when it was asked for.
async fn attempt(
    clock: Clock,
    mut link: Link,
    path: &str,
    limit: usize,
) -> (Link, Result<(Moment, Answer), Cause>) {
    let sent = clock.now();
    let answer = link.get(path, limit).await;
    (link, answer.map(|answer| (sent, answer)))
}
