//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use common::transport::{Server, Unusable, current};
use kube::config::{AuthInfo, Cluster, Kubeconfig};

/// The API server of a shoot. What is refused is refused before anything else is done with it.
pub fn shoot_server(kubeconfig: &[u8]) -> Result<Server, Unusable> {
    if kubeconfig.is_empty() {
        return Err(Unusable::new(
            "the Secret has no key \"kubeconfig\", or it is empty",
        ));
    }
    let text = str::from_utf8(kubeconfig).map_err(|_| Unusable::new("it is not UTF-8 text"))?;
    let kubeconfig = Kubeconfig::from_yaml(text)?;
    let (cluster, user) = current(&kubeconfig);
    refuse(
        cluster.unwrap_or(&Cluster::default()),
        user.unwrap_or(&AuthInfo::default()),
    )?;
    let server = Server::of(kubeconfig)?;
    let config = &server.config;
    if config.cluster_url.scheme_str() != Some("https") {
        return Err(Unusable::new("cluster.server must begin with https://"));
    }
    if config.root_cert.as_ref().is_none_or(Vec::is_empty) {
        return Err(Unusable::new(
            "cluster.certificate-authority-data is missing, or holds no certificate in PEM",
        ));
    }
    let user = &config.auth_info;
    let has_password = user.username.is_some() && user.password.is_some();
    if user.token.is_none() && !has_password && user.client_certificate_data.is_none() {
        return Err(Unusable::new(
            "user.token is missing, and so are a client certificate and a username",
        ));
    }
    Ok(server)
}

fn refuse(cluster: &Cluster, user: &AuthInfo) -> Result<(), Unusable> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    const ANYONE: &str = "anyone on the way could take the credentials and forge an outage";
    let authority = cluster.certificate_authority.is_some();
    let trusts_anyone = cluster.insecure_skip_tls_verify == Some(true);
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
        (authority, "cluster.certificate-authority", FILE),
        (trusts_anyone, "cluster.insecure-skip-tls-verify", ANYONE),
    ];
    match fields.into_iter().find(|(is_set, ..)| *is_set) {
        Some((_, field, why)) => Err(Unusable::new(format!("{field} is refused: {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
