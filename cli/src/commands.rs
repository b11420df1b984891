//! The commands and their options: the agents, and those for operators.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use common::flags::{Agent, AgentArgs};
use http::uri::Authority;

/// Watches over dependencies between the parts of Gardener shoot clusters
#[derive(Debug, Parser)]
#[command(name = "dependency-watchdog", version)]
pub(crate) enum Cli {
    /// Keep machines from being replaced while their nodes cannot reach the API server
    ///
    /// Checks the node leases of every shoot of this seed. When most of them are no longer renewed
    /// although the shoot's API server answers, the nodes have lost the way to it and will soon be
    /// taken for dead. The prober then scales the configured controllers to 0, so that none of them
    /// replaces machines that are well, and scales them back, in order, when the leases are renewed
    /// again.
    Prober(AgentArgs),
    /// Restart crash-looping pods once the service they need is back
    ///
    /// Watches the configured Services in every namespace of this seed. When one becomes ready,
    /// pods that depend on it and are in CrashLoopBackOff are deleted for a while, so that they
    /// start again at once instead of waiting minutes for their next try.
    Weeder(AgentArgs),
    /// Show every shoot of the seed as the running prober sees it: what is held down, and what is
    /// wrong
    Status(SeedArgs),
    /// Explain one shoot: why it is probed or not, why each controller is as it is, what its leases
    /// say
    Explain(ExplainArgs),
    /// Show how what is held down would come back, and with --yes bring it back, in order and as it
    /// was
    Restore(RestoreArgs),
    /// Check a config file: what an agent would say of it
    CheckConfig(CheckConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Access to the seed and its prober, and the format of the answer.
#[derive(Clone, Debug, Args)]
pub(crate) struct SeedArgs {
    /// A kubeconfig for the seed; without it $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Ask the prober here, at its health port, and not through the API server
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub address: Option<Authority>,
    /// The prober's config file, where no prober answers, and for restore; without it the ConfigMap
    /// that the prober on the seed has mounted, else Gardener's config
    #[arg(long, value_name = "PATH")]
    pub config_file: Option<PathBuf>,
    /// The namespace of the watchdog's Deployments and Leases
    #[arg(long, value_name = "NAME", default_value = "garden")]
    pub garden_namespace: String,
    /// The format of the answer
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The shoot's namespace on the seed, as shoot--project--name
    pub namespace: String,
    #[command(flatten)]
    pub seed: SeedArgs,
    /// Fail unless the prober has a verdict that waiting cannot change
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The shoot's namespace on the seed, as shoot--project--name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub namespace: Option<String>,
    /// Every shoot with a controller that carries the watchdog's marker
    #[arg(long)]
    pub all: bool,
    /// Restore; without it only show what would be written
    #[arg(long)]
    pub yes: bool,
    /// Do not ask the prober: pause the shoot, so that it is left alone, and restore what carries the
    /// marker
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub seed: SeedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    /// The config file
    pub file: PathBuf,
    /// The agent that the config is for; without it the one whose keys the file has
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<Agent>,
}

/// Reads an address, or the URL of the status page.
fn address(text: &str) -> Result<Authority, String> {
    let text = text.strip_prefix("http://").unwrap_or(text);
    let address = text.strip_suffix('/').unwrap_or(text).parse();
    address.map_err(|_| "expected HOST:PORT".to_owned())
}

#[cfg(test)]
mod tests;
