//! Reasons why a kubeconfig cannot be used. kube's own words stand here only where they quote none
//! of it: others repeat a line of it, or what a plugin was given and printed.

use kube::client::{AuthError, RustlsTlsError};
use kube::config::KubeconfigError;

/// Contains nothing of a field's value, which may be a credential.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

impl From<KubeconfigError> for Unusable {
    fn from(error: KubeconfigError) -> Self {
        use KubeconfigError as Error;
        Self(match error {
            Error::CurrentContextNotSet
            | Error::MissingClusterUrl
            | Error::ParseClusterUrl(_)
            | Error::ParseProxyUrl(_)
            | Error::LoadCertificateAuthority(_)
            | Error::LoadClientCertificate(_)
            | Error::LoadClientKey(_)
            | Error::FindPath
            | Error::ReadConfig(..) => error.to_string(),
            Error::LoadContext(_) => "the current context does not exist".to_owned(),
            Error::LoadClusterOfContext(_) => "the context's cluster does not exist".to_owned(),
            Error::ParseCertificates(_) => {
                "cluster.certificate-authority-data is not PEM".to_owned()
            }
            Error::Parse(error) => match error.location() {
                Some(at) => format!("it is not a kubeconfig in YAML (line {})", at.line()),
                None => "it is not a kubeconfig in YAML".to_owned(),
            },
            _ => "it cannot be used".to_owned(),
        })
    }
}

impl From<AuthError> for Unusable {
    fn from(error: AuthError) -> Self {
        use AuthError as Error;
        Self(match error {
            Error::InvalidBasicAuth(_)
            | Error::InvalidBearerToken(_)
            | Error::UnrefreshableTokenResponse
            | Error::ExecPluginFailed
            | Error::AuthExecStart(_)
            | Error::ReadTokenFile(..)
            | Error::MissingCommand => error.to_string(),
            Error::AuthExecRun { out, .. } => {
                format!("the kubeconfig's exec plugin failed ({})", out.status)
            }
            _ => "the kubeconfig's exec plugin or auth-provider gives no credentials".to_owned(),
        })
    }
}

impl From<kube::Error> for Unusable {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Auth(error) => error.into(),
            kube::Error::InferKubeconfig(error) => error.into(),
            kube::Error::RustlsTls(RustlsTlsError::InvalidIdentityPem(_)) => {
                Self::new("user.client-key or user.client-certificate is not PEM")
            }
            kube::Error::RustlsTls(error) => Self(error.to_string()),
            _ => Self::new("it cannot be used"),
        }
    }
}
