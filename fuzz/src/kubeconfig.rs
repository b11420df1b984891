//! Kubeconfigs out of Secrets, which must neither run nor read anything here.

use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prober::shoot_client::kubeconfig::{Access, KubeconfigError};
use serde_json::{Map, Value, json};

/// Bytes that may be a kubeconfig: what comes of them is encrypted and keeps its secrets.
pub fn check_bytes(bytes: &[u8]) {
    match Access::from_kubeconfig(bytes) {
        Ok(access) => must_be_safe(&access),
        Err(refusal) => super::must_be_one_line(&refusal.to_string()),
    }
}

fn must_be_safe(access: &Access) {
    assert_eq!(access.server.scheme(), "https");
    assert!(access.server.has_host());
    assert!(access.proxy.as_ref().is_none_or(|proxy| matches!(proxy.scheme(), "http" | "https") && proxy.has_host()));
    assert!(access.headers.values().all(|value| value.is_sensitive()), "a credential would be shown in logs");
}

/// A kubeconfig by its fields.
#[derive(Arbitrary, Debug)]
pub struct Parts {
    server: Server,
    certificate_authority_data: Option<Data>,
    certificate_authority: Option<String>,
    insecure: Option<bool>,
    tls_server_name: Option<String>,
    proxy: Option<String>,
    token: Option<String>,
    token_file: Option<String>,
    username: Option<String>,
    password: Option<String>,
    certificate: Option<Data>,
    certificate_file: Option<String>,
    key: Option<Data>,
    key_file: Option<String>,
    exec: bool,
    auth_provider: bool,
    impersonate: Option<String>,
    names_match: bool,
}

#[derive(Arbitrary, Debug)]
enum Server {
    Usual,
    Plain,
    Other(String),
    None,
}

#[derive(Arbitrary, Debug)]
enum Data {
    Encoded(Vec<u8>),
    Raw(String),
}

impl Data {
    fn text(&self) -> String {
        match self {
            Self::Encoded(bytes) => BASE64_STANDARD.encode(bytes),
            Self::Raw(text) => text.clone(),
        }
    }
}

/// Whether it is refused follows from the fields alone, and no refusal repeats a secret.
pub fn check_parts(parts: &Parts) {
    let text = parts.text();
    let outcome = Access::from_kubeconfig(text.as_bytes());
    let given = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    let acts_here = parts.exec
        || parts.auth_provider
        || parts.insecure == Some(true)
        || [&parts.token_file, &parts.certificate_file, &parts.key_file, &parts.certificate_authority].into_iter().any(given)
        || (given(&parts.tls_server_name) && given(&parts.proxy));
    match outcome {
        Ok(access) => {
            assert!(!acts_here, "taken: {text}");
            assert!(parts.names_match && !matches!(parts.server, Server::Plain | Server::None), "taken: {text}");
            must_be_safe(&access);
            let credential = parts.token.is_some() || given(&parts.username);
            assert_eq!(access.headers.contains_key("authorization"), credential);
            assert_eq!(access.headers.contains_key("impersonate-user"), given(&parts.impersonate));
            if let Some(Data::Encoded(bytes)) = &parts.certificate_authority_data {
                assert_eq!(access.authorities.as_deref().unwrap_or_default(), bytes);
            }
        }
        Err(refusal) => {
            let message = refusal.to_string();
            super::must_be_one_line(&message);
            if acts_here && parts.names_match {
                assert!(matches!(refusal, KubeconfigError::Refused { .. }), "{message}: {text}");
            }
            let secrets = [&parts.token, &parts.password].into_iter().flatten().cloned();
            for secret in secrets.chain([&parts.key, &parts.certificate].into_iter().flatten().map(Data::text)) {
                // A shorter one may be a word of the message by chance.
                assert!(secret.len() < 12 || !message.contains(&secret), "{message}");
            }
        }
    }
}

impl Parts {
    fn text(&self) -> String {
        let server = match &self.server {
            Server::Usual => Some("https://kube-apiserver.shoot--a--b.svc".to_owned()),
            Server::Plain => Some("http://kube-apiserver.shoot--a--b.svc".to_owned()),
            Server::Other(text) => Some(text.clone()),
            Server::None => None,
        };
        let data = |data: &Option<Data>| data.as_ref().map(|data| json!(data.text()));
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        let cluster = object([
            ("server", server.map(Value::from)),
            ("certificate-authority-data", data(&self.certificate_authority_data)),
            ("certificate-authority", text(&self.certificate_authority)),
            ("insecure-skip-tls-verify", self.insecure.map(Value::from)),
            ("tls-server-name", text(&self.tls_server_name)),
            ("proxy-url", text(&self.proxy)),
        ]);
        let user = object([
            ("token", text(&self.token)),
            ("tokenFile", text(&self.token_file)),
            ("username", text(&self.username)),
            ("password", text(&self.password)),
            ("client-certificate-data", data(&self.certificate)),
            ("client-certificate", text(&self.certificate_file)),
            ("client-key-data", data(&self.key)),
            ("client-key", text(&self.key_file)),
            ("exec", self.exec.then(|| json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true"}))),
            ("auth-provider", self.auth_provider.then(|| json!({"name": "gcp", "config": {"cmd-path": "/bin/true"}}))),
            ("as", text(&self.impersonate)),
        ]);
        let named = if self.names_match { "a" } else { "b" };
        super::yaml(&json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": named}}],
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": user}],
        }))
    }
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>())
}
