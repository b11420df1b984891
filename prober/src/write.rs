//! One write to one dependent, with the right of way for protection, and its rehearsal.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::api_failure::ApiFailure;
use common::leader_election::Election;
use common::logging::with_causes;
use common::status_message;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use prober_core::config::{Config, ResourceRef};
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::{
    DependentState, MELTDOWN_PROTECTION_ACTIVE, Observed, PlannedWrite, REPLICAS,
};
use prober_core::shoot::Order;
use prober_core::verdict::BackedNodes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::rehearsal::Outcome;
use crate::seed::Seed;
use crate::suspend_detector::SuspendDetector;

const PROTECTIVE_WRITES_IN_FLIGHT: usize = 32;
/// So many, since one that a webhook holds up is not to hold up all of a seed.
const REHEARSALS_IN_FLIGHT: usize = 8;
/// Time for which what the seed's API server has confirmed counts (D-85).
const CONFIRMED_FOR: Duration = Duration::from_secs(10);
/// Time for a rehearsal: a webhook has 10 s unless it says otherwise, and its API server answers
/// after that.
const REHEARSAL: Duration = Duration::from_secs(12);
pub const FIELD_MANAGER: &str = "dependency-watchdog";

type RestoreLimiter = RateLimiter<NotKeyed, InMemoryState, LimiterClock, NoOpMiddleware<Duration>>;

/// Tokio's clock for the limiter: time since this one's start.
#[derive(Clone, Debug)]
struct LimiterClock(Instant);

impl governor::clock::Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// What is to be kept until a write is answered.
pub type Permit = Option<OwnedSemaphorePermit>;

/// What a shoot's writes are made by, besides their orders.
pub(crate) struct Target {
    pub config: Arc<Config>,
    pub namespace: String,
    pub uid: String,
    /// Nodes that Machines back, as the view shows them.
    pub machines: Arc<BackedNodes>,
    pub confirmed: Confirmed,
}

/// Time at which the seed's API server confirmed what is known of a shoot.
pub(crate) type Confirmed = Arc<Mutex<Option<Instant>>>;

pub struct Writer {
    seed: Arc<Seed>,
    limiter: RestoreLimiter,
    /// Time after which the limiter lets one more write pass.
    period: Duration,
    /// Shared by the restores that wait for the limiter.
    restores: RwLock<()>,
    protective: Arc<Semaphore>,
    /// Bounds the rehearsals that are to be answered or wait for the limiter.
    rehearsals: Semaphore,
    election: Election,
    suspend_detector: SuspendDetector,
}

/// Classifies a failed request.
fn refusal(error: kube::Error) -> Refusal {
    let kube::Error::Api(status) = error else {
        return Refusal::NoAnswer(with_causes(&error));
    };
    let (code, said) = (status.code, status_message::message(&status));
    match ApiFailure::from(&*status) {
        ApiFailure::NotFound => Refusal::NotFound,
        ApiFailure::Conflict => Refusal::Conflict(DependentState::Unknown),
        ApiFailure::Throttled(wait) => Refusal::Throttled(wait),
        ApiFailure::Unauthorized | ApiFailure::Forbidden => Refusal::Denied { code, said },
        ApiFailure::Server => Refusal::Unavailable { code, said },
        ApiFailure::Refused | ApiFailure::NoAnswer => Refusal::Status { code, said },
    }
}

