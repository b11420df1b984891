//! Leader election by a Lease, as client-go does it, so that replicas in Go and in Rust exclude
//! each other.
//!
//! ```text
//! wait --Lease free, given up, or not renewed for its duration--> lead --renew every retryPeriod--> ...
//!   ^ watches the Lease: one that is given up is taken at once      |
//!   |                                                               |--release, after the work has ended--> done
//!   '-- (a new process)          no renewal for renewDeadline, or another holder --> lost: the process ends
//! ```
//!
//! The [`Fence`] is what makes losing safe: it closes `renewDeadline` after the last renewal was
//! *sent*, and nothing is written through a closed fence. Another replica can take over only after
//! the longer lease duration.
//!
//! Requests are those that Gardener's role grants: create; get, update and watch of the one Lease
//! by its name.

mod fence;
mod record;
mod role;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use self::fence::Fence;
use self::fence::FenceKeeper;
use self::record::{Observation, held_by, holder, released};
use self::role::Holder;
pub use self::role::Role;
pub(crate) use self::role::Standing;
use crate::events::Events;
use crate::flags::LeaderElection;
use crate::logging::with_causes;

/// How long one watch of the Lease lasts, in seconds: below the 240 s after which common load
/// balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;
/// The shortest time that a request may take (rule 80).
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// How much later than two retry periods a leader may renew before it counts as gone (D-61): what a
/// slow API server takes.
const RENEWAL_TOLERANCE: Duration = Duration::from_secs(1);
/// Giving up the Lease may take so long: the process has 5 s for its whole end (rule 85), and an
/// unreleased Lease expires.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);
/// How often giving up the Lease is tried: a renewal that was under way may still change it, and an
/// answer may get lost.
const RELEASE_ATTEMPTS: usize = 3;
/// The reason of the Events, which is client-go's.
const REASON: &str = "LeaderElection";

#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("leadership lost: the Lease could not be renewed for {0:?}")]
    Expired(Duration),
    #[error("leadership lost: the Lease is held by {0:?}")]
    Taken(String),
}

