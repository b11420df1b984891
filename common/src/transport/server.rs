//! An API server and who this process is there, as kube reads it from a kubeconfig.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;
use kube::config::{AuthInfo, Kubeconfig};
use secrecy::ExposeSecret;

use super::unusable::Unusable;

/// A URL that kube can read, in the place of a proxy's.
const NO_PROXY: &str = "http://none/";

/// Has no `Debug`: it holds credentials.
pub struct Server {
    pub config: Config,
    /// In place of that of `config`, which kube takes from the environment without `NO_PROXY`.
    pub proxy: Option<Intercept>,
}

impl Server {
    /// The server of the current context. Reads the file of its authority, if it names one.
    ///
    /// # Errors
    /// If a field cannot be used.
    pub fn of(mut kubeconfig: Kubeconfig) -> Result<Self, Unusable> {
        let clusters = kubeconfig.clusters.iter_mut();
        for cluster in clusters.filter_map(|named| named.cluster.as_mut()) {
            // Else kube reads the environment's.
            let url = cluster.proxy_url.take().filter(|url| !url.is_empty());
            cluster.proxy_url = Some(url.unwrap_or_else(|| NO_PROXY.to_owned()));
        }
        let mut config = Config::try_from(kubeconfig)?;
        let proxy = config.proxy_url.take().filter(|url| *url != NO_PROXY);
        let proxy = proxy.map(|url| proxy_at(&url)).transpose()?;
        let server = &config.cluster_url;
        if server.scheme().is_none() || server.host().is_none_or(str::is_empty) {
            return Err(Unusable::new("cluster.server is no URL with a host"));
        }
        trim_token(&mut config.auth_info)?;
        Ok(Self { config, proxy })
    }

    /// Takes the environment's proxy if the kubeconfig names none.
    ///
    /// # Errors
    /// If it is none that is supported.
    pub fn or_proxy_of_environment(mut self) -> Result<Self, Unusable> {
        if self.proxy.is_none() {
            self.proxy = Matcher::from_env().intercept(&self.config.cluster_url);
            if !self.proxy.as_ref().is_none_or(is_http) {
                return Err(Unusable::new("the environment's proxy is no http proxy"));
            }
        }
        Ok(self)
    }
}

/// Neither TLS to a proxy nor SOCKS is spoken.
fn is_http(proxy: &Intercept) -> bool {
    proxy.uri().scheme_str() == Some("http")
}

/// The proxy at a URL. The error leaves the URL out, since it may carry a password.
fn proxy_at(url: &Uri) -> Result<Intercept, Unusable> {
    let matcher = Matcher::builder().all(url.to_string()).build();
    let proxy = matcher.intercept(&Uri::from_static("https://any"));
    proxy
        .filter(is_http)
        .ok_or_else(|| Unusable::new("cluster.proxy-url is no URL of an http proxy"))
}

/// Blanks around a token, such as the line break at the end of a file, are none of it. kube takes
/// a token as it is, and panics where no header can carry it.
fn trim_token(user: &mut AuthInfo) -> Result<(), Unusable> {
    let Some(token) = user.token.take() else {
        return Ok(());
    };
    let token = token.expose_secret().trim();
    if HeaderValue::from_str(token).is_err() {
        return Err(Unusable::new(
            "user.token contains characters that an HTTP header cannot carry",
        ));
    }
    user.token = (!token.is_empty()).then(|| token.into());
    Ok(())
}
