//! One write to one dependent, with the right of way for protection, and its rehearsal.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::api_failure::ApiFailure;
use common::logging::with_causes;
use common::status_message;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use prober_core::config::{Config, ResourceRef};
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::{
    DependentState, MELTDOWN_PROTECTION_ACTIVE, Observed, PlannedWrite, REPLICAS,
};
use prober_core::shoot::Order;
use prober_core::verdict::BackedNodes;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, RwLock, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::rehearsal::Outcome;
use crate::seed::dependent::ScalableObject;
use crate::shared::Shared;
use crate::task::Assignment;

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

/// What is to be kept until a write is answered.
pub type Permit = Option<OwnedSemaphorePermit>;

/// Permits of all shoots' writes: restores keep to a rate, protection has the right of way.
pub struct Permits {
    limiter: RestoreLimiter,
    /// Time after which the limiter lets one more write pass.
    period: Duration,
    /// Shared by the restores that wait for the limiter.
    restores: RwLock<()>,
    protective: Arc<Semaphore>,
    /// Bounds the rehearsals that are to be answered or wait for the limiter.
    rehearsals: Semaphore,
    /// Held by the rehearsal that waits for the limiter.
    rehearsal: AsyncMutex<()>,
}

impl Permits {
    /// Lets at most `qps` requests a second pass after a burst of `burst`; protection is exempt.
    pub fn new(qps: f64, burst: NonZeroU32) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / qps).ok();
        let quota = period
            .and_then(Quota::with_period)
            .unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        Self {
            limiter: RateLimiter::direct_with_clock(quota, LimiterClock(Instant::now())),
            period: quota.replenish_interval(),
            restores: RwLock::default(),
            protective: Arc::new(Semaphore::new(PROTECTIVE_WRITES_IN_FLIGHT)),
            rehearsals: Semaphore::new(REHEARSALS_IN_FLIGHT),
            rehearsal: AsyncMutex::default(),
        }
    }

    /// Waits until a write in this direction may be made.
    pub async fn write(&self, direction: Direction) -> Permit {
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

    /// Waits until a rehearsal may be sent: by the limiter of restores, and after all that wait for
    /// it. Rehearsals of all shoots follow each other so slowly that they use up no burst. What it
    /// returns is to be kept until the rehearsal is answered.
    async fn rehearsal(&self) -> Option<SemaphorePermit<'_>> {
        let permit = self.rehearsals.acquire().await.ok();
        let _turn = self.rehearsal.lock().await;
        sleep(self.period).await;
        while self.restores.try_write().is_err() || self.limiter.check().is_err() {
            sleep(self.period).await;
        }
        permit
    }
}

/// Sends a change as a patch.
async fn patch(
    api: &Api<ScalableObject>,
    resource: &ResourceRef,
    change: &PlannedWrite,
    dry_run: bool,
) -> Result<ScalableObject, Refusal> {
    let params = PatchParams {
        dry_run,
        ..PatchParams::apply(FIELD_MANAGER)
    };
    let patch = Patch::Merge(merge_patch(change));
    let answer = api.patch(&resource.name, &params, &patch);
    answer.await.map_err(refusal)
}

impl Shared {
    /// The dependents of this kind in a namespace.
    fn api(&self, resource: &ResourceRef, namespace: &str) -> Option<Api<ScalableObject>> {
        let view = self.seed.dependent(resource)?;
        Some(view.api(&self.seed.client, namespace))
    }

    /// Sends a patch as a dry run.
    pub(crate) async fn rehearse(
        &self,
        namespace: &str,
        resource: &ResourceRef,
        change: &PlannedWrite,
    ) -> Outcome {
        let _permit = self.permits.rehearsal().await;
        let Some(api) = self.api(resource, namespace) else {
            return Outcome::Unanswered;
        };
        let answer = self
            .election
            .while_leading(patch(&api, resource, change, true));
        let Ok(Some(answer)) = timeout(REHEARSAL, answer).await else {
            return Outcome::Unanswered;
        };
        let outcome = Outcome::of(change, answer.map(DependentState::from));
        tracing::debug!(%resource, ?outcome, "rehearsed");
        outcome
    }

