//! The client for the seed's API server: kube's, over connections of our own.

mod connections;

use std::ffi::OsString;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
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
    let find = move || {
        let pod = || Config::incluster().ok();
        let seed = choice.find(|name| std::env::var_os(name), pod)?;
        Ok(seed.or_proxy_of_environment()?)
    };
    let connections = Connections::open(Box::new(find), dialer, counter.clone());
    let connections = Arc::new(connections.await?);
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

    /// The first that there is, given the environment's variables and a pod's service account.
    fn find(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
        pod: impl FnOnce() -> Option<Config>,
    ) -> Result<Server> {
        if let Some(path) = &self.path {
            return self.read(std::slice::from_ref(path));
        }
        let listed = variable("KUBECONFIG").filter(|paths| !paths.is_empty());
        if let Some(paths) = &listed {
            // As for client-go, a file that does not exist is none.
            let paths: Vec<_> = std::env::split_paths(paths)
                .filter(|path| path.exists())
                .collect();
            if !paths.is_empty() {
                return self.read(&paths);
            }
        }
        if self.context.is_none()
            && let Some(config) = pod()
        {
            let proxy = None;
            return Ok(Server { config, proxy });
        }
        ensure!(
            listed.is_none(),
            "KUBECONFIG names no kubeconfig that exists"
        );
        let home = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
        if let Some(path) = home.filter(|path| path.exists()) {
            return self.read(&[path]);
        }
        match &self.context {
            Some(name) => bail!(
                "there is no context {name:?}: no --kubeconfig, no KUBECONFIG, no $HOME/.kube/config"
            ),
            None => {
                bail!("no --kubeconfig, no KUBECONFIG, not in a cluster, no $HOME/.kube/config")
            }
        }
    }

    /// Reads files, the first of which that sets a value wins.
    fn read(&self, paths: &[PathBuf]) -> Result<Server> {
        let mut kubeconfig = Kubeconfig::default();
        for path in paths {
            let merged = Kubeconfig::read_from(path).and_then(|next| kubeconfig.merge(next));
            kubeconfig = merged
                .map_err(Unusable::from)
                .with_context(|| format!("kubeconfig {}", path.display()))?;
        }
        let paths = paths.iter().map(|path| path.display().to_string());
        let files = || format!("kubeconfig {}", paths.collect::<Vec<_>>().join(", "));
        if let Some(name) = &self.context {
            let exists = kubeconfig
                .contexts
                .iter()
                .any(|context| context.name == *name);
            ensure!(exists, "there is no context {name:?} in {}", files());
            kubeconfig.current_context = Some(name.clone());
        }
        let mut seed = Server::of(kubeconfig, &["https", "http"]).with_context(files)?;
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
