//! Sends one DELETE.

use std::error::Error;
use std::time::Duration;

use common::leader_election::Fence;
use common::status_message::{StatusMessage, retry_after};
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client};
use strum::{IntoStaticStr, VariantNames};
use weeder_core::deletion::{Deletion, Outcome};

use crate::pod::Pod;

/// After this time without an answer a DELETE is given up and retried: it does no harm twice.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How a DELETE went, in one word from a fixed set, for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Answer {
    Deleted,
    /// 404.
    NotFound,
    /// 409: another pod has the name now.
    Replaced,
    /// 409: the pod is not as it was when it was judged.
    Changed,
    /// 429.
    Throttled(Option<Duration>),
    /// 401.
    Unauthorized,
    /// 409 for any other reason.
    Conflict,
    /// 5xx.
    Server,
    /// 403.
    Forbidden,
    /// Any other 4xx.
    Refused,
    /// No answer, or none that can be understood.
    NoAnswer,
    /// Nothing was sent.
    DryRun,
    /// This process does not lead at present: nothing was sent, or nobody waits for the answer any
    /// more.
    NotLeading,
}

impl Answer {
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Deleted | Self::DryRun => Outcome::Deleted,
            Self::NotFound | Self::Replaced => Outcome::Gone,
            Self::Changed => Outcome::Changed,
            Self::Throttled(wait) => Outcome::Later(wait),
            // A token that has run out is replaced by a fresh one a moment later.
            Self::Unauthorized | Self::Conflict => Outcome::Later(None),
            // An API server that fails, or has no time left, may have done it first.
            Self::Server | Self::NoAnswer | Self::NotLeading => Outcome::Unknown,
            Self::Forbidden | Self::Refused => Outcome::Refused,
        }
    }
}

/// Deletes a pod with its own grace period, if it is the one that was meant and as it was when it
/// was judged. Nothing is sent through a closed fence.
pub async fn delete(client: Client, fence: &Fence, deletion: &Deletion) -> Answer {
    let api: Api<Pod> = Api::namespaced(client, &deletion.pod.namespace);
    let preconditions = Preconditions {
        uid: Some(deletion.uid.clone()),
        resource_version: Some(deletion.resource_version.clone()),
    };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    // A DELETE may wait for a connection first, and must not be sent when the fence has closed
    // meanwhile.
    let request = tokio::time::timeout(TIMEOUT, api.delete(&deletion.pod.name, &params));
    let (answer, error): (Answer, Box<dyn Error>) = match fence.while_open(request).await {
        None => return Answer::NotLeading,
        Some(Ok(Ok(_))) => {
            let Deletion { pod, uid, .. } = deletion;
            tracing::info!(
                namespace = pod.namespace,
                pod = pod.name,
                uid,
                "crash-looping pod deleted"
            );
            return Answer::Deleted;
        }
        Some(Ok(Err(kube::Error::Api(status)))) => {
            (Answer::from(&*status), StatusMessage::of(&status).into())
        }
        Some(Ok(Err(error))) => (Answer::NoAnswer, error.into()),
        Some(Err(elapsed)) => (Answer::NoAnswer, elapsed.into()),
    };
    log(deletion, answer, &*error);
    answer
}

/// Says which pod would be deleted, and deletes nothing.
pub fn log_dry_run(deletion: &Deletion) -> Answer {
    let Deletion { pod, uid, .. } = deletion;
    tracing::info!(
        namespace = pod.namespace,
        pod = pod.name,
        uid,
        "dry run: crash-looping pod would be deleted"
    );
    Answer::DryRun
}

fn log(deletion: &Deletion, answer: Answer, error: &(dyn Error + 'static)) {
    let (namespace, pod, result) = (
        &deletion.pod.namespace,
        &deletion.pod.name,
        answer.into_str(),
    );
    match answer.outcome() {
        Outcome::Deleted | Outcome::Gone => {
            tracing::debug!(namespace, pod, result, "pod was gone already")
        }
        Outcome::Changed => tracing::debug!(
            namespace,
            pod,
            result,
            "pod has changed, it is looked at again"
        ),
        Outcome::Later(_) | Outcome::Unknown => {
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

impl From<&Status> for Answer {
    fn from(status: &Status) -> Self {
        match status.code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            // The API server says which precondition failed in words only.
            409 if status.message.contains("UID in precondition") => Self::Replaced,
            // "ResourceVersion in precondition" or "the ResourceVersion in the precondition", as
            // the storage or the layer above it says it.
            409 if status.message.contains("ResourceVersion in ") => Self::Changed,
            409 => Self::Conflict,
            429 => Self::Throttled(retry_after(status)),
            500.. => Self::Server,
            _ => Self::Refused,
        }
    }
}
