//! An API server and who this process is there, as kube reads it from a kubeconfig.

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::ExposeSecret;

use super::unusable::Unusable;

/// A URL that kube can read, in the place of a proxy's.
const NO_PROXY: &str = "http://none";

/// Has no `Debug`: it holds credentials.
pub struct Server {
    pub config: Config,
    /// In place of that of `config`, which kube takes from the environment without `NO_PROXY`.
    pub proxy: Option<Intercept>,
}

impl Server {
    /// The server of the current context, whose URL must have one of these schemes. Reads the file
    /// of its authority, if it names one.
    ///
    /// # Errors
    /// If a field cannot be used.
    pub fn of(mut kubeconfig: Kubeconfig, schemes: &[&str]) -> Result<Self, Unusable> {
        let (cluster, _) = current(&kubeconfig);
        let proxy = cluster.and_then(|cluster| cluster.proxy_url.as_deref());
        let proxy = proxy.filter(|url| !url.is_empty());
        let proxy = proxy.map(proxy_at).transpose()?;
        for cluster in &mut kubeconfig.clusters {
            if let Some(cluster) = &mut cluster.cluster {
                // Else kube reads the environment's.
                cluster.proxy_url = Some(NO_PROXY.to_owned());
                for text in [
                    &mut cluster.certificate_authority,
                    &mut cluster.tls_server_name,
                ] {
                    text.take_if(|text| text.is_empty());
                }
            }
        }
        for user in &mut kubeconfig.auth_infos {
            user.auth_info.iter_mut().for_each(drop_empty);
        }
        let mut config = Config::try_from(kubeconfig)?;
        config.proxy_url = None;
        let server = &config.cluster_url;
        if !server
            .scheme_str()
            .is_some_and(|scheme| schemes.contains(&scheme))
        {
            let problem = format!("must begin with {}://", schemes.join(":// or "));
            return Err(Unusable::new("cluster.server", problem));
        }
        if server.host().is_none_or(str::is_empty) {
            return Err(Unusable::new("cluster.server", "has no host"));
        }
        if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
            let problem = "holds no certificate in PEM";
            return Err(Unusable::new("cluster.certificate-authority-data", problem));
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
            let proxy = Matcher::from_env().intercept(&self.config.cluster_url);
            let problem = "is not the URL of an http proxy";
            if !proxy.as_ref().is_none_or(is_http) {
                return Err(Unusable::new("the environment's proxy", problem));
            }
            self.proxy = proxy;
        }
        Ok(self)
    }
}

/// The cluster and the user of the current context, as far as they exist.
pub fn current(kubeconfig: &Kubeconfig) -> (Option<&Cluster>, Option<&AuthInfo>) {
    let Kubeconfig {
        contexts,
        clusters,
        auth_infos,
        current_context,
        ..
    } = kubeconfig;
    let context = contexts
        .iter()
        .find(|context| Some(&context.name) == current_context.as_ref());
    let Some(context) = context.and_then(|context| context.context.as_ref()) else {
        return (None, None);
    };
    let cluster = clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster);
    let user = auth_infos
        .iter()
        .find(|user| Some(&user.name) == context.user.as_ref());
    (
        cluster.and_then(|cluster| cluster.cluster.as_ref()),
        user.and_then(|user| user.auth_info.as_ref()),
    )
}

/// Neither TLS to a proxy nor SOCKS is spoken.
fn is_http(proxy: &Intercept) -> bool {
    proxy.uri().scheme_str() == Some("http")
}

/// The proxy at a URL. The error leaves the URL out, since it may carry a password.
fn proxy_at(url: &str) -> Result<Intercept, Unusable> {
    let matcher = Matcher::builder().all(url).build();
    let proxy = matcher.intercept(&http::Uri::from_static("https://any"));
    let problem = "is no URL of an http proxy";
    proxy
        .filter(is_http)
        .ok_or_else(|| Unusable::new("cluster.proxy-url", problem))
}

/// An empty text is none, as in client-go: a template may have left it.
fn drop_empty(user: &mut AuthInfo) {
    for text in [
        &mut user.username,
        &mut user.token_file,
        &mut user.client_certificate,
        &mut user.client_certificate_data,
        &mut user.client_key,
    ] {
        text.take_if(|text| text.is_empty());
    }
    for secret in [&mut user.password, &mut user.client_key_data] {
        secret.take_if(|secret| secret.expose_secret().is_empty());
    }
}

/// Blanks around a token, such as the line break at the end of a file, are none of it. kube takes
/// a token as it is, and panics where no header can carry it.
fn trim_token(user: &mut AuthInfo) -> Result<(), Unusable> {
    let Some(token) = &user.token else {
        return Ok(());
    };
    let token = token.expose_secret().trim().to_owned();
    if http::HeaderValue::from_str(&token).is_err() {
        let problem = "contains characters that an HTTP header cannot carry";
        return Err(Unusable::new("user.token", problem));
    }
    user.token = Some(token)
        .filter(|token| !token.is_empty())
        .map(Into::into);
    Ok(())
}
