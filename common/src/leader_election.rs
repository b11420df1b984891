//! Leader election by a Lease, as client-go does it, so that replicas in Go and in Rust exclude
//! each other.
//!
//! ```text
//! acquire --Lease free, released, or not renewed for leaseDuration--> renew every retryPeriod --> ...
//!   ^ watches the Lease: one that is released is taken at once          |
//!   |                                                                   |--release, after the work has ended--> done
//!   '-- (a new process)              no renewal for renewDeadline, or another holder --> lost: the process ends
//! ```
//!
//! The [`Fence`] is what makes losing safe: it closes `renewDeadline` after the last renewal was
//! *sent*, and nothing is written through a closed fence. Another replica can take over only after
//! the longer lease duration.
//!
//! Requests are those that Gardener's role grants: create; get, update and watch of the one Lease
//! by its name.

mod election;
mod fence;
mod record;
mod role;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::election::Election;
pub use self::fence::Fence;
use self::record::{ObservedLease, held_by, holder, released};
pub use self::role::Role;
pub use self::role::{RoleName, RoleStatus};
use crate::events::Events;
use crate::flags::LeaderElection;
use crate::followed::Followed;
use crate::logging::with_causes;

/// Length of one watch of the Lease, in seconds: below the 240 s after which common load balancers
/// cut in silence.
const WATCH_TIMEOUT: u32 = 225;
/// The shortest time that a request may take (rule 80).
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay beyond two retry periods after which a leader counts as gone (D-61): what a slow API
/// server takes.
const RENEWAL_TOLERANCE: Duration = Duration::from_secs(1);
/// The longest time for the release: the process has 5 s for its whole end (rule 85), and an
/// unreleased Lease expires.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);
/// Attempts at the release: a renewal that was under way may still change the Lease, and an answer
/// may get lost.
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
/// itself when the process is to end. The Lease is then released; another replica takes over at
/// once. The election is a task of its own: however long the work computes, the Lease is renewed.
///
/// # Errors
/// When leadership is lost; `work` is then dropped, and the process must end.
pub async fn campaign(elector: LeaderElector, work: impl Future<Output = ()>) -> Result<(), Lost> {
    let stop = CancellationToken::new();
    let mut election = AbortOnDropHandle::new(tokio::spawn(elector.run(stop.clone())));
    let ended = tokio::select! {
        biased;
        () = work => {
            stop.cancel();
            election.await
        }
        ended = &mut election => ended,
    };
    // Nobody has aborted it: if it could not be joined, it has panicked, and so does the process.
    ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

pub struct LeaderElector {
    api: Api<Lease>,
    name: String,
    identity: String,
    settings: LeaderElection,
    events: Events,
    observed: ObservedLease,
    /// The Lease as last read or written; `None` if it may have changed since.
    lease: Option<Lease>,
    /// The Lease as Events refer to it.
    reference: ObjectReference,
    /// True if anything was written, so that the Lease may be ours even if no answer said so.
    wrote: bool,
    election: Arc<Followed<Election>>,
}

type LeaseEvents = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// Holder of the Lease.
enum Tenure {
    Ours,
    /// Another replica, at least until then.
    Theirs(Instant),
}

impl LeaderElector {
    /// A candidate for the Lease `name`, and its role. `identity` must be unlike that of any other
    /// process.
    pub fn new(
        client: Client,
        settings: LeaderElection,
        name: &str,
        identity: String,
        events: Events,
    ) -> (Self, Role) {
        let election = Arc::<Followed<Election>>::default();
        let elector = Self {
            api: Api::namespaced(client, &settings.namespace),
            name: name.to_owned(),
            observed: ObservedLease::default(),
            identity: identity.clone(),
            reference: reference(&settings.namespace, name),
            settings,
            events,
            lease: None,
            wrote: false,
            election: Arc::clone(&election),
        };
        (elector, Role::Candidate { identity, election })
    }

    /// Takes part until `stop`, and releases the Lease then.
    async fn run(mut self, stop: CancellationToken) -> Result<(), Lost> {
        let lost = async {
            self.acquire().await;
            self.renew().await
        };
        match stop.run_until_cancelled(lost).await {
            Some(lost) => Err(lost),
            None => {
                self.release().await;
                Ok(())
            }
        }
    }

    /// Waits until this process leads: the fence is open then. After a cancellation call
    /// [`LeaderElector::release`].
    pub async fn acquire(&mut self) {
        loop {
            match self.try_acquire_or_renew().await {
                Ok(Tenure::Ours) => break,
                Ok(Tenure::Theirs(until)) => self.await_change(until).await,
                Err(error) => {
                    tracing::warn!(
                        lease = self.name,
                        error = with_causes(&*error),
                        "Lease cannot be read or written, trying again"
                    );
                    sleep(self.settings.retry_period).await;
                }
            }
        }
        tracing::info!(lease = self.name, identity = self.identity, "leading");
        self.report("became leader");
    }

    /// Renews the Lease until leadership is lost. After a cancellation call
    /// [`LeaderElector::release`].
    pub async fn renew(&mut self) -> Lost {
        let lost = loop {
            let until = self.leads_until().unwrap_or_else(Instant::now);
            sleep_until(until.min(Instant::now() + self.settings.retry_period)).await;
            if until <= Instant::now() {
                break Lost::Expired(self.settings.renew_deadline);
            }
            match timeout_at(until, self.try_acquire_or_renew()).await {
                Ok(Ok(Tenure::Ours)) => {}
                Ok(Ok(Tenure::Theirs(_))) => {
                    break Lost::Taken(self.observed.holder().to_owned());
                }
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.name,
                        error = with_causes(&*error),
                        "Lease could not be renewed, trying again"
                    )
                }
                // The next round finds the fence closed.
                Err(_) => {}
            }
        };
        self.stop_leading();
        lost
    }

    /// Releases the Lease if it is ours, so that another replica leads at once. Only after all work
    /// has ended.
    pub async fn release(mut self) {
        if self.leads_until().is_some() {
            self.stop_leading();
        }
        if !self.wrote {
            return;
        }
        let released = timeout(RELEASE_LIMIT, self.try_release()).await;
        match released.unwrap_or_else(|_| Err(no_answer())) {
            Ok(true) => tracing::info!(lease = self.name, "Lease released"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(
                    lease = self.name,
                    error = with_causes(&*error),
                    "Lease could not be released, it will expire"
                )
            }
        }
    }

    /// True if the Lease was ours and no longer is.
    async fn try_release(&mut self) -> anyhow::Result<bool> {
        let mut attempts = 1;
        loop {
            let lease = match self.lease.take() {
                Some(lease) => Some(lease),
                None => self.read().await?,
            };
            let ours = lease.filter(|lease| holder(lease) == self.identity);
            let Some(mut lease) = ours else {
                return Ok(false);
            };
            lease.spec = lease.spec.map(|spec| released(spec, now()));
            match self.write(lease).await {
                Ok(_) => return Ok(true),
                Err(error) if attempts == RELEASE_ATTEMPTS => return Err(error),
                Err(_) => attempts += 1,
            }
        }
    }

    async fn try_acquire_or_renew(&mut self) -> anyhow::Result<Tenure> {
        // First on the assumption that it is as last seen. After a failure self.lease stays empty:
        // it is read again.
        if let Some(lease) = self.lease.take() {
            match self.attempt(Some(lease)).await {
                Ok(tenure) => return Ok(tenure),
                Err(error) => {
                    tracing::debug!(
                        lease = self.name,
                        error = with_causes(&*error),
                        "Lease is read again"
                    )
                }
            }
        }
        let lease = self.read().await?;
        self.attempt(lease).await
    }

    /// Writes the Lease unless another replica holds it; `known` is `None` if it does not exist.
    async fn attempt(&mut self, known: Option<Lease>) -> anyhow::Result<Tenure> {
        if let Some(lease) = &known {
            self.observe(lease);
        }
        if let Some(until) = self.observed.held_until(&self.identity, Instant::now()) {
            self.lease = known;
            return Ok(Tenure::Theirs(until));
        }
        let sent = Instant::now();
        self.wrote = true;
        let mut lease = known.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        lease.spec = Some(held_by(
            lease.spec.unwrap_or_default(),
            &self.identity,
            self.settings.lease_duration,
            now(),
        ));
        let lease = self.write(lease).await?;
        self.observe(&lease);
        self.lease = Some(lease);
        let leads_until = sent + self.settings.renew_deadline;
        self.election
            .change(|election| election.leads_until = Some(leads_until));
        Ok(Tenure::Ours)
    }

    async fn read(&self) -> anyhow::Result<Option<Lease>> {
        self.request(self.api.get_opt(&self.name)).await
    }

    /// Updates the Lease if it is still as it was read; creates one that was not read.
    async fn write(&self, mut lease: Lease) -> anyhow::Result<Lease> {
        lease.metadata.managed_fields = None;
        let params = PostParams::default();
        if lease.metadata.resource_version.is_none() {
            return self.request(self.api.create(&params, &lease)).await;
        }
        self.request(self.api.replace(&self.name, &params, &lease))
            .await
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> anyhow::Result<T> {
        let limit = MIN_REQUEST_TIMEOUT.max(self.settings.renew_deadline / 2);
        Ok(timeout(limit, request).await.map_err(|_| no_answer())??)
    }

    /// Waits until the Lease, which another replica holds until `until` or longer, may be taken, or
    /// must be read again.
    async fn await_change(&mut self, until: Instant) {
        let pause = Instant::now() + self.settings.retry_period;
        let followed = match timeout_at(until, self.open_watch()).await {
            // It could not be watched for all that time.
            Err(_) => return,
            Ok(Ok(events)) => self.follow(events).await,
            Ok(Err(error)) => Err(error),
        };
        let Err(error) = followed else { return };
        tracing::debug!(
            lease = self.name,
            error = with_causes(&*error),
            "Lease is no longer watched, it is read again"
        );
        self.lease = None;
        // At once after a watch of the usual length; otherwise as often as replicas that do not
        // watch.
        sleep_until(pause.min(until)).await;
    }

    /// Watches the Lease from where it was last seen; when it does not exist, from now on.
    async fn open_watch(&self) -> anyhow::Result<LeaseEvents> {
        let lease = self.lease.as_ref();
        let version = lease.and_then(|lease| lease.metadata.resource_version.as_deref());
        let params = WatchParams::default()
            .fields(&format!("metadata.name={}", self.name))
            .timeout(WATCH_TIMEOUT);
        let watch = self.api.watch(&params, version.unwrap_or_default());
        Ok(self.request(watch).await?.boxed())
    }

    async fn follow(&mut self, mut events: LeaseEvents) -> anyhow::Result<()> {
        while let Some(end) = self.observed.held_until(&self.identity, Instant::now()) {
            let event = tokio::select! {
                // A process that was suspended first reads what has come meanwhile.
                biased;
                event = events.next() => event,
                () = sleep_until(end) => continue,
            };
            match event.ok_or_else(|| anyhow!("the watch ended"))?? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    self.observe(&lease);
                    self.lease = Some(lease);
                }
                // Its holder may not know yet and still lead: its leaseDuration is waited for all
                // the same.
                WatchEvent::Deleted(_) => self.lease = None,
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
        Ok(())
    }

    fn observe(&mut self, lease: &Lease) {
        let leader = holder(lease).to_owned();
        if leader != self.observed.holder() && leader != self.identity && !leader.is_empty() {
            tracing::info!(lease = self.name, leader, "another replica leads");
        }
        self.reference = ObjectReference {
            resource_version: lease.metadata.resource_version.clone(),
            ..lease.object_ref(&())
        };
        let changed_at = self.observed.update(lease, Instant::now());
        let silence = 2 * self.settings.retry_period + RENEWAL_TOLERANCE;
        self.election.change(|election| {
            election.leader = leader;
            election.leader_silent_from = Some(changed_at + silence);
        });
    }

    fn leads_until(&self) -> Option<Instant> {
        self.election.lock().leads_until
    }

    fn stop_leading(&self) {
        self.election.change(|election| election.leads_until = None);
        self.report("stopped leading");
    }

    fn report(&self, what: &str) {
        self.events
            .normal(&self.reference, REASON, format!("{} {what}", self.identity));
    }
}

fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}

fn no_answer() -> anyhow::Error {
    anyhow!("no answer in time")
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
    format!("{}_{:032x}", crate::events::host(), fastrand::u128(..))
}
