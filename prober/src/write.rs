//! One write to one dependent, with the right of way for protection.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::api_failure::ApiFailure;
use common::leader_election::Fence;
use common::logging::with_causes;
use common::status_message::StatusMessage;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use prober_core::config::ResourceRef;
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::{
    DependentState, MELTDOWN_PROTECTION_ACTIVE, Marks, Observed, PlannedWrite, REPLICAS,
};
use prober_core::shoot::Order;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use crate::seed::Seed;
use crate::seed::dependent::{ScalableKind, ScalableObject};
use crate::suspend_detector::SuspendDetector;

const PROTECTIVE_WRITES_IN_FLIGHT: usize = 32;
const FIELD_MANAGER: &str = "dependency-watchdog";

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

pub struct Writer {
    seed: Arc<Seed>,
    limiter: RestoreLimiter,
    protective: Arc<Semaphore>,
    fence: Fence,
    suspend_detector: SuspendDetector,
}

/// Classifies a failed request.
fn refusal(error: kube::Error) -> Refusal {
    let kube::Error::Api(status) = error else {
        return Refusal::NoAnswer(with_causes(&error));
    };
    let (code, said) = (status.code, StatusMessage::of(&status).to_string());
    match ApiFailure::from(&*status) {
        ApiFailure::NotFound => Refusal::NotFound,
        ApiFailure::Conflict => Refusal::Conflict,
        ApiFailure::Throttled(wait) => Refusal::Throttled(wait),
        ApiFailure::Unauthorized | ApiFailure::Forbidden => Refusal::Denied { code, said },
        ApiFailure::Server => Refusal::Unavailable { code, said },
        ApiFailure::Refused | ApiFailure::NoAnswer => Refusal::Status { code, said },
    }
}

impl Writer {
    /// Writes with at most `qps` requests a second after a burst of `burst`; protection is exempt.
    /// Nothing is sent while the fence is closed, or after a suspension.
    pub fn new(
        seed: Arc<Seed>,
        qps: f64,
        burst: NonZeroU32,
        fence: Fence,
        suspend_detector: SuspendDetector,
    ) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / qps)
            .unwrap_or(Duration::from_secs(1))
            .max(Duration::from_nanos(1));
        let quota = Quota::with_period(period)
            .unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        Self {
            seed,
            limiter: RateLimiter::direct_with_clock(quota, LimiterClock(Instant::now())),
            protective: Arc::new(Semaphore::new(PROTECTIVE_WRITES_IN_FLIGHT)),
            fence,
            suspend_detector,
        }
    }

    /// Waits until a write in this direction may be made. To be awaited before that write is
    /// decided on, since it may take long; what it returns is to be kept until the write is
    /// answered.
    pub async fn permit(&self, direction: Direction) -> Option<OwnedSemaphorePermit> {
        match direction {
            Direction::Down => Arc::clone(&self.protective).acquire_owned().await.ok(),
            Direction::Up => {
                while let Err(early) = self.limiter.check() {
                    sleep_until(self.limiter.clock().0 + early.earliest_possible()).await;
                }
                None
            }
        }
    }

    /// Reads a dependent from the API server itself.
    pub async fn read(
        &self,
        resource: &ResourceRef,
        namespace: &str,
        limit: Duration,
    ) -> Result<DependentState, Refusal> {
        let read = async {
            let (kind, api) = self.api(resource, namespace)?;
            let Some(object) = api.get_opt(&resource.name).await.map_err(refusal)? else {
                return Ok(DependentState::Absent);
            };
            let replicas = if kind.replicas_in_spec {
                None
            } else {
                let scale = api.get_scale(&resource.name).await.map_err(refusal)?;
                Some(scale.spec.and_then(|spec| spec.replicas).unwrap_or(0))
            };
            let observed = kind.observe(&object, replicas);
            Ok(DependentState::Present(Arc::new(observed)))
        };
        bounded(resource, limit, read).await
    }

    /// Makes one change, provided that the dependent is still as observed. Returns how it is then.
    /// On an error it may have been made in part: what was observed is then out of date.
    pub async fn write(
        &self,
        resource: &ResourceRef,
        namespace: &str,
        order: &Order,
    ) -> Result<Arc<Observed>, Refusal> {
        let PlannedWrite { base, write } = &order.change;
        let written = async {
            let (kind, api) = self.api(resource, namespace)?;
            let target = DependentWriter {
                api,
                name: &resource.name,
                params: PatchParams::apply(FIELD_MANAGER),
                writer: self,
                order,
            };
            let version = base.resource_version.as_str();
            match write.replicas {
                // Two writes: the remembered replicas must outlive whatever happens between them,
                // so their write is the first on the way down and the last on the way up. What is
                // left half done is mended after the next probe.
                Some(0) if !kind.replicas_in_spec => {
                    let version = target.patch(version, None).await?;
                    target.patch_scale(&version, 0).await
                }
                Some(replicas) if !kind.replicas_in_spec => {
                    let version = target.patch_scale(version, replicas).await?;
                    target.patch(&version, None).await
                }
                replicas => target.patch(version, replicas).await,
            }
        };
        let version = bounded(resource, order.limit, written).await?;
        Ok(Arc::new(order.change.after(version)))
    }

    fn api(
        &self,
        resource: &ResourceRef,
        namespace: &str,
    ) -> Result<(ScalableKind, Api<ScalableObject>), Refusal> {
        let view = self.seed.dependent(resource);
        let kind = view.as_ref().and_then(|view| view.kind());
        let kind = kind.ok_or(Refusal::SeedUnknown)?;
        Ok((kind.clone(), kind.api(&self.seed.client, namespace)))
    }
}

