//! One write to one dependent, with the right of way for protection.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::leader_election::Fence;
use common::status_message::{StatusMessage, retry_after};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use prober_core::config::ResourceRef;
use prober_core::plan::Direction;
use prober_core::replicas::{MELTDOWN_PROTECTION_ACTIVE, Marks, Observed, PlannedWrite, REPLICAS};
use prober_core::retry::Refusal;
use prober_core::shoot::{Order, Reason};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::seed::dependent::{DependentView, Kind, Unavailable};
use crate::suspend_detector::SuspendDetector;

const PROTECTIVE_WRITES_IN_FLIGHT: usize = 32;
const FIELD_MANAGER: &str = "dependency-watchdog";

pub struct Writer {
    client: Client,
    limiter: DefaultDirectRateLimiter,
    protective: Arc<Semaphore>,
    fence: Fence,
    suspend_detector: SuspendDetector,
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// This process does not lead, or cannot be sure of it any more.
    #[error("this process does not lead")]
    NotLeading,
    /// This process was suspended since the probe that the write rests on (fault 26).
    #[error("this process stood still")]
    Suspended,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It does not exist, though it must.
    #[error("not found")]
    Missing,
    #[error("it was changed in the meantime (409)")]
    Conflict,
    #[error("the seed's API server asks to come back later (429)")]
    Throttled(Option<Duration>),
    /// 401 or 403: a right is missing, or an admission webhook or policy refuses.
    #[error("access is denied ({code}): {said}")]
    Denied { code: u16, said: StatusMessage },
    #[error("the seed's API server answered {code}: {said}")]
    Status { code: u16, said: StatusMessage },
    #[error("not done within its timeout: deadline exceeded")]
    Timeout,
    #[error("no answer from the seed's API server: {0}")]
    NoAnswer(kube::Error),
}

impl WriteError {
    /// Why a dependent was not scaled; `refused` is how the last request for it ended.
    pub fn not_scaled(reason: Reason, resource: &ResourceRef, refused: Option<Self>) -> Self {
        match reason {
            Reason::Missing => Self::Missing,
            Reason::Unknown => Self::Unavailable(Unavailable::Unknown),
            Reason::NoSuchKind => Self::Unavailable(Unavailable::NoSuchKind(resource.clone())),
            Reason::Refused => refused.unwrap_or(Self::Timeout),
        }
    }

    pub const fn category(&self) -> &'static str {
        self.classes().0
    }

    pub const fn refusal(&self) -> Refusal {
        self.classes().1
    }

    /// What metrics and logs call it, and what it means for the next try.
    const fn classes(&self) -> (&'static str, Refusal) {
        match self {
            Self::NotLeading => ("not_leading", Refusal::Other),
            Self::Suspended => ("stood_still", Refusal::Superseded),
            Self::Unavailable(Unavailable::NoSuchKind(_)) => ("no_such_kind", Refusal::Other),
            Self::Unavailable(Unavailable::Unknown) => ("seed_unknown", Refusal::Other),
            Self::Missing => ("not_found", Refusal::Gone),
            Self::Conflict => ("conflict", Refusal::Conflict),
            Self::Throttled(after) => ("throttled", Refusal::Throttled(*after)),
            Self::Denied { .. } => ("forbidden", Refusal::Other),
            Self::Status { code: 500.., .. } => ("server", Refusal::Other),
            Self::Status { .. } => ("status", Refusal::Other),
            Self::Timeout => ("timeout", Refusal::Timeout),
            Self::NoAnswer(_) => ("no_answer", Refusal::NoAnswer),
        }
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::NoAnswer(error);
        };
        match status.code {
            404 => Self::Missing,
            409 => Self::Conflict,
            429 => Self::Throttled(retry_after(&status)),
            code @ (401 | 403) => Self::Denied {
                code,
                said: StatusMessage::of(&status),
            },
            code => Self::Status {
                code,
                said: StatusMessage::of(&status),
            },
        }
    }
}

