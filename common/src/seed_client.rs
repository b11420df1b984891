//! The client for the seed's API server: kube's, over connections of our own.

mod connections;

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kube::config::{ExecInteractiveMode, Kubeconfig};
use kube::{Client, Config};
use tower::service_fn;

use self::connections::Connections;
use crate::metrics::RequestCounter;
use crate::transport::{Dialer, Server, Unusable};

/// Finds out where the seed is, in the order of rule 10: the flag, `KUBECONFIG`, the cluster around
/// this pod, `$HOME/.kube/config`. Sends nothing yet; every request is counted.
///
/// # Errors
/// When nothing is found, or what is found cannot be used.
pub async fn connect(
    dialer: Dialer,
    choice: KubeconfigChoice,
    counter: &RequestCounter,
) -> Result<Client> {
    let find = move || Ok(choice.find()?.or_proxy_of_environment()?);
    let connections = Connections::open(Arc::new(find), dialer, counter.clone()).await?;
    let connections = Arc::new(connections);
    let send = service_fn(move |request| Arc::clone(&connections).send(request));
    // Every request names its namespace.
    Ok(Client::new(send, "default"))
}

/// The kubeconfig and its context, as far as a command line names them.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigChoice {
    pub path: Option<PathBuf>,
    /// A pod's service account is none, so that it is not looked at then, as by kubectl.
    pub context: Option<String>,
}

impl KubeconfigChoice {
    /// The current context of a kubeconfig. An empty path is none.
    pub fn path(path: Option<&Path>) -> Self {
        let path = path.filter(|path| !path.as_os_str().is_empty());
        Self {
            path: path.map(Path::to_owned),
            context: None,
        }
    }

    fn find(&self) -> Result<Server> {
        let (name, read) = match &self.path {
            Some(path) => (
                format!("kubeconfig {}", path.display()),
                Kubeconfig::read_from(path),
            ),
            None => match Kubeconfig::from_env().transpose() {
                Some(read) => ("kubeconfig of $KUBECONFIG".to_owned(), read),
                None => {
                    if self.context.is_none()
                        && let Ok(config) = Config::incluster()
                    {
                        let proxy = None;
                        return Ok(Server { config, proxy });
                    }
                    let name = "no --kubeconfig, no KUBECONFIG, not in a cluster";
                    (name.to_owned(), Kubeconfig::read())
                }
            },
        };
        let read = read.map_err(Unusable::from);
        let mut kubeconfig = read.with_context(|| name.clone())?;
        if let Some(context) = &self.context {
            let mut contexts = kubeconfig.contexts.iter();
            let exists = contexts.any(|named| named.name == *context);
            ensure!(exists, "there is no context {context:?} in {name}");
            kubeconfig.current_context = Some(context.clone());
        }
        let mut seed = Server::of(kubeconfig).context(name)?;
        tell_plugin(&mut seed.config, stdin().is_terminal())?;
        Ok(seed)
    }
}

/// Tells an exec plugin that there is nobody to ask where stdin is no terminal.
fn tell_plugin(config: &mut Config, is_terminal: bool) -> Result<()> {
    if let Some(plugin) = &mut config.auth_info.exec
        && !is_terminal
    {
        ensure!(
            plugin.interactive_mode != Some(ExecInteractiveMode::Always),
            "the kubeconfig's exec plugin must ask somebody (interactiveMode: Always), and stdin is no terminal"
        );
        plugin.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