    /// Makes one change, provided that the dependent is still as observed, and logs a failure. Returns
    /// how it is then. `machines` are the nodes that Machines back, as the view shows them.
    pub(crate) async fn write(
        &self,
        shoot: &Assignment,
        config: &Config,
        machines: &BackedNodes,
        order: &Order,
    ) -> Result<Arc<Observed>, Refusal> {
        let resource = &config.dependent(order.dependent).resource;
        let write = async {
            let api = self.api(resource, &shoot.namespace);
            let api = api.ok_or(Refusal::SeedUnknown)?;
            if order.direction == Direction::Down && !order.needs_lead {
                let confirmed = self.confirm(shoot, config, machines).await;
                confirmed.map_err(Refusal::Unverified)?;
            }
            self.send(&api, resource, order).await
        };
        timeout(order.limit, write)
            .await
            .unwrap_or(Err(Refusal::Timeout))
            .inspect_err(|error| tracing::debug!(%resource, category = error.into_str(), %error, "write failed"))
    }

    /// Fails unless the seed's API server shows what a replica that does not lead protects by: its
    /// watches may have died without a sign.
    async fn confirm(
        &self,
        shoot: &Assignment,
        config: &Config,
        machines: &BackedNodes,
    ) -> Result<(), String> {
        let confirmed = *shoot.confirmed.lock();
        if confirmed.is_some_and(|at| at.elapsed() < CONFIRMED_FOR) {
            return Ok(());
        }
        let (namespace, uid) = (&shoot.namespace, &shoot.cluster.uid);
        let confirmation = self.seed.confirm(config, namespace, uid, machines);
        confirmation.await.inspect_err(|why| {
            tracing::warn!(
                why,
                "the seed's API server does not confirm what protection rests on"
            );
        })?;
        *shoot.confirmed.lock() = Some(Instant::now());
        Ok(())
    }

    /// Sends a change as long as this process runs, and leads if the order needs that: one that still
    /// waits for a connection is dropped when that ends.
    async fn send(
        &self,
        api: &Api<ScalableObject>,
        resource: &ResourceRef,
        order: &Order,
    ) -> Result<Arc<Observed>, Refusal> {
        let request = patch(api, resource, &order.change, false);
        let request = self
            .suspend_detector
            .run_unless_suspended(order.judged_at, request);
        let answer = if order.needs_lead {
            self.election.while_leading(request).await
        } else {
            Some(request.await)
        };
        match answer
            .ok_or(Refusal::NotLeading)?
            .ok_or(Refusal::Suspended)?
        {
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

    use futures::future::join_all;

    use super::*;
    use crate::tests::{CONFIG, shared};

    fn permits() -> Permits {
        Permits::new(5.0, NonZeroU32::new(10).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn restores_keep_to_their_rate_and_protection_to_none() {
        let (permits, began) = (permits(), Instant::now());
        for restores in 1..=30_u32 {
            permits.write(Direction::Up).await;
            let beyond_burst = f64::from(restores.saturating_sub(10));
            let late = began.elapsed().as_secs_f64() - beyond_burst / 5.0;
            assert!((0.0..0.01).contains(&late), "{restores}: {late}");
        }
        let restored = Instant::now();
        for _ in 0..100 {
            drop(permits.write(Direction::Down).await);
        }
        assert_eq!(Instant::now(), restored);
    }

    #[tokio::test(start_paused = true)]
    async fn rehearsals_leave_restores_their_rate() {
        let shared = Shared {
            permits: Arc::new(permits()),
            ..shared(CONFIG)
        };
        let change = PlannedWrite {
            base: Arc::default(),
            write: prober_core::replicas::Write::default(),
        };
        let rehearse = join_all((0..REHEARSALS_IN_FLIGHT).map(async |_| {
            loop {
                let resource = ResourceRef::default();
                shared.rehearse("n", &resource, &change).await;
            }
        }));
        let restore = async {
            sleep(Duration::from_secs(60)).await;
            let began = Instant::now();
            for _ in 1..=30 {
                shared.permits.write(Direction::Up).await;
            }
            began.elapsed().as_secs_f64()
        };
        let took = tokio::select! {
            _ = rehearse => 0.0,
            took = restore => took,
        };
        // 20 are beyond the burst, and one rehearsal was before them.
        assert!((4.0..4.3).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_rehearsal_without_an_answer_holds_up_no_other() {
        let (permits, began) = (permits(), Instant::now());
        let mut unanswered = Vec::new();
        for _ in 0..REHEARSALS_IN_FLIGHT {
            unanswered.push(permits.rehearsal().await);
        }
        let took = began.elapsed().as_secs_f64();
        assert!((1.6..1.7).contains(&took), "{took}");
        let one_more = || timeout(Duration::from_secs(60), permits.rehearsal());
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
