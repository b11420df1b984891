//! Kubeconfigs out of Secrets, which must neither run nor read anything here. Go is not asked: its
//! client library takes most of what is refused here.

use std::sync::LazyLock;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::transport::{ServerAccess, Trust};
use prober::shoot_client::kubeconfig::{KubeconfigError, shoot_access};
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
            Self::Bytes(bytes) => match shoot_access(bytes) {
                Ok(access) => is_safe(&access),
                Err(refusal) => is_one_line(&refusal.to_string()),
            },
        }
    }
}

/// What comes of a kubeconfig is encrypted and keeps its secrets.
fn is_safe(access: &ServerAccess) -> Result<()> {
    ensure!(access.server.scheme_str() == Some("https"));
    ensure!(access.server.host().is_some_and(|host| !host.is_empty()));
    ensure!(access.proxy.as_ref().is_none_or(|proxy| matches!(
        proxy.uri().scheme_str(),
        Some("http" | "https" | "socks5" | "socks5h")
    )
        && proxy.uri().host().is_some_and(|host| !host.is_empty())));
    ensure!(
        access.headers.values().all(|value| value.is_sensitive()),
        "a credential would be shown in logs"
    );
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
    match shoot_access(text.as_bytes()) {
        Ok(access) => {
            ensure!(
                !acts_here && names_match && given("server"),
                "taken: {text}"
            );
            is_safe(&access)?;
            let has_token = user["token"]
                .as_str()
                .is_some_and(|token| !token.trim().is_empty());
            let credential = has_token || given("username");
            ensure!(
                access.headers.contains_key("authorization") == credential,
                "{:?}: {text}",
                access.headers
            );
            ensure!(access.headers.contains_key("impersonate-user") == given("as"));
            if let Some(Ok(bytes)) = field("certificate-authority-data")
                .as_str()
                .map(|data| BASE64_STANDARD.decode(data))
            {
                let authorities = match &access.trust {
                    Trust::Authorities(pem) => &*pem.text,
                    _ => &[],
                };
                ensure!(authorities == bytes);
            }
        }
        Err(refusal) => {
            let message = refusal.to_string();
            is_one_line(&message)?;
            if acts_here && names_match {
                ensure!(
                    matches!(refusal, KubeconfigError::Refused { .. }),
                    "{message}: {text}"
                );
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
