//! What the program says about itself.

use std::fmt::Write as _;

use strum::EnumMessage;

use super::{Agent, command, default, is_switch, takes};

/// The commands for operators, and their purpose. They are defined in the crate `cli`; here they
/// are only listed.
pub const CLI_COMMANDS: [(&str, &str); 7] = [
    (
        "status",
        "Show every shoot of the seed: what its Cluster says, what is held down, who leads",
    ),
    (
        "explain",
        "Explain one shoot: why it is probed or not, why each controller is as it is, what its leases say",
    ),
    (
        "probe",
        "Probe one shoot, say the verdict and what would be written, and write nothing",
    ),
    (
        "restore",
        "Show how what is held down would come back, and with --yes bring it back, in order and as it was",
    ),
    (
        "check-config",
        "Check a config file: every error and warning with line and column",
    ),
    ("completions", "Print a completion script for a shell"),
    (
        "man",
        "Print the manual page, or write all pages into a folder",
    ),
];

pub(super) fn commands() -> String {
    let agents = Agent::ALL.iter().map(|agent| agent.name());
    let names: Vec<_> = agents.chain(CLI_COMMANDS.map(|(name, _)| name)).collect();
    let names = names.join(", ");
    format!("The commands are {names}; \"dependency-watchdog help COMMAND\" says more.")
}

pub(super) fn usage() -> String {
    let mut text = String::from(
        "Watches over dependencies between the parts of Gardener shoot clusters.\n\n\
         Usage:\n  dependency-watchdog COMMAND [flags]\n\nAgents:\n",
    );
    for agent in Agent::ALL {
        let _ = writeln!(text, "  {:<12}  {}", agent.name(), agent.purpose());
    }
    text.push_str("\nFor operators:\n");
    for (name, purpose) in CLI_COMMANDS {
        let _ = writeln!(text, "  {name:<12}  {purpose}");
    }
    text.push_str("\n\"dependency-watchdog help COMMAND\" shows a command's flags.\n");
    text
}

pub(super) fn of(agent: Agent) -> String {
    let mut text = format!(
        "{}\n\nUsage:\n  dependency-watchdog {} --config-file=PATH [flags]\n\nFlags:\n",
        agent.get_detailed_message().unwrap_or_default(),
        agent.name(),
    );
    for flag in command().get_arguments() {
        let value = if is_switch(flag) {
            String::new()
        } else {
            format!("={}", takes(flag).to_uppercase())
        };
        let _ = writeln!(text, "  --{}{value}", flag.get_long().unwrap_or_default());
        let _ = write!(text, "      {}", flag.get_help().unwrap_or_default());
        let default = default(flag);
        if !default.is_empty() {
            let _ = write!(text, " (default {default})");
        }
        for alias in flag.get_aliases().unwrap_or_default() {
            let _ = write!(text, " Also --{alias}.");
        }
        text.push('\n');
    }
    text.push_str(
        "\nOne dash or two, --flag=value or --flag value; a switch takes its value only after \"=\". Flags end at the first\n\
         word that is none. Durations are written as 300ms, 15s, 1m30s, 2h.\n",
    );
    text
}
