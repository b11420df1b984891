//! Sends one DELETE.

use std::time::Duration;

use common::api_failure::{ApiFailure, Retry};
use common::leader_election::Election;
use common::logging::with_causes;
use common::view::Key;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use strum::{IntoStaticStr, VariantNames};
use tokio::time::timeout;
use weeder_core::deletion::{Deletion, Outcome};

use crate::pod::PrunedPod;

/// A DELETE without an answer is given up after this time and retried: it does no harm twice.
const TIMEOUT: Duration = Duration::from_secs(10);

pub type DeleteResult = Result<Settled, ApiFailure>;

/// End of a DELETE that is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Settled {
    Deleted,
    /// 409: another pod has the name now.
    Replaced,
    /// 409: the pod has changed since it was judged.
    Changed,
    /// Nothing was sent.
    DryRun,
    /// This process does not lead: nothing was sent, or it stopped leading before the answer.
    NotLeading,
}

pub(crate) const fn outcome(result: DeleteResult) -> Outcome {
    match result {
        Ok(Settled::Deleted | Settled::DryRun) => Outcome::Deleted,
        Ok(Settled::Replaced) | Err(ApiFailure::NotFound) => Outcome::Gone,
        Ok(Settled::Changed) => Outcome::Changed,
        Ok(Settled::NotLeading) => Outcome::Unknown,
        Err(failure) => match failure.retry() {
            Retry::Later(wait) => Outcome::Retry(wait),
            Retry::Unknown => Outcome::Unknown,
            Retry::Never => Outcome::Refused,
        },
    }
}

/// One word from a fixed set, for logs and metrics.
pub(crate) const fn word(result: DeleteResult) -> &'static str {
    match result {
        Ok(settled) => settled.into_str(),
        Err(failure) => failure.into_str(),
    }
}

/// Deletes a pod with its own grace period, if it is the one that was judged and has not changed
/// since. Nothing is sent in a dry run, or unless this process leads.
pub async fn delete(client: Client, election: &Election, deletion: &Deletion) -> DeleteResult {
    let Deletion { pod, uid, .. } = deletion;
    let (
        Key {
            namespace,
            name: pod,
        },
        because,
    ) = (pod, deletion.because());
    if election.is_dry_run() {
        tracing::info!(
            namespace,
            pod,
            uid,
            because,
            "dry run: crash-looping pod would be deleted"
        );
        return Ok(Settled::DryRun);
    }
    let api: Api<PrunedPod> = Api::namespaced(client, namespace);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid.clone()),
        resource_version: Some(deletion.resource_version.clone()),
    });
    let request = async {
        let answer = timeout(TIMEOUT, api.delete(pod, &params)).await;
        answer.unwrap_or_else(|elapsed| Err(kube::Error::Service(elapsed.into())))
    };
    // A DELETE may wait for a connection first, and must not be sent when leadership was lost
    // meanwhile.
    match election.while_leading(request).await {
        None => Ok(Settled::NotLeading),
        Some(Ok(_)) => {
            tracing::info!(namespace, pod, uid, because, "crash-looping pod deleted");
            Ok(Settled::Deleted)
        }
        Some(Err(error)) => failed(deletion, &error),
    }
}

/// Classifies and logs an error.
fn failed(deletion: &Deletion, error: &kube::Error) -> DeleteResult {
    let error_text = with_causes(error);
    // The API server says which precondition failed in words only: "the UID in the precondition",
    // or "UID in precondition" where the storage finds it, later.
    let answer = match ApiFailure::from(error) {
        ApiFailure::Conflict if error_text.contains("UID in ") => Ok(Settled::Replaced),
        ApiFailure::Conflict if error_text.contains("ResourceVersion in ") => Ok(Settled::Changed),
        failure => Err(failure),
    };
    let Key {
        namespace,
        name: pod,
    } = &deletion.pod;
    let (result, error) = (word(answer), error_text);
    match outcome(answer) {
        Outcome::Retry(_) | Outcome::Unknown => {
            tracing::warn!(
                namespace,
                pod,
                result,
                error,
                "pod could not be deleted, trying again"
            );
        }
        Outcome::Refused => {
            tracing::error!(namespace, pod, result, error, "pod could not be deleted");
        }
        _ => tracing::debug!(namespace, pod, result, "pod is gone or has changed"),
    }
    answer
}
