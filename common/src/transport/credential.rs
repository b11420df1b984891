//! Headers that carry a credential.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

/// The `Authorization` of a token. White space around it, such as the line break at the end of a
/// file, is none of it.
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

/// A header that is not shown.
///
/// # Errors
/// Says what is wrong with the value, without a character of it.
pub fn secret_header(value: &str) -> Result<HeaderValue, &'static str> {
    let problem = "contains characters that an HTTP header cannot carry";
    let mut header = HeaderValue::from_str(value).map_err(|_| problem)?;
    header.set_sensitive(true);
    Ok(header)
}
