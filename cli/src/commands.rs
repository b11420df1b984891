//! The commands and their options: the agents, and those for operators.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use std::{iter, mem};

use clap::{Args, Parser, ValueEnum};
use common::flags::{Agent, AgentArgs};
use go_compat::flag;

/// Watches over dependencies between the parts of Gardener shoot clusters
#[derive(Debug, Parser)]
#[command(name = "dependency-watchdog", version, disable_help_subcommand = true)]
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
    /// Show every shoot of the seed: what its Cluster says, what is held down, who leads
    Status(SeedArgs),
    /// Explain one shoot: why it is probed or not, why each controller is as it is, what its leases
    /// say
    Explain(ExplainArgs),
    /// Probe one shoot, say the verdict and what would be written, and write nothing
    Probe(ProbeArgs),
    /// Show how what is held down would come back, and with --yes bring it back, in order and as it
    /// was
    Restore(RestoreArgs),
    /// Check a config file: every error and warning with line and column
    CheckConfig(CheckConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all pages into a folder
    Man {
        /// Where to write them; made if it is not there
        folder: Option<PathBuf>,
    },
}

impl Cli {
    /// Reads the words after the program's name. None at all ask for help, as does `help COMMAND`
    /// (rules 1 and 2), and an agent's flags may begin with one dash, as for Go's `flag` package
    /// (rule 5).
    pub(crate) fn parse_words(mut words: Vec<OsString>) -> Result<Self, clap::Error> {
        if words.is_empty() {
            words.push("--help".into());
        }
        if let [first, command, ..] = &mut *words
            && first == "help"
        {
            *first = mem::replace(command, "--help".into());
        }
        if is_agent(&words) {
            for word in &mut words[1..] {
                if matches!(word.as_encoded_bytes(), [b'-', b'a'..=b'z', _, ..]) {
                    let flag = mem::replace(word, "-".into());
                    word.push(flag);
                }
            }
        }
        Self::try_parse_from(iter::once("dependency-watchdog".into()).chain(words))
    }
}

pub(crate) fn is_agent(words: &[OsString]) -> bool {
    let first = words.first().and_then(|word| word.to_str());
    first.is_some_and(|word| Agent::from_str(word, false).is_ok())
}

/// How to reach the seed, what the prober is configured to do there, and how to print the answer.
#[derive(Debug, Args)]
pub(crate) struct SeedArgs {
    /// How to reach the seed; without it $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// The prober's config file; without it the ConfigMap that the prober on the seed has mounted,
    /// else Gardener's config
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
    /// Probe only once, though one probe may decide nothing: in an outage the stamps must be
    /// watched for some ten seconds
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The shoot's namespace on the seed, as shoot--project--name
    pub namespace: String,
    #[command(flatten)]
    pub seed: SeedArgs,
    /// How long to probe at most; leases whose stamps cannot be believed must be watched for a
    /// quarter of the grace
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
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
    /// Do not probe: pause the shoot, so that the prober leaves it alone, and restore what carries
    /// the marker
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub seed: SeedArgs,
    /// How long to probe at most; leases whose stamps cannot be believed must be watched for a
    /// quarter of the grace
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    /// The config file
    pub file: PathBuf,
    /// Whose config it is; without it what the file's keys say
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<Agent>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = flag::duration(text)?;
    let positive = Some(duration).filter(|duration| !duration.is_zero());
    positive.ok_or_else(|| "expected a duration above 0".to_owned())
}

#[cfg(test)]
mod tests;
