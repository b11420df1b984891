//! Kubeconfigs out of Secrets.

use anyhow::{Result, ensure};
use common::transport::Server;
use prober::shoot_client::kubeconfig::shoot_server;
use serde_json::Value;

use crate::is_one_line;

const SECRETS: [&str; 4] = [
    "token",
    "password",
    "client-key-data",
    "client-certificate-data",
];
/// A shorter secret may be a word of the message by chance.
const SHORTEST_SECRET: usize = 12;

/// One that is taken is encrypted and verified, and neither runs nor reads anything here; no
/// refusal repeats a secret.
pub fn check(bytes: &[u8]) -> Result<()> {
    let refusal = match shoot_server(bytes) {
        Ok(server) => return is_safe(&server),
        Err(refusal) => refusal.to_string(),
    };
    is_one_line(&refusal)?;
    let text = String::from_utf8_lossy(bytes);
    let parsed: Value = serde_saphyr::from_str(&text).unwrap_or_default();
    for user in parsed["users"].as_array().into_iter().flatten() {
        let secrets = SECRETS.map(|name| user["user"][name].as_str());
        for secret in secrets.into_iter().flatten() {
            let is_repeated = secret.len() >= SHORTEST_SECRET && refusal.contains(secret);
            ensure!(!is_repeated, "{refusal}");
        }
    }
    Ok(())
}

fn is_safe(Server { config, proxy }: &Server) -> Result<()> {
    let url = &config.cluster_url;
    ensure!(url.scheme_str() == Some("https"));
    ensure!(url.host().is_some_and(|host| !host.is_empty()));
    ensure!(!config.accept_invalid_certs);
    let authority = config.root_cert.as_ref();
    ensure!(authority.is_some_and(|certificates| !certificates.is_empty()));
    let proxy = proxy.as_ref().map(|proxy| proxy.uri().scheme_str());
    ensure!(proxy.is_none_or(|scheme| scheme == Some("http")));
    let user = &config.auth_info;
    let files = [&user.token_file, &user.client_certificate, &user.client_key];
    ensure!(files.into_iter().flatten().all(String::is_empty));
    ensure!(user.exec.is_none() && user.auth_provider.is_none());
    Ok(())
}
