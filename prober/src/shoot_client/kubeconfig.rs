//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::transport::{basic, bearer, secret_header};
use http::Uri;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
const IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// What is needed to talk to a shoot's API server. Has no `Debug`: it holds credentials.
pub struct ShootAccess {
    pub server: Uri,
    /// The name to verify the server's certificate by, where it is not the host's.
    pub tls_server_name: Option<String>,
    /// Authorities that may have signed the server's certificate, in PEM; none means the system's.
    pub authorities: Option<Vec<u8>>,
    /// Client certificate and key, in PEM.
    pub identity: Option<Vec<u8>>,
    /// Credentials and impersonation as headers; marked as sensitive.
    pub headers: HeaderMap,
    pub proxy: Option<Uri>,
}

/// Why a kubeconfig cannot be used. Never contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("the Secret has no key \"kubeconfig\", or it is empty")]
    Missing,
    /// Not a kubeconfig at all. The parser's message would quote the text.
    #[error("it is not YAML of a kubeconfig")]
    Unreadable,
    #[error("{0} is missing or names nothing that exists")]
    Absent(&'static str),
    /// A field, and what is wrong with it.
    #[error("{0} {1}")]
    Invalid(&'static str, &'static str),
    /// A field that would let the Secret's author act here, and how.
    #[error("{0} is refused: {1}")]
    Refused(&'static str, &'static str),
}

use KubeconfigError::{Absent, Invalid, Missing, Refused, Unreadable};

impl ShootAccess {
    pub fn from_kubeconfig(text: &[u8]) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(text).map_err(|_| Unreadable)?;
        if text.trim().is_empty() {
            return Err(Missing);
        }
        let config = Kubeconfig::from_yaml(text).map_err(|_| Unreadable)?;
        let (cluster, user) = current(&config).map_err(Absent)?;
        refuse(cluster, user)?;
        let server = cluster.server.as_deref().ok_or(Absent("cluster.server"))?;
        Ok(Self {
            server: url("cluster.server", server, &["https"])?,
            tls_server_name: present(&cluster.tls_server_name).map(str::to_owned),
            authorities: decode(
                "cluster.certificate-authority-data",
                present(&cluster.certificate_authority_data),
            )?,
            identity: identity(user)?,
            headers: headers(user)?,
            proxy: present(&cluster.proxy_url)
                .map(|proxy| url("cluster.proxy-url", proxy, &["http", "https"]))
                .transpose()?,
        })
    }
}

/// The cluster and the user of the current context, or what is missing.
fn current(config: &Kubeconfig) -> Result<(&Cluster, &AuthInfo), &'static str> {
    let mut contexts = config.contexts.iter();
    let context = contexts
        .find(|named| Some(&named.name) == config.current_context.as_ref())
        .and_then(|named| named.context.as_ref())
        .ok_or("current-context")?;
    let mut clusters = config.clusters.iter();
    let cluster = clusters
        .find(|named| named.name == context.cluster)
        .and_then(|named| named.cluster.as_ref())
        .ok_or("context.cluster")?;
    let mut users = config.auth_infos.iter();
    let user = users
        .find(|named| Some(&named.name) == context.user.as_ref())
        .and_then(|named| named.auth_info.as_ref())
        .ok_or("context.user")?;
    Ok((cluster, user))
}

fn refuse(cluster: &Cluster, user: &AuthInfo) -> Result<(), KubeconfigError> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    let fields = [
        (user.exec.is_some(), "user.exec", PROGRAM),
        (user.auth_provider.is_some(), "user.auth-provider", PROGRAM),
        (is_set(&user.token_file), "user.tokenFile", FILE),
        (
            is_set(&user.client_certificate),
            "user.client-certificate",
            FILE,
        ),
        (is_set(&user.client_key), "user.client-key", FILE),
        (
            is_set(&cluster.certificate_authority),
            "cluster.certificate-authority",
            FILE,
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "cluster.insecure-skip-tls-verify",
            "anyone on the way could take the credentials and forge an outage",
        ),
        (
            is_set(&cluster.tls_server_name) && is_set(&cluster.proxy_url),
            "cluster.tls-server-name together with cluster.proxy-url",
            "the proxy would be asked for the wrong host",
        ),
    ];
    match fields.into_iter().find(|(is_set, ..)| *is_set) {
        Some((_, field, why)) => Err(Refused(field, why)),
        None => Ok(()),
    }
}

fn identity(user: &AuthInfo) -> Result<Option<Vec<u8>>, KubeconfigError> {
    const CERTIFICATE: &str = "user.client-certificate-data";
    const KEY: &str = "user.client-key-data";
    let certificate = decode(CERTIFICATE, present(&user.client_certificate_data))?;
    let key = decode(KEY, secret(&user.client_key_data))?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Absent(KEY)),
        (None, Some(_)) => Err(Absent(CERTIFICATE)),
        (Some(certificate), Some(key)) => Ok(Some([certificate, key].join(&b'\n'))),
    }
}

fn headers(user: &AuthInfo) -> Result<HeaderMap, KubeconfigError> {
    let unusable = |field| move |problem| Invalid(field, problem);
    let mut headers = HeaderMap::new();
    if let Some(token) = &user.token {
        let token = bearer(token.expose_secret()).map_err(unusable("user.token"))?;
        headers.insert(AUTHORIZATION, token);
    } else if let Some(name) = present(&user.username) {
        let basic = basic(name, secret(&user.password).unwrap_or_default());
        headers.insert(AUTHORIZATION, basic.map_err(unusable("user.username"))?);
    }
    if let Some(name) = present(&user.impersonate) {
        let name = secret_header(name).map_err(unusable("user.as"))?;
        headers.insert(IMPERSONATE_USER, name);
    }
    for group in user.impersonate_groups.iter().flatten() {
        let group = secret_header(group).map_err(unusable("user.as-groups"))?;
        headers.append(IMPERSONATE_GROUP, group);
    }
    Ok(headers)
}

fn url(field: &'static str, text: &str, schemes: &[&str]) -> Result<Uri, KubeconfigError> {
    let url: Uri = text.parse().map_err(|_| Invalid(field, "is not a URL"))?;
    if url.host().is_none_or(str::is_empty) {
        return Err(Invalid(field, "has no host"));
    }
    if url
        .scheme_str()
        .is_none_or(|scheme| !schemes.contains(&scheme))
    {
        let problem = "has a scheme that is not supported here (only https; http for a proxy)";
        return Err(Invalid(field, problem));
    }
    Ok(url)
}

fn decode(field: &'static str, data: Option<&str>) -> Result<Option<Vec<u8>>, KubeconfigError> {
    // Secrets made by hand often carry line breaks inside of the base64 text.
    let data = data.map(|data| data.split_whitespace().collect::<String>());
    let decoded = data.map(|data| BASE64_STANDARD.decode(data)).transpose();
    decoded.map_err(|_| Invalid(field, "is not base64"))
}

fn is_set(value: &Option<String>) -> bool {
    present(value).is_some()
}

fn present(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

fn secret(value: &Option<SecretString>) -> Option<&str> {
    value
        .as_ref()
        .map(ExposeSecret::expose_secret)
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
