//! Sends one DELETE.

use std::error::Error;
use std::time::Duration;

use common::leader_election::Fence;
use common::status_message::{StatusMessage, retry_after};
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client};
use strum::{IntoStaticStr, VariantNames};
use tokio::time::timeout;
use weeder_core::deletion::{Deletion, Outcome};

use crate::pod::PrunedPod;

/// A DELETE without an answer is given up after this time and retried: it does no harm twice.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How a DELETE ended, in one word from a fixed set for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum DeleteResult {
    Deleted,
    /// Answered with 404.
    NotFound,
    /// 409: another pod has the name now.
    Replaced,
    /// 409: the pod has changed since it was judged.
    Changed,
    /// Answered with 429.
    Throttled(Option<Duration>),
    /// Answered with 401.
    Unauthorized,
    /// 409 for any other reason.
    Conflict,
    /// Answered with 5xx.
    Server,
    /// Answered with 403.
    Forbidden,
    /// Any other 4xx.
    Refused,
    /// No answer, or none that can be decoded.
    NoAnswer,
    /// Nothing was sent.
    DryRun,
    /// This process does not lead: nothing was sent, or it stopped leading before the answer.
    NotLeading,
}

impl DeleteResult {
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Deleted | Self::DryRun => Outcome::Deleted,
            Self::NotFound | Self::Replaced => Outcome::Gone,
            Self::Changed => Outcome::Changed,
            Self::Throttled(wait) => Outcome::Retry(wait),
            // An expired token is replaced by a fresh one a moment later.
            Self::Unauthorized | Self::Conflict => Outcome::Retry(None),
            // An API server may have deleted the pod before it failed.
            Self::Server | Self::NoAnswer | Self::NotLeading => Outcome::Unknown,
            Self::Forbidden | Self::Refused => Outcome::Refused,
        }
    }
}

/// Deletes a pod with its own grace period, if it is the one that was judged and has not changed
/// since. Nothing is sent through a closed fence.
pub async fn delete(client: Client, fence: &Fence, deletion: &Deletion) -> DeleteResult {
    let api: Api<PrunedPod> = Api::namespaced(client, &deletion.pod.namespace);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(deletion.uid.clone()),
        resource_version: Some(deletion.resource_version.clone()),
    });
    // A DELETE may wait for a connection first, and must not be sent when the fence has closed
    // meanwhile.
    let request = timeout(TIMEOUT, api.delete(&deletion.pod.name, &params));
    let (result, error): (DeleteResult, Box<dyn Error>) = match fence.while_open(request).await {
        None => return DeleteResult::NotLeading,
        Some(Ok(Ok(_))) => {
            let Deletion { pod, uid, .. } = deletion;
            let (namespace, pod) = (&pod.namespace, &pod.name);
            tracing::info!(namespace, pod, uid, "crash-looping pod deleted");
            return DeleteResult::Deleted;
        }
        Some(Ok(Err(kube::Error::Api(status)))) => (
            DeleteResult::from(&*status),
            StatusMessage::of(&status).into(),
        ),
        Some(Ok(Err(error))) => (DeleteResult::NoAnswer, error.into()),
        Some(Err(elapsed)) => (DeleteResult::NoAnswer, elapsed.into()),
    };
    log(deletion, result, &*error);
    result
}

/// Logs which pod would be deleted.
pub(crate) fn log_dry_run(deletion: &Deletion) -> DeleteResult {
    let Deletion { pod, uid, .. } = deletion;
    let (namespace, pod) = (&pod.namespace, &pod.name);
    tracing::info!(
        namespace,
        pod,
        uid,
        "dry run: crash-looping pod would be deleted"
    );
    DeleteResult::DryRun
}

fn log(deletion: &Deletion, result: DeleteResult, error: &(dyn Error + 'static)) {
    let (namespace, pod) = (&deletion.pod.namespace, &deletion.pod.name);
    let (outcome, result) = (result.outcome(), result.into_str());
    match outcome {
        Outcome::Deleted | Outcome::Gone => {
            tracing::debug!(namespace, pod, result, "pod was gone already")
        }
        Outcome::Changed => tracing::debug!(
            namespace,
            pod,
            result,
            "pod has changed, it is judged again"
        ),
        Outcome::Retry(_) | Outcome::Unknown => {
            tracing::warn!(
                namespace,
                pod,
                result,
                error,
                "pod could not be deleted, trying again"
            )
        }
        Outcome::Refused => {
            tracing::error!(namespace, pod, result, error, "pod could not be deleted")
        }
    }
}

impl From<&Status> for DeleteResult {
    fn from(status: &Status) -> Self {
        match status.code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            // The API server says which precondition failed in words only: "the UID in the
            // precondition", or "UID in precondition" where the storage finds it, later.
            409 if status.message.contains("UID in ") => Self::Replaced,
            409 if status.message.contains("ResourceVersion in ") => Self::Changed,
            409 => Self::Conflict,
            429 => Self::Throttled(retry_after(status)),
            500.. => Self::Server,
            _ => Self::Refused,
        }
    }
}
