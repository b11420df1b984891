//! Credentials of this process on the seed: the `Authorization` of each request, and the client certificate
//! of a plugin.
//!
//! kube's own layer panics at a token with a line break at its end, and takes none from a file that
//! ends in one.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderValue;
use kube::config::{AuthInfo, AuthProviderConfig, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::logging::with_causes;
use crate::transport::kubeconfig::{Entry, Field, KubeconfigError, Pem};
use crate::transport::{Identity, authorization, bearer};

/// A file with a token is read again after this time, as client-go does: the token in a pod is
/// replaced before it expires.
const TOKEN_FILE_LIFE: Duration = Duration::from_secs(60);
/// A plugin is run again so long before its token expires, as kube does.
const PLUGIN_MARGIN: Duration = Duration::from_secs(60);
/// The longest that a plugin may take: some open a browser for a person.
const PLUGIN_LIMIT: Duration = Duration::from_secs(60);

/// Has no `Debug`: it holds credentials.
pub(super) struct SeedCredentials {
    source: TokenSource,
    /// A plugin's.
    pub identity: Option<Identity>,
}

enum TokenSource {
    /// The same for all requests, if any.
    Fixed(Option<HeaderValue>),
    File(Mutex<TokenFile>),
    Plugin(Mutex<PluginToken>),
}

struct TokenFile {
    path: PathBuf,
    header: HeaderValue,
    read_at: Instant,
}

struct PluginToken {
    plugin: Arc<ExecConfig>,
    /// Outlives the request that began it, which may be given up sooner.
    running: Option<AbortOnDropHandle<Result<ExecStatus, CredentialsError>>>,
    header: Option<HeaderValue>,
    expires: DateTime<Utc>,
}

/// Reason for a lack of credentials. Never contains one, nor what a plugin printed for programs.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    /// A field, and what is wrong with it.
    #[error("{0} {1}")]
    Unusable(&'static str, &'static str),
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error("user.tokenFile {0} {1}")]
    File(PathBuf, &'static str),
    #[error("user.tokenFile {0} cannot be read")]
    Unreadable(PathBuf, #[source] std::io::Error),
    #[error("the kubeconfig's exec plugin cannot be run")]
    NotRun(#[source] std::io::Error),
    #[error("the kubeconfig's exec plugin has not ended within {PLUGIN_LIMIT:?}")]
    TooSlow,
    #[error("the kubeconfig's exec plugin failed ({0}): {1}")]
    Failed(std::process::ExitStatus, String),
    #[error("the kubeconfig's exec plugin printed no ExecCredential")]
    NoCredential,
    #[error("the kubeconfig's exec plugin printed a token that {0}")]
    PluginToken(&'static str),
}

use CredentialsError::{Failed, File, NoCredential, NotRun, TooSlow, Unreadable, Unusable};

/// Output of a plugin.
#[derive(Deserialize)]
struct ExecCredential {
    status: ExecStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    token: Option<String>,
    expiration_timestamp: Option<DateTime<Utc>>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl SeedCredentials {
    /// The credentials of a user: of several kinds one counts.
    pub(super) async fn of(user: Option<&Entry<AuthInfo>>) -> Result<Self, CredentialsError> {
        let anonymous = Self {
            source: TokenSource::Fixed(None),
            identity: None,
        };
        let Some(user) = user else {
            return Ok(anonymous);
        };
        let given = &user.value;
        let source = if let Some(provider) = &given.auth_provider {
            TokenSource::Fixed(Some(of_provider(provider)?))
        } else if let Some(header) = authorization(user)? {
            TokenSource::Fixed(Some(header))
        } else if let Some(path) = &given.token_file {
            TokenSource::File(Mutex::new(TokenFile::open(path.into()).await?))
        } else if let Some(plugin) = &given.exec {
            return Self::of_plugin(plugin).await;
        } else {
            return Ok(anonymous);
        };
        Ok(Self {
            source,
            ..anonymous
        })
    }

    async fn of_plugin(plugin: &ExecConfig) -> Result<Self, CredentialsError> {
        let status = run(plugin).await?;
        let header = status.header()?;
        let source = match status.expiration_timestamp {
            Some(expires) => TokenSource::Plugin(Mutex::new(PluginToken {
                plugin: Arc::new(plugin.clone()),
                running: None,
                header,
                expires,
            })),
            None => TokenSource::Fixed(header),
        };
        let pem = |name, text: String| Pem {
            field: Field::named(name),
            text: text.into(),
        };
        let identity = status.client_certificate_data.zip(status.client_key_data);
        let identity = identity.map(|(certificate, key)| Identity {
            certificate: pem("the exec plugin's clientCertificateData", certificate),
            key: pem("the exec plugin's clientKeyData", key),
        });
        Ok(Self { source, identity })
    }

    /// The `Authorization` of the next request.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        match &self.source {
            TokenSource::Fixed(header) => Ok(header.clone()),
            TokenSource::File(file) => Ok(Some(file.lock().await.current().await)),
            TokenSource::Plugin(token) => token.lock().await.current().await,
        }
    }
}

/// The token of a provider. As client-go, kube knows none that runs a program of its own.
fn of_provider(provider: &AuthProviderConfig) -> Result<HeaderValue, CredentialsError> {
    const TOKEN: &str = "user.auth-provider.config.id-token";
    if provider.name != "oidc" {
        let problem =
            "names a provider that is not known here (only oidc, with an id-token; see exec)";
        return Err(Unusable("user.auth-provider.name", problem));
    }
    let token = provider.config.get("id-token");
    let token = token.ok_or(Unusable(TOKEN, "is missing"))?;
    bearer(token).map_err(|problem| Unusable(TOKEN, problem))
}

impl TokenFile {
    async fn open(path: PathBuf) -> Result<Self, CredentialsError> {
        Ok(Self {
            header: Self::read(&path).await?,
            path,
            read_at: Instant::now(),
        })
    }

    async fn read(path: &Path) -> Result<HeaderValue, CredentialsError> {
        let token = tokio::fs::read_to_string(path).await;
        let token = token.map_err(|error| Unreadable(path.to_owned(), error))?;
        bearer(&token).map_err(|problem| File(path.to_owned(), problem))
    }

    /// The token as it was read last, if it cannot be read again.
    async fn current(&mut self) -> HeaderValue {
        if self.read_at.elapsed() >= TOKEN_FILE_LIFE {
            match Self::read(&self.path).await {
                Ok(header) => self.header = header,
                Err(error) => {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot reload the token for the seed, keeping the previous one"
                    );
                }
            }
            self.read_at = Instant::now();
        }
        self.header.clone()
    }
}

impl PluginToken {
    async fn current(&mut self) -> Result<Option<HeaderValue>, CredentialsError> {
        if Utc::now() + PLUGIN_MARGIN < self.expires {
            return Ok(self.header.clone());
        }
        match self.renew().await {
            Err(error) if Utc::now() >= self.expires => Err(error),
            _ => Ok(self.header.clone()),
        }
    }

    async fn renew(&mut self) -> Result<(), CredentialsError> {
        let plugin = Arc::clone(&self.plugin);
        let running = self.running.get_or_insert_with(|| {
            AbortOnDropHandle::new(tokio::spawn(async move { run(&plugin).await }))
        });
        let ended = running.await;
        self.running = None;
        let status = ended.map_err(|_| NoCredential)??;
        self.header = status.header()?;
        // A plugin that names no time any more has given a token that stays.
        let expires = status.expiration_timestamp;
        self.expires = expires.unwrap_or(DateTime::<Utc>::MAX_UTC);
        Ok(())
    }
}

impl ExecStatus {
    fn header(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        let header = self.token.as_deref().map(bearer).transpose();
        header.map_err(CredentialsError::PluginToken)
    }
}

/// Runs a plugin. Its arguments, its environment and its output may hold secrets; of its words only
/// those for people are in an error.
async fn run(plugin: &ExecConfig) -> Result<ExecStatus, CredentialsError> {
    let program = plugin.command.as_ref();
    let program = program.ok_or(Unusable("user.exec.command", "is missing"))?;
    let interactive = plugin.interactive_mode != Some(ExecInteractiveMode::Never);
    let mut spec = json!({ "interactive": interactive });
    if plugin.provide_cluster_info {
        spec["cluster"] = json!(plugin.cluster);
    }
    let info = json!({ "apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec });
    let mut command = Command::new(program);
    command
        .args(plugin.args.iter().flatten())
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    for variable in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    if interactive {
        command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
    }
    let running = command.spawn().map_err(NotRun)?.wait_with_output();
    let output = timeout(PLUGIN_LIMIT, running).await.map_err(|_| TooSlow)?;
    let output = output.map_err(NotRun)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(output.status, said.trim().to_owned()));
    }
    // JSON, or YAML as client-go takes it. The parser's message could quote it.
    let printed: ExecCredential =
        serde_saphyr::from_slice(&output.stdout).map_err(|_| NoCredential)?;
    Ok(printed.status)
}
