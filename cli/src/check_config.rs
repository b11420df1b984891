//! `check-config`: what an agent would say of a config file, without starting one.

use std::process::ExitCode;

use common::document::load;
use common::flags::Agent;

use crate::commands::CheckConfigArgs;
use crate::output::print;

/// The key that a weeder's file must have.
const WEEDERS_KEY: &str = "servicesAndDependantSelectors";

pub(crate) fn run(args: &CheckConfigArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display();
    let mut agent = Agent::Prober;
    let outcome = load(&args.file, |text| {
        if text.contains(WEEDERS_KEY) {
            agent = Agent::Weeder;
            return weeder::config::parse(text).map(|loaded| loaded.warnings);
        }
        prober::config::parse(text).map(|loaded| loaded.warnings)
    });
    let (sentences, label, verdict, code) = match outcome {
        Ok(warnings) => (warnings, "warning", "valid", ExitCode::SUCCESS),
        Err(error) => (error.problems, "error", "refused", ExitCode::FAILURE),
    };
    let lines = sentences
        .into_iter()
        .map(|sentence| format!("{file}: {label}: {sentence}\n"));
    let agent = agent.name();
    let last = format!("{file}: {verdict} as the {agent}'s config\n");
    print(&(lines.collect::<String>() + &last))?;
    Ok(code)
}