/// Does `work` as a candidate for leadership: work that writes only through the fence, and ends by
/// itself when the process is to end. The Lease is then given up; other replicas take over at once.
/// The election is a task of its own: however long the work computes, the Lease is renewed.
///
/// # Errors
/// When leadership is lost; `work` is then dropped, and the process must end.
pub async fn campaign(elector: Elector, work: impl Future<Output = ()>) -> Result<(), Lost> {
    let stop = CancellationToken::new();
    let mut election = AbortOnDropHandle::new(tokio::spawn(elector.run(stop.clone())));
    let ended = tokio::select! {
        () = work => {
            stop.cancel();
            election.await
        }
        ended = &mut election => ended,
    };
    match ended {
        Ok(elector) => elector?.release().await,
        // Nobody has aborted it: it fell over something nobody had thought of, and the process with
        // it.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
    Ok(())
}

pub struct Elector {
    api: Api<Lease>,
    name: String,
    identity: String,
    settings: LeaderElection,
    fence: FenceKeeper,
    events: Events,
    observation: Observation,
    /// The Lease as last read or written; none when it may be another by now.
    lease: Option<Lease>,
    /// What Events about the Lease refer to.
    reference: ObjectReference,
    /// Whether anything was written, so that the Lease may be ours even if no answer said so.
    wrote: bool,
    holder: watch::Sender<Holder>,
}

type LeaseEvents = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// Whose the Lease is.
enum Tenure {
    Ours,
    /// Another one's, at least until then.
    Theirs(Instant),
}

#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("no answer in time")]
    Timeout,
    #[error("the watch ended")]
    WatchEnded,
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Elector {
    /// A candidate for the Lease `name`. `identity` must be unlike that of any other process.
    pub fn new(
        client: Client,
        settings: LeaderElection,
        name: &str,
        identity: String,
        fence: FenceKeeper,
        events: Events,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &settings.namespace),
            name: name.to_owned(),
            observation: Observation::new(identity.clone()),
            identity,
            reference: reference(&settings.namespace, name),
            settings,
            fence,
            events,
            lease: None,
            wrote: false,
            holder: watch::Sender::default(),
        }
    }

    /// Shows the holder of the Lease, as last seen.
    pub fn holder(&self) -> watch::Receiver<Holder> {
        self.holder.subscribe()
    }

    /// Takes part until `stop`, and is then to be followed by [`Elector::release`].
    async fn run(mut self, stop: CancellationToken) -> Result<Self, Lost> {
        let lost = async {
            self.acquire().await;
            self.hold().await
        };
        match stop.run_until_cancelled(lost).await {
            Some(lost) => Err(lost),
            None => Ok(self),
        }
    }

    /// Waits until this process leads. The fence is open then. Can be cancelled, and is then to be
    /// followed by [`Elector::release`].
    pub async fn acquire(&mut self) {
        loop {
            match self.try_acquire().await {
                Ok(Tenure::Ours) => break,
                Ok(Tenure::Theirs(until)) => self.await_change(until).await,
                Err(error) => {
                    tracing::warn!(
                        lease = self.name,
                        error = with_causes(&error),
                        "Lease cannot be read or written, trying again"
                    );
                    sleep(self.settings.retry_period).await;
                }
            }
        }
        tracing::info!(lease = self.name, identity = self.identity, "leading");
        self.report("became leader");
    }

    /// Leads until leadership is lost. Can be cancelled, and is then to be followed by
    /// [`Elector::release`].
    pub async fn hold(&mut self) -> Lost {
        let lost = loop {
            let next = Instant::now() + self.settings.retry_period;
            let until = self.fence.until().unwrap_or_else(Instant::now);
            sleep_until(next.min(until)).await;
            if until <= Instant::now() {
                break Lost::Expired(self.settings.renew_deadline);
            }
            match timeout_at(until, self.try_acquire()).await {
                Ok(Ok(Tenure::Ours)) => {}
                Ok(Ok(Tenure::Theirs(_))) => {
                    break Lost::Taken(self.observation.holder().to_owned());
                }
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.name,
                        error = with_causes(&error),
                        "Lease could not be renewed, trying again"
                    )
                }
                // The next round finds the fence closed.
                Err(_) => {}
            }
        };
        self.fence.close();
        self.report("stopped leading");
        lost
    }

    /// Gives the Lease up if it is ours, so that another replica leads at once. Only after all work
    /// has ended.
    pub async fn release(mut self) {
        if self.fence.until().is_some() {
            self.fence.close();
            self.report("stopped leading");
        }
        if !self.wrote {
            return;
        }
        match timeout(RELEASE_LIMIT, self.try_release())
            .await
            .unwrap_or(Err(AttemptError::Timeout))
        {
            Ok(true) => tracing::info!(lease = self.name, "Lease given up"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(
                    lease = self.name,
                    error = with_causes(&error),
                    "Lease could not be given up, it will expire"
                )
            }
        }
    }

    /// Whether the Lease was ours and no longer is.
    async fn try_release(&mut self) -> Result<bool, AttemptError> {
        let mut attempts = 1;
        loop {
            let lease = match self.lease.take() {
                Some(lease) => Some(lease),
                None => self.request(self.api.get_opt(&self.name)).await?,
            };
            let Some(lease) = lease else { return Ok(false) };
            let spec = lease.spec.clone().unwrap_or_default();
            if holder(&spec) != self.identity {
                return Ok(false);
            }
            match self
                .put(lease, released(spec, MicroTime(Timestamp::now())))
                .await
            {
                Ok(_) => return Ok(true),
                Err(error) if attempts == RELEASE_ATTEMPTS => return Err(error),
                Err(_) => attempts += 1,
            }
        }
    }

    async fn try_acquire(&mut self) -> Result<Tenure, AttemptError> {
        // First on the assumption that it is as last seen. After a failure self.lease stays empty:
        // it is read again.
        if let Some(lease) = self.lease.take() {
            match self.attempt(Some(lease)).await {
                Ok(standing) => return Ok(standing),
                Err(error) => tracing::debug!(
                    lease = self.name,
                    error = with_causes(&error),
                    "Lease is read again"
                ),
            }
        }
        let lease = self.request(self.api.get_opt(&self.name)).await?;
        self.attempt(lease).await
    }

    /// Writes the Lease unless another one holds it; `known` is how it is, none when it does not
    /// exist.
    async fn attempt(&mut self, known: Option<Lease>) -> Result<Tenure, AttemptError> {
        if let Some(lease) = &known {
            self.note(lease);
        }
        if let Some(until) = self.observation.held_until(Instant::now()) {
            self.lease = known;
            return Ok(Tenure::Theirs(until));
        }
        let sent = Instant::now();
        self.wrote = true;
        let spec = known
            .as_ref()
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let spec = held_by(
            spec,
            &self.identity,
            self.settings.lease_duration,
            MicroTime(Timestamp::now()),
        );
        let lease = match known {
            Some(lease) => self.put(lease, spec).await?,
            None => {
                let metadata = ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                };
                let lease = Lease {
                    metadata,
                    spec: Some(spec),
                };
                self.request(self.api.create(&PostParams::default(), &lease))
                    .await?
            }
        };
        self.note(&lease);
        self.lease = Some(lease);
        self.fence.open_until(sent + self.settings.renew_deadline);
        Ok(Tenure::Ours)
    }

    async fn put(&self, mut lease: Lease, spec: LeaseSpec) -> Result<Lease, AttemptError> {
        lease.spec = Some(spec);
        lease.metadata.managed_fields = None;
        self.request(self.api.replace(&self.name, &PostParams::default(), &lease))
            .await
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, AttemptError> {
        let limit = MIN_REQUEST_TIMEOUT.max(self.settings.renew_deadline / 2);
        Ok(timeout(limit, request)
            .await
            .map_err(|_| AttemptError::Timeout)??)
    }

    /// Waits until the Lease, which another one holds until `until` or longer, may be taken, or is
    /// to be read again.
    async fn await_change(&mut self, until: Instant) {
        let pause = Instant::now() + self.settings.retry_period;
        let error = match timeout_at(until, self.open_watch()).await {
            // It could not be watched for all that time.
            Err(_) => return,
            Ok(Err(error)) => error,
            Ok(Ok(events)) => match self.follow(events).await {
                Ok(()) => return,
                Err(error) => error,
            },
        };
        tracing::debug!(
            lease = self.name,
            error = with_causes(&error),
            "Lease is no longer watched, it is read again"
        );
        self.lease = None;
        // At once after a watch of the usual length; otherwise in the rhythm of replicas that do
        // not watch.
        sleep_until(pause.min(until)).await;
    }

    /// Watches the Lease from where it was last seen; when it does not exist, from now on.
    async fn open_watch(&self) -> Result<LeaseEvents, AttemptError> {
        let version = self
            .lease
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.as_deref())
            .unwrap_or_default();
        let named = WatchParams::default()
            .fields(&format!("metadata.name={}", self.name))
            .timeout(WATCH_TIMEOUT);
        Ok(self.request(self.api.watch(&named, version)).await?.boxed())
    }

    async fn follow(&mut self, mut events: LeaseEvents) -> Result<(), AttemptError> {
        while let Some(end) = self.observation.held_until(Instant::now()) {
            let event = tokio::select! {
                // A process that was suspended first reads what has come meanwhile.
                biased;
                event = events.next() => event,
                () = sleep_until(end) => continue,
            };
            match event.ok_or(AttemptError::WatchEnded)?? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    self.note(&lease);
                    self.lease = Some(lease);
                }
                // Its holder may not know yet and lead on: his time is waited for all the same.
                WatchEvent::Deleted(_) => self.lease = None,
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
        Ok(())
    }

    fn note(&mut self, lease: &Lease) {
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = holder(&spec);
        if holder != self.observation.holder() && holder != self.identity && !holder.is_empty() {
            tracing::info!(lease = self.name, leader = holder, "another replica leads");
        }
        self.reference.uid.clone_from(&lease.metadata.uid);
        self.reference
            .resource_version
            .clone_from(&lease.metadata.resource_version);
        let identity = holder.to_owned();
        self.observation.note(spec, Instant::now());
        let silence = 2 * self.settings.retry_period + RENEWAL_TOLERANCE;
        let silent_from = self.observation.changed_at().map(|at| at + silence);
        self.holder.send_replace(Holder {
            identity,
            silent_from,
        });
    }

    fn report(&self, what: &str) {
        self.events
            .normal(&self.reference, REASON, format!("{} {what}", self.identity));
    }
}

pub fn reference(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("coordination.k8s.io/v1".to_owned()),
        kind: Some("Lease".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// An identity unlike any other: the host's name and a random part (rule 79).
pub fn identity() -> String {
    format!("{}_{:032x}", crate::events::host(), rand::random::<u128>())
}
