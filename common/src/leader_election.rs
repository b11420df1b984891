//! Leader election by a Lease, as client-go does it, so that replicas in Go and in Rust exclude
//! each other.
//!
//! ```text
//! acquire: every retryPeriod --Lease free, released, or not renewed for leaseDuration--> renew: every retryPeriod --> ...
//!                                                                                          |
//!                                         |--release, after the work has ended--> done <---|
//!                                         '--no renewal for renewDeadline, or another holder--> lost: the process ends
//! ```
//!
//! The [`Election`] is what makes losing safe: leadership ends `renewDeadline` after the last
//! renewal was *sent*, and nothing that needs it is sent later. Another replica can take over only
//! after the longer lease duration.
//!
//! Requests are among those that Gardener's role grants: create; get and update of the one Lease by
//! its name.

mod election;
mod record;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use self::election::{Election, RoleName, RoleStatus};
use self::record::{ObservedLease, held_by, holder, released};
use crate::events::Events;
use crate::flags::LeaderElection;
use crate::followed::Followed;
use crate::logging::with_causes;

/// The shortest time that a request may take (rule 80).
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Retry periods without a renewal after which a leader counts as silent (D-61): two that it
/// missed, and one by which this replica may have seen the last one late.
const SILENT_PERIODS: u32 = 3;
/// Delay beyond them: what a slow API server takes.
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

/// Does `work` as a candidate for leadership: work that writes only while it leads, and ends by
/// itself when the process is to end. The Lease is then released, and another replica takes over
/// within a retry period. The election is a task of its own: however long the work computes, the
/// Lease is renewed.
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
    identity: Arc<str>,
    settings: LeaderElection,
    events: Events,
    observed: Arc<Followed<ObservedLease>>,
    /// The Lease as this process wrote it last; `None` if it must be read first.
    written: Option<Lease>,
    /// True if anything was sent, so that the Lease may be ours even if no answer said so.
    sent: bool,
}

impl LeaderElector {
    /// A candidate for the Lease `name`, and its part in the election. `identity` must be unlike
    /// that of any other process.
    pub fn new(
        client: Client,
        settings: LeaderElection,
        name: &str,
        identity: &str,
        events: Events,
    ) -> (Self, Election) {
        let observed = Arc::<Followed<ObservedLease>>::default();
        let election = Election::Candidate {
            identity: identity.into(),
            silence: SILENT_PERIODS * settings.retry_period + RENEWAL_TOLERANCE,
            lease: Arc::clone(&observed),
        };
        let elector = Self {
            api: Api::namespaced(client, &settings.namespace),
            name: name.to_owned(),
            identity: identity.into(),
            settings,
            events,
            observed,
            written: None,
            sent: false,
        };
        (elector, election)
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

    /// Waits until this process leads. After a cancellation call [`LeaderElector::release`].
    pub async fn acquire(&mut self) {
        loop {
            match self.try_acquire_or_renew().await {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    lease = self.name,
                    error = with_causes(&*error),
                    "Lease cannot be read or written, trying again"
                ),
            }
            sleep(self.settings.retry_period).await;
        }
        tracing::info!(lease = self.name, identity = &*self.identity, "leading");
        self.report("became leader");
    }

    /// Renews the Lease until leadership is lost. After a cancellation call
    /// [`LeaderElector::release`].
    pub async fn renew(&mut self) -> Lost {
        let (observed, deadline) = (Arc::clone(&self.observed), self.settings.renew_deadline);
        let taken = async {
            loop {
                sleep(self.settings.retry_period).await;
                match self.try_acquire_or_renew().await {
                    Ok(true) => {}
                    Ok(false) => break self.observed.lock().holder().to_owned(),
                    Err(error) => tracing::warn!(
                        lease = self.name,
                        error = with_causes(&*error),
                        "Lease could not be renewed, trying again"
                    ),
                }
            }
        };
        let lost = tokio::select! {
            biased;
            () = election::lost(&observed) => Lost::Expired(deadline),
            holder = taken => Lost::Taken(holder),
        };
        self.stop_leading();
        lost
    }

    /// Releases the Lease if it is ours, so that another replica leads soon. Only after all work
    /// has ended.
    pub async fn release(mut self) {
        if self.observed.lock().leads_until.is_some() {
            self.stop_leading();
        }
        if !self.sent {
            return;
        }
        let released = timeout(RELEASE_LIMIT, self.try_release()).await;
        match released.unwrap_or_else(|_| Err(no_answer())) {
            Ok(true) => tracing::info!(lease = self.name, "Lease released"),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                lease = self.name,
                error = with_causes(&*error),
                "Lease could not be released, it will expire"
            ),
        }
    }

    /// True if the Lease was ours and no longer is.
    async fn try_release(&mut self) -> anyhow::Result<bool> {
        let mut attempts = 1;
        loop {
            let lease = match self.written.take() {
                Some(lease) => Some(lease),
                None => self.read().await?,
            };
            let Some(mut lease) = lease.filter(|lease| holder(lease) == &*self.identity) else {
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

    /// Takes or renews the Lease. False if another replica holds it.
    async fn try_acquire_or_renew(&mut self) -> anyhow::Result<bool> {
        // First on the assumption that it still is as this process wrote it.
        if let Some(lease) = self.written.take()
            && self.hold(lease).await.is_ok()
        {
            return Ok(true);
        }
        let lease = self.read().await?;
        if let Some(lease) = &lease {
            self.observe(lease);
        }
        let now = Instant::now();
        if self.observed.lock().is_held_by_another(&self.identity, now) {
            return Ok(false);
        }
        self.hold(lease.unwrap_or_default()).await?;
        Ok(true)
    }

    /// Writes the Lease as held by this process, which leads from then on.
    async fn hold(&mut self, mut lease: Lease) -> anyhow::Result<()> {
        let leads_until = Instant::now() + self.settings.renew_deadline;
        self.sent = true;
        lease.metadata.name = Some(self.name.clone());
        lease.spec = Some(held_by(
            lease.spec.unwrap_or_default(),
            &self.identity,
            self.settings.lease_duration,
            now(),
        ));
        let lease = self.write(lease).await?;
        self.observe(&lease);
        self.written = Some(lease);
        self.observed
            .change(|observed| observed.leads_until = Some(leads_until));
        Ok(())
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

    fn observe(&self, lease: &Lease) {
        let leader = holder(lease);
        self.observed.change(|observed| {
            if ![observed.holder(), &self.identity, ""].contains(&leader) {
                tracing::info!(lease = self.name, leader, "another replica leads");
            }
            observed.update(lease, Instant::now());
        });
    }

    fn stop_leading(&self) {
        self.observed.change(|observed| observed.leads_until = None);
        self.report("stopped leading");
    }

    fn report(&self, what: &str) {
        let message = format!("{} {what}", self.identity);
        self.events.normal("", REASON, &message);
    }
}

fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}

fn no_answer() -> anyhow::Error {
    anyhow!("no answer in time")
}

/// An identity unlike any other: the host's name and a random part (rule 79).
pub fn identity() -> String {
    format!("{}_{:032x}", crate::events::host(), fastrand::u128(..))
}
