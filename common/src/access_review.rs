//! What this process may do, as the API server says it.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks whether this process may do something with a resource of the core group in all namespaces.
/// `None`: not known.
pub async fn allowed_everywhere(client: &Client, verb: &str, resource: &str) -> Option<bool> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = timeout(TIMEOUT, api.create(&PostParams::default(), &review)).await;
    let review = answer.ok()?.ok()?;
    Some(review.status.is_some_and(|status| status.allowed))
}
