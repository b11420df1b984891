//! The commands and their options: the agents, and those for operators.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use common::flags::AgentArgs;

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
    Status(StatusArgs),
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

/// Access to the seed and its prober.
#[derive(Debug, Args)]
pub(crate) struct SeedArgs {
    /// A kubeconfig for the seed; without it $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Ask the prober here, at its health port, and not by a port-forward
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// The namespace of the watchdog's Deployments and Leases
    #[arg(long, value_name = "NAME", default_value = "garden")]
    pub garden_namespace: String,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub seed: SeedArgs,
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
    pub status: StatusArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The shoot's namespace on the seed, as shoot--project--name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub namespace: Option<String>,
    /// Every shoot in which the prober says that something is held down
    #[arg(long, conflicts_with = "force")]
    pub all: bool,
    /// Restore; without it only show what would be written
    #[arg(long)]
    pub yes: bool,
    /// Do not ask the prober, which is to leave the shoot alone: a pause has to stand
    #[arg(long)]
    pub force: bool,
    /// The prober's config file; without it the ConfigMap that the prober has mounted
    #[arg(long, value_name = "PATH")]
    pub config_file: Option<PathBuf>,
    #[command(flatten)]
    pub seed: SeedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    /// The config file, of the prober or the weeder
    pub file: PathBuf,
}

#[cfg(test)]
mod tests;
