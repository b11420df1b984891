//! A kubeconfig out of a Secret: whoever can write the Secret must not be able to run anything or
//! read files here.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// What is needed to talk to a shoot's API server. Has no `Debug`: it holds credentials.
pub struct Access {
    pub server: Url,
    /// The name to verify the server's certificate by, where it is not the host's.
    pub tls_server_name: Option<String>,
    /// Authorities that may have signed the server's certificate, in PEM; none means the system's.
    pub authorities: Option<Vec<u8>>,
    /// Client certificate and key, in PEM.
    pub identity: Option<Vec<u8>>,
    /// Credentials and impersonation as headers; marked as sensitive.
    pub headers: HeaderMap,
    pub proxy: Option<Url>,
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

impl Access {
    pub fn from_kubeconfig(text: &[u8]) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(text).map_err(|_| KubeconfigError::Unreadable)?;
        if text.trim().is_empty() {
            return Err(KubeconfigError::Missing);
        }
        let config = Kubeconfig::from_yaml(text).map_err(|_| KubeconfigError::Unreadable)?;
        let (cluster, user) = current(&config)?;
        refuse(cluster, user)?;
        let server = cluster
            .server
            .as_deref()
            .ok_or(KubeconfigError::Absent("cluster.server"))?;
        Ok(Self {
            server: url("cluster.server", server, &["https"])?,
            tls_server_name: cluster
                .tls_server_name
                .clone()
                .filter(|name| !name.is_empty()),
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

fn current(config: &Kubeconfig) -> Result<(&Cluster, &AuthInfo), KubeconfigError> {
    let absent = KubeconfigError::Absent;
    let context = config
        .contexts
        .iter()
        .find(|named| Some(&named.name) == config.current_context.as_ref());
    let context = context
        .and_then(|named| named.context.as_ref())
        .ok_or(absent("current-context"))?;
    let cluster = config
        .clusters
        .iter()
        .find(|named| named.name == context.cluster);
    let cluster = cluster
        .and_then(|named| named.cluster.as_ref())
        .ok_or(absent("context.cluster"))?;
    let user = config
        .auth_infos
        .iter()
        .find(|named| Some(&named.name) == context.user.as_ref());
    let user = user
        .and_then(|named| named.auth_info.as_ref())
        .ok_or(absent("context.user"))?;
    Ok((cluster, user))
}

fn refuse(cluster: &Cluster, user: &AuthInfo) -> Result<(), KubeconfigError> {
    const FILE: &str = "it would read a file of the watchdog's own pod";
    const PROGRAM: &str = "it would run a program in the watchdog's own pod";
    let refused = [
        (user.exec.is_some(), "user.exec", PROGRAM),
        (user.auth_provider.is_some(), "user.auth-provider", PROGRAM),
        (present(&user.token_file).is_some(), "user.tokenFile", FILE),
        (
            present(&user.client_certificate).is_some(),
            "user.client-certificate",
            FILE,
        ),
        (present(&user.client_key).is_some(), "user.client-key", FILE),
        (
            present(&cluster.certificate_authority).is_some(),
            "cluster.certificate-authority",
            FILE,
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "cluster.insecure-skip-tls-verify",
            "anyone on the way could take the credentials and forge an outage",
        ),
        (
            present(&cluster.tls_server_name).is_some() && present(&cluster.proxy_url).is_some(),
            "cluster.tls-server-name together with cluster.proxy-url",
            "the proxy would be asked for the wrong host",
        ),
    ];
    let refusal = refused.into_iter().find(|(present, ..)| *present);
    refusal.map_or(Ok(()), |(_, field, why)| {
        Err(KubeconfigError::Refused(field, why))
    })
}

fn identity(user: &AuthInfo) -> Result<Option<Vec<u8>>, KubeconfigError> {
    let certificate = decode(
        "user.client-certificate-data",
        present(&user.client_certificate_data),
    )?;
    let key = decode("user.client-key-data", secret(&user.client_key_data))?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(KubeconfigError::Absent("user.client-key-data")),
        (None, Some(_)) => Err(KubeconfigError::Absent("user.client-certificate-data")),
        (Some(certificate), Some(key)) => Ok(Some([certificate, key].join(&b'\n'))),
    }
}

fn headers(user: &AuthInfo) -> Result<HeaderMap, KubeconfigError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = &user.token {
        let token = token.expose_secret().trim();
        if token.is_empty() {
            return Err(KubeconfigError::Invalid("user.token", "is empty"));
        }
        headers.insert(
            AUTHORIZATION,
            sensitive("user.token", &format!("Bearer {token}"))?,
        );
    } else if let Some(name) = present(&user.username) {
        let pair = format!("{name}:{}", secret(&user.password).unwrap_or_default());
        headers.insert(
            AUTHORIZATION,
            sensitive(
                "user.username",
                &format!("Basic {}", BASE64_STANDARD.encode(pair)),
            )?,
        );
    }
    if let Some(name) = present(&user.impersonate) {
        headers.insert(
            HeaderName::from_static("impersonate-user"),
            sensitive("user.as", name)?,
        );
    }
    for group in user.impersonate_groups.iter().flatten() {
        headers.append(
            HeaderName::from_static("impersonate-group"),
            sensitive("user.as-groups", group)?,
        );
    }
    Ok(headers)
}

fn sensitive(field: &'static str, value: &str) -> Result<HeaderValue, KubeconfigError> {
    let invalid = KubeconfigError::Invalid(
        field,
        "contains characters that an HTTP header cannot carry",
    );
    let mut header = HeaderValue::from_str(value).map_err(|_| invalid)?;
    header.set_sensitive(true);
    Ok(header)
}

fn url(field: &'static str, text: &str, schemes: &[&str]) -> Result<Url, KubeconfigError> {
    let url = Url::parse(text).map_err(|_| KubeconfigError::Invalid(field, "is not a URL"))?;
    if !schemes.contains(&url.scheme()) || url.cannot_be_a_base() {
        return Err(KubeconfigError::Invalid(
            field,
            "has a scheme that is not supported here (only https; http for a proxy)",
        ));
    }
    Ok(url)
}

fn decode(field: &'static str, data: Option<&str>) -> Result<Option<Vec<u8>>, KubeconfigError> {
    // Secrets made by hand often carry line breaks inside of the base64 text.
    let decoded =
        data.map(|data| BASE64_STANDARD.decode(data.split_whitespace().collect::<String>()));
    decoded
        .transpose()
        .map_err(|_| KubeconfigError::Invalid(field, "is not base64"))
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
