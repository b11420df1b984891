//! Kubeconfigs out of Secrets, which must neither run nor read anything here. Go is not asked: its
//! client library takes most of what is refused here.

use std::sync::LazyLock;

use anyhow::{Result, ensure};
use common::transport::Server;
use prober::shoot_client::kubeconfig::shoot_server;
use serde_json::{Value, json};

use crate::yaml::template;
use crate::{Choices, ReaderInput, in_yaml, is_one_line};

/// A kubeconfig.
#[derive(Debug)]
pub enum Kubeconfig {
    /// As it stands.
    Bytes(Vec<u8>),
    /// Its context, its cluster and its user.
    Parts(Value),
}

/// Fields that would run something here, read a file here, or trust anybody.
const ACTS: [&str; 7] = [
    "insecure-skip-tls-verify",
    "certificate-authority",
    "tokenFile",
    "client-certificate",
    "client-key",
    "exec",
    "auth-provider",
];

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/kubeconfig.yaml")));

impl ReaderInput for Kubeconfig {
    fn make(source: &mut Choices<'_>) -> Self {
        match source.raw() {
            Some(bytes) => Self::Bytes(bytes.to_owned()),
            None => Self::Parts(source.filled(&TEMPLATE)),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Parts(parts) => follows(parts),
            Self::Bytes(bytes) => match shoot_server(bytes) {
                Ok(server) => is_safe(&server),
                Err(refusal) => is_one_line(&refusal.to_string()),
            },
        }
    }
}

/// What comes of a kubeconfig is encrypted, and neither runs nor reads anything.
fn is_safe(Server { config, proxy }: &Server) -> Result<()> {
    ensure!(config.cluster_url.scheme_str() == Some("https"));
    ensure!(
        config
            .cluster_url
            .host()
            .is_some_and(|host| !host.is_empty())
    );
    ensure!(!config.accept_invalid_certs);
    ensure!(
        config
            .root_cert
            .as_ref()
            .is_some_and(|certificates| !certificates.is_empty())
    );
    let proxy = proxy.as_ref().map(|proxy| proxy.uri().scheme_str());
    ensure!(proxy.is_none_or(|scheme| scheme == Some("http")));
    let user = &config.auth_info;
    let acts = [&user.token_file, &user.client_certificate, &user.client_key];
    let acts = acts.into_iter().flatten().any(|path| !path.is_empty());
    ensure!(!acts && user.exec.is_none() && user.auth_provider.is_none());
    Ok(())
}

/// Whether it is refused follows from the fields alone, and no refusal repeats a secret.
fn follows(parts: &Value) -> Result<()> {
    let [context, cluster, user] = ["context", "cluster", "user"].map(|part| &parts[part]);
    let text = in_yaml(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "aa",
        "contexts": [{"name": "aa", "context": context}],
        "clusters": [{"name": "aa", "cluster": cluster}],
        "users": [{"name": "aa", "user": user}],
    }));
    let names_match = context["user"] == "aa";
    let field = |name: &str| {
        if user[name].is_null() {
            &cluster[name]
        } else {
            &user[name]
        }
    };
    let given = |name: &str| ![Value::Null, json!(""), json!(false)].contains(field(name));
    let acts_here = ACTS.into_iter().any(given);
    match shoot_server(text.as_bytes()) {
        Ok(server) => {
            ensure!(!acts_here && given("server"), "taken: {text}");
            let has_token = user["token"]
                .as_str()
                .is_some_and(|token| !token.trim().is_empty());
            let has_password = user["username"].is_string() && user["password"].is_string();
            let has_certificate = user["client-certificate-data"].is_string();
            ensure!(
                has_token || has_password || has_certificate,
                "taken: {text}"
            );
            is_safe(&server)?;
        }
        Err(refusal) => {
            let message = refusal.to_string();
            is_one_line(&message)?;
            if acts_here && names_match {
                ensure!(message.contains(" is refused: "), "{message}: {text}");
            }
            let secrets = [
                "token",
                "password",
                "client-key-data",
                "client-certificate-data",
            ];
            for secret in secrets.into_iter().filter_map(|name| user[name].as_str()) {
                // A shorter one may be a word of the message by chance.
                ensure!(secret.len() < 12 || !message.contains(secret), "{message}");
            }
        }
    }
    Ok(())
}
