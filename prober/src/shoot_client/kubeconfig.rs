//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use common::transport::{Server, Unusable};
use kube::config::Kubeconfig;

/// The API server of a shoot. What is refused is refused before anything else is done with it, also
/// in a context that is not the current one.
pub fn shoot_server(kubeconfig: &[u8]) -> Result<Server, Unusable> {
    if kubeconfig.is_empty() {
        return Err(Unusable::new(
            "the Secret has no key \"kubeconfig\", or it is empty",
        ));
    }
    let text = str::from_utf8(kubeconfig).map_err(|_| Unusable::new("it is not UTF-8 text"))?;
    let kubeconfig = Kubeconfig::from_yaml(text)?;
    refuse(&kubeconfig)?;
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

fn refuse(kubeconfig: &Kubeconfig) -> Result<(), Unusable> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    const ANYONE: &str = "anyone on the way could take the credentials and forge an outage";
    let users = kubeconfig.auth_infos.iter();
    let of_users = users.filter_map(|named| named.auth_info.as_ref());
    let of_users = of_users.flat_map(|user| {
        [
            (user.exec.is_some(), "user.exec", PROGRAM),
            (user.auth_provider.is_some(), "user.auth-provider", PROGRAM),
            (user.token_file.is_some(), "user.tokenFile", FILE),
            (
                user.client_certificate.is_some(),
                "user.client-certificate",
                FILE,
            ),
            (user.client_key.is_some(), "user.client-key", FILE),
        ]
    });
    let clusters = kubeconfig.clusters.iter();
    let of_clusters = clusters.filter_map(|named| named.cluster.as_ref());
    let of_clusters = of_clusters.flat_map(|cluster| {
        let authority = cluster.certificate_authority.is_some();
        let trusts_anyone = cluster.insecure_skip_tls_verify == Some(true);
        [
            (authority, "cluster.certificate-authority", FILE),
            (trusts_anyone, "cluster.insecure-skip-tls-verify", ANYONE),
        ]
    });
    match of_users.chain(of_clusters).find(|(is_set, ..)| *is_set) {
        Some((_, field, why)) => Err(Unusable::new(format!("{field} is refused: {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
