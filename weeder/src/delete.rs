//! Sends one DELETE.

use std::error::Error;
use std::time::Duration;

use common::api_failure::{ApiFailure, Retry};
use common::leader_election::Election;
use common::logging::with_causes;
use common::status_message::StatusMessage;
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client};
use strum::VariantNames;
use tokio::time::timeout;
use weeder_core::deletion::{Deletion, Outcome};

use crate::pod::PrunedPod;

/// A DELETE without an answer is given up after this time and retried: it does no harm twice.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteResult {
    Deleted,
    /// 409: another pod has the name now.
    Replaced,
    /// 409: the pod has changed since it was judged.
    Changed,
    Failed(ApiFailure),
    /// Nothing was sent.
    DryRun,
    /// This process does not lead: nothing was sent, or it stopped leading before the answer.
    NotLeading,
}

impl DeleteResult {
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Deleted | Self::DryRun => Outcome::Deleted,
            Self::Failed(ApiFailure::NotFound) | Self::Replaced => Outcome::Gone,
            Self::Changed => Outcome::Changed,
            Self::NotLeading => Outcome::Unknown,
            Self::Failed(failure) => match failure.retry() {
                Retry::Later(wait) => Outcome::Retry(wait),
                Retry::Unknown => Outcome::Unknown,
                Retry::Never => Outcome::Refused,
            },
        }
    }

    /// One word from a fixed set, for logs and metrics.
    pub const fn into_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
            Self::Changed => "changed",
            Self::Failed(failure) => failure.into_str(),
            Self::DryRun => "dry_run",
            Self::NotLeading => "not_leading",
        }
    }

    /// All those words.
    pub fn words() -> Vec<&'static str> {
        let own = [
            Self::Deleted,
            Self::Replaced,
            Self::Changed,
            Self::DryRun,
            Self::NotLeading,
        ];
        let own = own.map(Self::into_str).into_iter();
        own.chain(ApiFailure::VARIANTS.iter().copied()).collect()
    }
}

/// Deletes a pod with its own grace period, if it is the one that was judged and has not changed
/// since. Nothing is sent unless this process leads.
pub async fn delete(client: Client, election: &Election, deletion: &Deletion) -> DeleteResult {
    let api: Api<PrunedPod> = Api::namespaced(client, &deletion.pod.namespace);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(deletion.uid.clone()),
        resource_version: Some(deletion.resource_version.clone()),
    });
    // A DELETE may wait for a connection first, and must not be sent when leadership was lost
    // meanwhile.
    let request = timeout(TIMEOUT, api.delete(&deletion.pod.name, &params));
    let (result, error): (DeleteResult, Box<dyn Error>) =
        match election.while_leading(request).await {
            None => return DeleteResult::NotLeading,
            Some(Ok(Ok(_))) => {
                let Deletion { pod, uid, .. } = deletion;
                let (namespace, pod, because) = (&pod.namespace, &pod.name, deletion.because());
                tracing::info!(namespace, pod, uid, because, "crash-looping pod deleted");
                return DeleteResult::Deleted;
            }
            Some(Ok(Err(kube::Error::Api(status)))) => (
                DeleteResult::from(&*status),
                StatusMessage::of(&status).into(),
            ),
            Some(Ok(Err(error))) => (DeleteResult::Failed(ApiFailure::NoAnswer), error.into()),
            Some(Err(elapsed)) => (DeleteResult::Failed(ApiFailure::NoAnswer), elapsed.into()),
        };
    log(deletion, result, &*error);
    result
}

/// Logs which pod would be deleted.
pub(crate) fn log_dry_run(deletion: &Deletion) -> DeleteResult {
    let Deletion { pod, uid, .. } = deletion;
    let (namespace, pod, because) = (&pod.namespace, &pod.name, deletion.because());
    tracing::info!(
        namespace,
        pod,
        uid,
        because,
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
                error = with_causes(error),
                "pod could not be deleted, trying again"
            )
        }
        Outcome::Refused => {
            tracing::error!(
                namespace,
                pod,
                result,
                error = with_causes(error),
                "pod could not be deleted"
            )
        }
    }
}

impl From<&Status> for DeleteResult {
    fn from(status: &Status) -> Self {
        match ApiFailure::from(status) {
            // The API server says which precondition failed in words only: "the UID in the
            // precondition", or "UID in precondition" where the storage finds it, later.
            ApiFailure::Conflict if status.message.contains("UID in ") => Self::Replaced,
            ApiFailure::Conflict if status.message.contains("ResourceVersion in ") => Self::Changed,
            failure => Self::Failed(failure),
        }
    }
}
