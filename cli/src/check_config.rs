//! `check-config`: what an agent would say of a config file, without starting one.

use std::process::ExitCode;

use common::document::{ConfigError, Contents};
use common::flags::Agent;

use crate::commands::CheckConfig;
use crate::output::{bad, good, warn};

pub(crate) fn run(args: &CheckConfig) -> ExitCode {
    let file = args.file.display();
    let contents = Contents::of(&args.file);
    let agent = args.agent.unwrap_or_else(|| {
        guess(
            contents
                .as_ref()
                .ok()
                .and_then(|contents| contents.text().ok())
                .unwrap_or_default(),
        )
    });
    let loaded = contents.and_then(|contents| match agent {
        Agent::Prober => prober::config::read(&contents).map(|loaded| loaded.warnings),
        Agent::Weeder => weeder::config::read(&contents).map(|loaded| loaded.warnings),
    });
    let (warnings, error) = match &loaded {
        Ok(warnings) => (warnings.as_slice(), None),
        Err(error) => (error.warnings(), Some(error)),
    };
    for warning in warnings {
        anstream::println!("{file}: {}: {warning}", warn("warning"));
    }
    if let Some(error) = error {
        report(&file.to_string(), error);
    }
    let name = agent.name();
    let (verdict, code) = if error.is_none() {
        (good("valid"), ExitCode::SUCCESS)
    } else {
        (bad("refused"), ExitCode::FAILURE)
    };
    let count = warnings.len();
    let plural = if count == 1 { "" } else { "s" };
    anstream::println!("{file}: {verdict} as the {name}'s config, {count} warning{plural}");
    code
}

/// One line for each error, its place first, as compilers write them.
fn report(file: &str, error: &ConfigError) {
    match error {
        ConfigError::Read { source, .. } => {
            anstream::println!("{file}: {}: {source}", bad("error"))
        }
        ConfigError::Syntax { problem, .. } => {
            anstream::println!("{file}: {}: {problem}", bad("error"))
        }
        ConfigError::Fields { .. } => {}
    }
    for field in error.fields() {
        let place = field
            .place
            .map(|place| format!(":{}:{}", place.line(), place.column()))
            .unwrap_or_default();
        anstream::println!("{file}{place}: {}: {field}", bad("error"));
    }
}

/// The two configs have no key in common; what is neither is most likely meant for the prober.
fn guess(text: &str) -> Agent {
    let lower = text.to_ascii_lowercase();
    let is_weeder =
        lower.contains("servicesanddependantselectors") || lower.contains("watchduration");
    if is_weeder {
        Agent::Weeder
    } else {
        Agent::Prober
    }
}