/// Bounds a request in time, and logs its failure.
async fn bounded<T>(
    resource: &ResourceRef,
    limit: Duration,
    request: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let result = timeout(limit, request).await;
    result
        .unwrap_or(Err(Refusal::Timeout))
        .inspect_err(|error| tracing::debug!(%resource, category = error.into_str(), %error, "request for a resource failed"))
}

struct DependentWriter<'a> {
    api: Api<ScalableObject>,
    name: &'a str,
    params: PatchParams,
    writer: &'a Writer,
    order: &'a Order,
}

impl DependentWriter<'_> {
    /// Patches annotations, and replicas where given; returns the new resourceVersion.
    async fn patch(&self, version: &str, replicas: Option<i32>) -> Result<String, Refusal> {
        let PlannedWrite { base, write } = &self.order.change;
        let patch = Patch::Merge(merge_patch(version, &base.marks, &write.marks, replicas));
        let request = self.api.patch(self.name, &self.params, &patch);
        let object = self.fenced(request).await?;
        Ok(object.resource_version().unwrap_or_default())
    }

    async fn patch_scale(&self, version: &str, replicas: i32) -> Result<String, Refusal> {
        let marks = &self.order.change.base.marks;
        let patch = Patch::Merge(merge_patch(version, marks, marks, Some(replicas)));
        let request = self.api.patch_scale(self.name, &self.params, &patch);
        let scale = self.fenced(request).await?;
        Ok(scale.metadata.resource_version.unwrap_or_default())
    }

    /// Makes a request as long as this process runs, and leads if the order needs that: one that
    /// still waits for a connection is dropped when that ends.
    async fn fenced<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Refusal> {
        let Writer {
            fence,
            suspend_detector,
            ..
        } = self.writer;
        let request = suspend_detector.run_unless_suspended(self.order.judged_at, request);
        let answer = if self.order.needs_lead {
            fence.while_open(request).await
        } else {
            Some(request.await)
        };
        let answer = answer.ok_or(Refusal::NotLeading)?;
        answer.ok_or(Refusal::Suspended)?.map_err(refusal)
    }
}

/// Annotations that do not change are not in it: a marker keeps its value.
fn merge_patch(version: &str, before: &Marks, after: &Marks, replicas: Option<i32>) -> Value {
    let mut patch = json!({ "metadata": { "resourceVersion": version } });
    if after.replicas != before.replicas {
        patch["metadata"]["annotations"][REPLICAS] = after.replicas.clone().into();
    }
    if after.held_down != before.held_down {
        patch["metadata"]["annotations"][MELTDOWN_PROTECTION_ACTIVE] =
            after.held_down.then_some("").into();
    }
    if let Some(replicas) = replicas {
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
        let (fence, clock) = (Fence::always_open(), crate::clock::Clock::start());
        let burst = NonZeroU32::new(burst).unwrap();
        Writer::new(seed(), qps, burst, fence, SuspendDetector::new(clock))
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
