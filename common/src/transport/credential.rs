//! Headers that carry a credential.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use kube::config::AuthInfo;
use secrecy::ExposeSecret;

use super::kubeconfig::{Entry, KubeconfigError};

/// The `Authorization` of a token. Ignores white space around it, such as the line break at the end
/// of a file.
///
/// # Errors
/// Says what is wrong with the token, without a character of it.
pub fn bearer(token: &str) -> Result<HeaderValue, &'static str> {
    match token.trim() {
        "" => Err("is empty"),
        token => secret_header(&format!("Bearer {token}")),
    }
}

/// The `Authorization` of a user with a password.
///
/// # Errors
/// As of [`secret_header`].
pub fn basic(name: &str, password: &str) -> Result<HeaderValue, &'static str> {
    let pair = BASE64_STANDARD.encode(format!("{name}:{password}"));
    secret_header(&format!("Basic {pair}"))
}

/// The `Authorization` of a user whose token or password stands in the kubeconfig.
///
/// # Errors
/// If no header can carry it.
pub fn authorization(user: &Entry<AuthInfo>) -> Result<Option<HeaderValue>, KubeconfigError> {
    let given = &user.value;
    let (field, header) = if let Some(token) = &given.token {
        ("token", bearer(token.expose_secret()))
    } else if let Some(name) = &given.username {
        let password = given.password.as_ref().map(ExposeSecret::expose_secret);
        ("username", basic(name, password.unwrap_or_default()))
    } else {
        return Ok(None);
    };
    let header = header.map_err(|problem| user.field(field).error(problem))?;
    Ok(Some(header))
}

/// The headers that ask for somebody else's rights.
///
/// # Errors
/// If no header can carry a value.
pub(super) fn impersonation(user: &Entry<AuthInfo>) -> Result<HeaderMap, KubeconfigError> {
    const USER: HeaderName = HeaderName::from_static("impersonate-user");
    const UID: HeaderName = HeaderName::from_static("impersonate-uid");
    const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
    let given = &user.value;
    let mut headers = HeaderMap::new();
    let mut add = |field: &str, name: &HeaderName, value: &String| {
        let value = secret_header(value).map_err(|problem| user.field(field).error(problem))?;
        headers.append(name, value);
        Ok::<_, KubeconfigError>(())
    };
    if let Some(name) = &given.impersonate {
        add("as", &USER, name)?;
    }
    if let Some(uid) = &given.impersonate_uid {
        add("as-uid", &UID, uid)?;
    }
    for group in given.impersonate_groups.iter().flatten() {
        add("as-groups", &GROUP, group)?;
    }
    for (key, values) in given.impersonate_user_extra.iter().flatten() {
        let field = "as-user-extra";
        let name =
            extra(key).ok_or_else(|| user.field(field).error("has a key that is no name"))?;
        for value in values {
            add(field, &name, value)?;
        }
    }
    Ok(headers)
}

/// As client-go encodes what a header's name cannot carry.
fn extra(key: &str) -> Option<HeaderName> {
    let encoded: String = key
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte if b"!#$&'*+-.^_`|~".contains(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("impersonate-extra-{encoded}").parse().ok()
}

/// A header that is not shown.
///
/// # Errors
/// Says what is wrong with the value, without a character of it.
fn secret_header(value: &str) -> Result<HeaderValue, &'static str> {
    let problem = "contains characters that an HTTP header cannot carry";
    let mut header = HeaderValue::from_str(value).map_err(|_| problem)?;
    header.set_sensitive(true);
    Ok(header)
}
