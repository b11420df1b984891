//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use common::transport::{Server, Unusable, current};
use kube::config::{AuthInfo, Cluster, Kubeconfig};

/// Never contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("the Secret has no key \"kubeconfig\", or it is empty")]
    Missing,
    /// A field that would let the Secret's author act here, and how.
    #[error("{0} is refused: {1}")]
    Refused(&'static str, &'static str),
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

use KubeconfigError::{Missing, Refused};

/// The API server of a shoot. What is refused is refused before anything else is done with it.
pub fn shoot_server(kubeconfig: &[u8]) -> Result<Server, KubeconfigError> {
    if kubeconfig.trim_ascii().is_empty() {
        return Err(Missing);
    }
    let text = str::from_utf8(kubeconfig);
    let text = text.map_err(|_| Unusable::new("it", "is not UTF-8 text"))?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(Unusable::from)?;
    let (cluster, user) = current(&kubeconfig);
    refuse(
        cluster.unwrap_or(&Cluster::default()),
        user.unwrap_or(&AuthInfo::default()),
    )?;
    let server = Server::of(kubeconfig, &["https"])?;
    if server.config.root_cert.is_none() {
        return Err(Unusable::new("cluster.certificate-authority-data", "is missing").into());
    }
    let user = &server.config.auth_info;
    let has_password = user.username.is_some() && user.password.is_some();
    if user.token.is_none() && !has_password && user.client_certificate_data.is_none() {
        let problem = "is missing, and so are a client certificate and a username";
        return Err(Unusable::new("user.token", problem).into());
    }
    Ok(server)
}

fn refuse(cluster: &Cluster, user: &AuthInfo) -> Result<(), KubeconfigError> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    let names = |path: &Option<String>| path.as_ref().is_some_and(|path| !path.is_empty());
    let fields = [
        (user.exec.is_some(), "user.exec", PROGRAM),
        (user.auth_provider.is_some(), "user.auth-provider", PROGRAM),
        (names(&user.token_file), "user.tokenFile", FILE),
        (
            names(&user.client_certificate),
            "user.client-certificate",
            FILE,
        ),
        (names(&user.client_key), "user.client-key", FILE),
        (
            names(&cluster.certificate_authority),
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