impl Writer {
    /// Writes with at most `qps` requests a second after a burst of `burst`; protection is exempt.
    /// Nothing that needs leadership is sent without it, and nothing after a suspension.
    pub fn new(
        seed: Arc<Seed>,
        qps: f64,
        burst: NonZeroU32,
        election: Election,
        suspend_detector: SuspendDetector,
    ) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / qps).ok();
        let quota = period
            .and_then(Quota::with_period)
            .unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        Self {
            seed,
            limiter: RateLimiter::direct_with_clock(quota, LimiterClock(Instant::now())),
            period: quota.replenish_interval(),
            restores: RwLock::default(),
            protective: Arc::new(Semaphore::new(PROTECTIVE_WRITES_IN_FLIGHT)),
            rehearsals: Semaphore::new(REHEARSALS_IN_FLIGHT),
            election,
            suspend_detector,
        }
    }

    /// Waits until a write in this direction may be made. What it returns is to be kept until the
    /// write is answered.
    pub async fn permit(&self, direction: Direction) -> Permit {
        match direction {
            Direction::Down => Arc::clone(&self.protective).acquire_owned().await.ok(),
            Direction::Up => {
                let _waiting = self.restores.read().await;
                while let Err(early) = self.limiter.check() {
                    sleep_until(self.limiter.clock().0 + early.earliest_possible()).await;
                }
                None
            }
        }
    }

    /// Makes one change, provided that the dependent is still as observed, and logs a failure. Returns
    /// how it is then.
    pub(crate) async fn write(
        &self,
        target: &Target,
        order: &Order,
    ) -> Result<Arc<Observed>, Refusal> {
        let resource = &target.config.dependent(order.dependent).resource;
        timeout(order.limit, self.attempt(target, resource, order))
            .await
            .unwrap_or(Err(Refusal::Timeout))
            .inspect_err(|error| tracing::debug!(%resource, category = error.into_str(), %error, "write failed"))
    }

    /// Waits until a rehearsal may be sent: by the limiter of restores, and after all that wait for
    /// it. Rehearsals of all shoots follow each other so slowly that they use up no burst. What it
    /// returns is to be kept until the rehearsal is answered.
    async fn rehearsal_permit(&self) -> Option<SemaphorePermit<'_>> {
        let permit = self.rehearsals.acquire().await.ok();
        sleep(self.period).await;
        while self.restores.try_write().is_err() || self.limiter.check().is_err() {
            sleep(self.period).await;
        }
        permit
    }

    /// Sends a patch as a dry run.
    pub(crate) async fn rehearse(
        &self,
        namespace: &str,
        resource: &ResourceRef,
        change: &PlannedWrite,
    ) -> Outcome {
        let _permit = self.rehearsal_permit().await;
        let Some(view) = self.seed.dependent(resource) else {
            return Outcome::Unanswered;
        };
        let api = view.api(&self.seed.client, namespace);
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::apply(FIELD_MANAGER)
        };
        let patch = Patch::Merge(merge_patch(change));
        let request = api.patch(&resource.name, &params, &patch);
        let Ok(Some(answer)) = timeout(REHEARSAL, self.election.while_leading(request)).await
        else {
            return Outcome::Unanswered;
        };
        let answer = answer.map(DependentState::from).map_err(refusal);
        let outcome = Outcome::of(change, answer);
        tracing::debug!(%resource, ?outcome, "rehearsed");
        outcome
    }

    async fn attempt(
        &self,
        target: &Target,
        resource: &ResourceRef,
        order: &Order,
    ) -> Result<Arc<Observed>, Refusal> {
        let view = self.seed.dependent(resource).ok_or(Refusal::SeedUnknown)?;
        let api = view.api(&self.seed.client, &target.namespace);
        if order.direction == Direction::Down && !order.needs_lead {
            self.confirm(target).await.map_err(Refusal::Unverified)?;
        }
        let params = PatchParams::apply(FIELD_MANAGER);
        let patch = Patch::Merge(merge_patch(&order.change));
        let written = self.fenced(order, api.patch(&resource.name, &params, &patch));
        match written.await {
            Ok(object) => {
                let version = object.resource_version().unwrap_or_default();
                Ok(Arc::new(order.change.after(version)))
            }
            // How it is now, if that can be read.
            Err(Refusal::Conflict(_)) => {
                Err(Refusal::Conflict(match api.get_opt(&resource.name).await {
                    Ok(Some(object)) => object.into(),
                    Ok(None) => DependentState::Absent,
                    Err(_) => DependentState::Unknown,
                }))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Fails unless the seed's API server shows what a replica that does not lead protects by: its
    /// watches may have died without a sign.
    async fn confirm(&self, target: &Target) -> Result<(), String> {
        let confirmed = *target.confirmed.lock();
        if confirmed.is_some_and(|at| at.elapsed() < CONFIRMED_FOR) {
            return Ok(());
        }
        let (config, namespace) = (&target.config, &target.namespace);
        let confirmation = self
            .seed
            .confirm(config, namespace, &target.uid, &target.machines);
        confirmation.await.inspect_err(|why| {
            tracing::warn!(
                why,
                "the seed's API server does not confirm what protection rests on"
            );
        })?;
        *target.confirmed.lock() = Some(Instant::now());
        Ok(())
    }

    /// Makes a request as long as this process runs, and leads if the order needs that: one that
    /// still waits for a connection is dropped when that ends.
    async fn fenced<T>(
        &self,
        order: &Order,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Refusal> {
        let request = self
            .suspend_detector
            .run_unless_suspended(order.judged_at, request);
        let answer = if order.needs_lead {
            self.election.while_leading(request).await
        } else {
            Some(request.await)
        };
        let answer = answer.ok_or(Refusal::NotLeading)?;
        answer.ok_or(Refusal::Suspended)?.map_err(refusal)
    }
}

/// Annotations that do not change are not in it: a marker keeps its value.
pub fn merge_patch(PlannedWrite { base, write }: &PlannedWrite) -> Value {
    let (before, after) = (&base.marks, &write.marks);
    let mut patch = json!({ "metadata": { "resourceVersion": base.resource_version } });
    if after.replicas != before.replicas {
        patch["metadata"]["annotations"][REPLICAS] = after.replicas.clone().into();
    }
    if after.held_down != before.held_down {
        patch["metadata"]["annotations"][MELTDOWN_PROTECTION_ACTIVE] =
            after.held_down.then_some("").into();
    }
    if let Some(replicas) = write.replicas {
        patch["spec"] = json!({ "replicas": replicas });
    }
    patch
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::tests::seed;

    /// A writer that nothing stops.
    fn writer(qps: f64, burst: u32) -> Writer {
        let (election, clock) = (Election::Alone, crate::clock::Clock::start());
        let burst = NonZeroU32::new(burst).unwrap();
        Writer::new(seed(), qps, burst, election, SuspendDetector::new(clock))
    }

    #[tokio::test(start_paused = true)]
    async fn restores_keep_to_their_rate_and_protection_to_none() {
        let (writer, began) = (writer(5.0, 10), Instant::now());
        for restores in 1..=30_u32 {
            writer.permit(Direction::Up).await;
            let beyond_burst = f64::from(restores.saturating_sub(10));
            let late = began.elapsed().as_secs_f64() - beyond_burst / 5.0;
            assert!((0.0..0.01).contains(&late), "{restores}: {late}");
        }
        let restored = Instant::now();
        for _ in 0..100 {
            drop(writer.permit(Direction::Down).await);
        }
        assert_eq!(Instant::now(), restored);
    }

    #[tokio::test(start_paused = true)]
    async fn rehearsals_leave_restores_their_rate() {
        let writer = writer(5.0, 10);
        let change = PlannedWrite {
            base: Arc::default(),
            write: prober_core::replicas::Write::default(),
        };
        let rehearse = async {
            loop {
                let resource = ResourceRef::default();
                writer.rehearse("n", &resource, &change).await;
            }
        };
        let restore = async {
            sleep(Duration::from_secs(60)).await;
            let began = Instant::now();
            for _ in 1..=30 {
                writer.permit(Direction::Up).await;
            }
            began.elapsed().as_secs_f64()
        };
        let took = tokio::select! {
            () = rehearse => 0.0,
            took = restore => took,
        };
        // 20 are beyond the burst, and one rehearsal was before them.
        assert!((4.0..4.3).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_rehearsal_without_an_answer_holds_up_no_other() {
        let (writer, began) = (writer(5.0, 10), Instant::now());
        let mut unanswered = Vec::new();
        for _ in 0..REHEARSALS_IN_FLIGHT {
            unanswered.push(writer.rehearsal_permit().await);
        }
        let took = began.elapsed().as_secs_f64();
        assert!((1.6..1.7).contains(&took), "{took}");
        let one_more = || timeout(Duration::from_secs(60), writer.rehearsal_permit());
        assert!(one_more().await.is_err());
        unanswered.pop();
        assert!(one_more().await.is_ok());
    }

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct NotConnected(#[from] io::Error);

    #[test]
    fn a_write_without_an_answer_says_why() {
        let cause = NotConnected(io::Error::other("refused by 10.0.0.1:443"));
        let error = refusal(kube::Error::Service(cause.into()));
        assert_eq!(
            error.to_string(),
            "no answer from the seed's API server: ServiceError: client error (Connect): refused by 10.0.0.1:443"
        );
    }
}
