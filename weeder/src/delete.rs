//! Sends one DELETE.

use std::time::Duration;

use common::api_failure::{ApiFailure, Retry};
use common::leader_election::Election;
use common::logging::with_causes;
use common::view::Key;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use tokio::time::timeout;
use weeder_core::deletion::{Deletion, Outcome};

use crate::pod::PrunedPod;

/// A DELETE without an answer is given up after this time and retried: it does no harm twice.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Results of a DELETE that is no failure.
pub(crate) const RESULTS: [&str; 5] = ["deleted", "replaced", "changed", "dry_run", "not_leading"];

/// Deletes a pod with its own grace period, if it is the one that was judged and has not changed
/// since. Nothing is sent in a dry run, or unless this process leads.
///
/// Returns the outcome, and in one word for logs and metrics the result: one of [`RESULTS`] or an
/// [`ApiFailure`].
pub async fn delete(
    client: Client,
    election: &Election,
    deletion: &Deletion,
) -> (Outcome, &'static str) {
    let Key {
        namespace,
        name: pod,
    } = &deletion.pod;
    let (uid, because) = (&deletion.uid, deletion.because());
    if election.is_dry_run() {
        tracing::info!(
            namespace,
            pod,
            uid,
            because,
            "dry run: crash-looping pod would be deleted"
        );
        return (Outcome::Deleted, "dry_run");
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
        None => (Outcome::Unknown, "not_leading"),
        Some(Ok(_)) => {
            tracing::info!(namespace, pod, uid, because, "crash-looping pod deleted");
            (Outcome::Deleted, "deleted")
        }
        Some(Err(error)) => {
            let (failure, error) = (ApiFailure::from(&error), with_causes(&error));
            let (outcome, result) = classify(failure, &error);
            match outcome {
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
            (outcome, result)
        }
    }
}

/// Classifies a failure. The API server says which precondition failed in words only: "the UID in
/// the precondition", or "UID in precondition" where the storage finds it, later.
fn classify(failure: ApiFailure, words: &str) -> (Outcome, &'static str) {
    let outcome = match failure {
        ApiFailure::Conflict if words.contains("UID in ") => return (Outcome::Gone, "replaced"),
        ApiFailure::Conflict if words.contains("ResourceVersion in ") => {
            return (Outcome::Changed, "changed");
        }
        ApiFailure::NotFound => Outcome::Gone,
        failure => match failure.retry() {
            Retry::Later(wait) => Outcome::Retry(wait),
            Retry::Unknown => Outcome::Unknown,
            Retry::Never => Outcome::Refused,
        },
    };
    (outcome, failure.into_str())
}
