//! `check-config`: what an agent would say of a config file, without starting one.

use std::process::ExitCode;

use common::document::load;
use common::flags::Agent;

use crate::commands::CheckConfigArgs;
use crate::output::{print, print_error};

pub(crate) fn run(args: &CheckConfigArgs) -> ExitCode {
    let file = args.file.display();
    let mut agent = args.agent;
    let outcome = load(&args.file, |text| match *agent.get_or_insert(guess(text)) {
        Agent::Prober => prober::config::parse(text).map(|loaded| loaded.warnings),
        Agent::Weeder => weeder::config::parse(text).map(|loaded| loaded.warnings),
    });
    let (sentences, label, verdict, code) = match outcome {
        Ok(warnings) => (warnings, "warning", "valid", ExitCode::SUCCESS),
        Err(error) => (error.problems, "error", "refused", ExitCode::FAILURE),
    };
    let mut lines: Vec<_> = sentences
        .into_iter()
        .map(|sentence| format!("{file}: {label}: {sentence}\n"))
        .collect();
    let name = agent.unwrap_or(Agent::Prober).name();
    lines.push(format!("{file}: {verdict} as the {name}'s config\n"));
    match print(&lines.concat()) {
        Ok(()) => code,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Guesses the agent by the key that its file must have. What lacks it is most likely meant for the
/// prober.
fn guess(text: &str) -> Agent {
    match text.contains("servicesAndDependantSelectors") {
        true => Agent::Weeder,
        false => Agent::Prober,
    }
}
