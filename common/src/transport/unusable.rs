//! What cannot be used of a kubeconfig, in our words. Those of kube, of YAML and of PEM may quote a
//! line of it, those of a plugin its arguments and all that it printed.

use kube::client::{AuthError, RustlsTlsError};
use kube::config::{KubeconfigError, LoadDataError};

/// A field that cannot be used. Contains nothing of its value, which may be a credential.
#[derive(Debug, thiserror::Error)]
#[error("{field} {problem}")]
pub struct Unusable {
    pub field: &'static str,
    problem: String,
}

impl Unusable {
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { field, problem }
    }
}

impl From<KubeconfigError> for Unusable {
    fn from(error: KubeconfigError) -> Self {
        use KubeconfigError as Error;
        match error {
            Error::CurrentContextNotSet => Self::new("current-context", "is missing"),
            Error::LoadContext(_) => Self::new("current-context", NOTHING),
            Error::LoadClusterOfContext(_) => Self::new("context.cluster", NOTHING),
            Error::MissingClusterUrl => Self::new("cluster.server", "is missing"),
            Error::ParseClusterUrl(_) => Self::new("cluster.server", "is not a URL"),
            Error::LoadCertificateAuthority(error) => {
                Self::new("cluster.certificate-authority", unread(&error))
            }
            Error::LoadClientCertificate(error) => {
                Self::new("user.client-certificate", unread(&error))
            }
            Error::LoadClientKey(error) => Self::new("user.client-key", unread(&error)),
            Error::ParseCertificates(_) => {
                Self::new("cluster.certificate-authority-data", "is not PEM")
            }
            Error::ReadConfig(error, _) => Self::new("it", format!("cannot be read: {error}")),
            Error::Parse(error) => {
                let line = error.location().map(|location| location.line());
                let line = line.map(|line| format!(" (line {line})"));
                Self::new(
                    "it",
                    format!("is not a kubeconfig in YAML{}", line.unwrap_or_default()),
                )
            }
            _ => Self::new("it", "cannot be used"),
        }
    }
}

const NOTHING: &str = "names nothing that exists";

fn unread(error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => "is not base64 on one line".to_owned(),
        LoadDataError::ReadFile(error, _) => format!("names a file that cannot be read: {error}"),
        LoadDataError::NoBase64DataOrFile => "is missing".to_owned(),
    }
}

impl From<&RustlsTlsError> for Unusable {
    fn from(error: &RustlsTlsError) -> Self {
        use RustlsTlsError as Error;
        const KEY: &str = "user.client-key";
        match error {
            Error::InvalidIdentityPem(_) => Self::new(KEY, "or the certificate is not PEM"),
            Error::MissingPrivateKey => Self::new(KEY, "holds no private key without a passphrase"),
            Error::MissingCertificate => {
                Self::new("user.client-certificate", "holds no certificate in PEM")
            }
            Error::InvalidPrivateKey(_) | Error::UnknownPrivateKeyFormat => {
                let problem =
                    "is broken, of a kind that is not supported, or not that of the certificate";
                Self::new(KEY, problem)
            }
            Error::AddRootCertificate(_) | Error::NoValidNativeRootCA(_) => {
                let problem = "is missing, and so are the system's, or holds a certificate that cannot be read";
                Self::new("cluster.certificate-authority-data", problem)
            }
            Error::InvalidServerName(_) => Self::server_name(),
        }
    }
}

impl Unusable {
    pub(super) fn server_name() -> Self {
        let problem = "is neither a DNS name nor an IP address";
        Self::new("cluster.tls-server-name", problem)
    }
}

impl From<&AuthError> for Unusable {
    fn from(error: &AuthError) -> Self {
        use AuthError as Error;
        const PLUGIN: &str = "the kubeconfig's exec plugin";
        match error {
            Error::InvalidBasicAuth(_) | Error::InvalidBearerToken(_) => {
                let problem = "contains characters that an HTTP header cannot carry, perhaps a line break at its end";
                Self::new("the token", problem)
            }
            Error::ReadTokenFile(error, path) => {
                let problem = format!("{} cannot be read: {error}", path.display());
                Self::new("user.tokenFile", problem)
            }
            Error::MissingCommand => Self::new("user.exec.command", "is missing"),
            Error::AuthExecStart(error) => Self::new(PLUGIN, format!("cannot be run: {error}")),
            Error::AuthExecRun { out, .. } => Self::new(PLUGIN, format!("failed ({})", out.status)),
            Error::AuthExecParse(_)
            | Error::ExecPluginFailed
            | Error::MalformedTokenExpirationDate(_) => {
                Self::new(PLUGIN, "printed no ExecCredential")
            }
            Error::UnrefreshableTokenResponse => Self::new(PLUGIN, "prints no token any more"),
            _ => Self::new(
                "user.auth-provider",
                "is of no kind that is supported, or gives no token",
            ),
        }
    }
}

impl From<kube::Error> for Unusable {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Auth(error) => Self::from(&error),
            kube::Error::RustlsTls(error) => Self::from(&error),
            kube::Error::InferKubeconfig(error) => Self::from(error),
            kube::Error::HttpError(_) => {
                Self::new("user.as", "contains what an HTTP header cannot carry")
            }
            _ => Self::new("it", "cannot be used"),
        }
    }
}
