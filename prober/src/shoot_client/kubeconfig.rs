//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use common::transport::kubeconfig::{self, CurrentContext, Document, Field};
use common::transport::{ServerAccess, authorization};
use http::header::AUTHORIZATION;
use kube::config::{AuthInfo, Cluster};

/// Never contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("the Secret has no key \"kubeconfig\", or it is empty")]
    Missing,
    /// A field that would let the Secret's author act here, and how.
    #[error("{0} is refused: {1}")]
    Refused(&'static str, &'static str),
    #[error(transparent)]
    Unusable(#[from] kubeconfig::KubeconfigError),
}

use KubeconfigError::{Missing, Refused};

/// The way to a shoot's API server, and the headers of each request to it.
pub fn shoot_access(kubeconfig: &[u8]) -> Result<ServerAccess, KubeconfigError> {
    let documents = Document::parse(kubeconfig, None)?;
    if documents.is_empty() {
        return Err(Missing);
    }
    let context = CurrentContext::of(&documents)?;
    let user = context.user.as_ref().ok_or_else(|| {
        let field = Field::named("context.user");
        field.error("is missing")
    })?;
    refuse(&context.cluster.value, &user.value)?;
    let mut access = context.access(&["https"])?;
    match authorization(user)? {
        Some(header) => {
            access.headers.insert(AUTHORIZATION, header);
        }
        None if access.identity.is_none() => {
            let problem = "is missing, and so are a client certificate and a username";
            return Err(user.field("token").error(problem).into());
        }
        None => {}
    }
    Ok(access)
}

fn refuse(cluster: &Cluster, user: &AuthInfo) -> Result<(), KubeconfigError> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    let fields = [
        (user.exec.is_some(), "user.exec", PROGRAM),
        (user.auth_provider.is_some(), "user.auth-provider", PROGRAM),
        (user.token_file.is_some(), "user.tokenFile", FILE),
        (
            user.client_certificate.is_some(),
            "user.client-certificate",
            FILE,
        ),
        (user.client_key.is_some(), "user.client-key", FILE),
        (
            cluster.certificate_authority.is_some(),
            "cluster.certificate-authority",
            FILE,
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "cluster.insecure-skip-tls-verify",
            "anyone on the way could take the credentials and forge an outage",
        ),
    ];
    match fields.into_iter().find(|(is_set, ..)| *is_set) {
        Some((_, field, why)) => Err(Refused(field, why)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
