//! Rights of this process, as the API server says it.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Right to do something with all objects of a kind, or with those of a name, in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: &'static str,
    pub group: String,
    pub resource: String,
    /// Object, if it is about that one only.
    pub name: Option<String>,
}

impl fmt::Display for Right {
    /// As in `patch deployments.apps kube-controller-manager`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.name {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

/// Asks whether this process has a right in all namespaces; `None` if that cannot be found out.
pub async fn allowed_everywhere(client: &Client, right: &Right) -> Option<bool> {
    let attributes = ResourceAttributes {
        verb: Some(right.verb.to_owned()),
        group: Some(right.group.clone()),
        resource: Some(right.resource.clone()),
        name: right.name.clone(),
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