impl Writer {
    /// Writes with at most `qps` requests a second after a burst of `burst`; protection is exempt.
    /// Nothing is sent while the fence is closed, or after a suspension.
    pub fn new(
        client: Client,
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
            client,
            limiter: RateLimiter::direct(quota),
            protective: Arc::new(Semaphore::new(PROTECTIVE_WRITES_IN_FLIGHT)),
            fence,
            suspend_detector,
        }
    }

    /// Reads a dependent from the API server itself; none when it does not exist.
    pub async fn read(
        &self,
        dependent: &DependentView,
        namespace: &str,
    ) -> Result<Option<Observed>, WriteError> {
        let kind = dependent.kind()?;
        let api = kind.api(&self.client, namespace);
        let name = &dependent.resource.name;
        let Some(object) = api.get_opt(name).await? else {
            return Ok(None);
        };
        let replicas = match kind.replicas_in_spec {
            true => None,
            false => Some(
                api.get_scale(name)
                    .await?
                    .spec
                    .and_then(|spec| spec.replicas)
                    .unwrap_or(0),
            ),
        };
        Ok(Some(kind.observe(&object, replicas)))
    }

    /// Waits until a write in this direction may be made. To be awaited before that write is
    /// decided on, since it may take long; what it returns is to be kept until the write is
    /// answered.
    pub async fn permit(&self, direction: Direction) -> Option<OwnedSemaphorePermit> {
        match direction {
            Direction::Down => Arc::clone(&self.protective).acquire_owned().await.ok(),
            Direction::Up => {
                self.limiter.until_ready().await;
                None
            }
        }
    }

    /// Makes one change, provided that the dependent is still as observed. Returns how it is then.
    /// On an error it may have been made in part: what was observed is then out of date.
    pub async fn write(
        &self,
        dependent: &DependentView,
        namespace: &str,
        order: &Order,
    ) -> Result<Observed, WriteError> {
        let PlannedWrite { base, write } = &order.change;
        let kind = dependent.kind()?;
        let target = Target {
            api: kind.api(&self.client, namespace),
            name: &dependent.resource.name,
            writer: self,
            order,
        };
        let version = base.resource_version.as_str();
        let version = match (kind, write.replicas) {
            (
                Kind {
                    replicas_in_spec: true,
                    ..
                },
                replicas,
            )
            | (_, replicas @ None) => target.patch(version, replicas).await?,
            // Two writes: the memory must outlive whatever happens between them, so it is the first
            // of the two on the way down and the last on the way up. What is left half done is
            // mended after the next probe.
            (_, Some(0)) => {
                let version = target.patch(version, None).await?;
                target.patch_scale(&version, 0).await?
            }
            (_, Some(replicas)) => {
                let version = target.patch_scale(version, replicas).await?;
                target.patch(&version, None).await?
            }
        };
        Ok(order.change.after(version))
    }
}

struct Target<'a> {
    api: Api<DynamicObject>,
    name: &'a str,
    writer: &'a Writer,
    order: &'a Order,
}

impl Target<'_> {
    /// Patches annotations, and replicas where given; returns the new resourceVersion.
    async fn patch(&self, version: &str, replicas: Option<i32>) -> Result<String, WriteError> {
        let PlannedWrite { base, write } = &self.order.change;
        let patch = merge_patch(version, &base.marks, &write.marks, replicas);
        let object = self
            .fenced(self.api.patch(
                self.name,
                &PatchParams::apply(FIELD_MANAGER),
                &Patch::Merge(&patch),
            ))
            .await?;
        Ok(object.metadata.resource_version.unwrap_or_default())
    }

    async fn patch_scale(&self, version: &str, replicas: i32) -> Result<String, WriteError> {
        let patch =
            json!({ "metadata": { "resourceVersion": version }, "spec": { "replicas": replicas } });
        let scale = self
            .fenced(self.api.patch_scale(
                self.name,
                &PatchParams::apply(FIELD_MANAGER),
                &Patch::Merge(&patch),
            ))
            .await?;
        Ok(scale.metadata.resource_version.unwrap_or_default())
    }

    /// Makes a request as long as this process runs, and leads if the order needs that: also one
    /// that waits for a connection is given up when that ends.
    async fn fenced<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        let Writer {
            fence,
            suspend_detector,
            ..
        } = self.writer;
        let request = suspend_detector.run_unless_suspended(self.order.judged_at, request);
        let answer = match self.order.needs_lead {
            true => fence
                .while_open(request)
                .await
                .ok_or(WriteError::NotLeading)?,
            false => request.await,
        };
        Ok(answer.ok_or(WriteError::Suspended)??)
    }
}

/// What of the annotations does not change is not in it: a marker keeps its value.
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
