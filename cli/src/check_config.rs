//! `check-config`: what an agent would say of a config file, without starting one.

use std::process::ExitCode;

use common::document::{ConfigError, Contents};
use common::flags::Agent;
use common::text::plural;

use crate::commands::CheckConfigArgs;

pub(crate) fn run(args: &CheckConfigArgs) -> ExitCode {
    let file = args.file.display().to_string();
    let contents = Contents::of(&args.file);
    let text = contents
        .as_ref()
        .ok()
        .and_then(|contents| contents.text().ok());
    let agent = args
        .agent
        .unwrap_or_else(|| guess(text.unwrap_or_default()));
    let loaded = contents.and_then(|contents| match agent {
        Agent::Prober => prober::config::read(&contents).map(|loaded| loaded.warnings),
        Agent::Weeder => weeder::config::read(&contents).map(|loaded| loaded.warnings),
    });
    let (warnings, verdict, code) = match &loaded {
        Ok(warnings) => (warnings.as_slice(), "valid", ExitCode::SUCCESS),
        Err(error) => (error.warnings(), "refused", ExitCode::FAILURE),
    };
    for warning in warnings {
        println!("{file}: warning: {warning}");
    }
    if let Err(error) = &loaded {
        report(&file, error);
    }
    let (name, count) = (agent.name(), warnings.len());
    let plural = plural(count);
    println!("{file}: {verdict} as the {name}'s config, {count} warning{plural}");
    code
}

/// One line for each error, its place first, as compilers write them.
fn report(file: &str, error: &ConfigError) {
    if let ConfigError::File { problem, .. } = error {
        println!("{file}: error: {problem}");
    }
    for field in error.fields() {
        let place = field
            .place
            .map(|place| format!(":{}:{}", place.line(), place.column()));
        let place = place.unwrap_or_default();
        println!("{file}{place}: error: {field}");
    }
}

/// Keys of the prober's files, in all versions.
const PROBERS: [&str; 2] = ["dependentResourceInfos", "probes"];
/// Keys of the weeder's files, in all versions.
const WEEDERS: [&str; 4] = [
    "servicesAndDependantSelectors",
    "watchDuration",
    "services",
    "dependantPods",
];

/// Guesses the agent by the keys. What is neither is most likely meant for the prober.
fn guess(text: &str) -> Agent {
    let has_one_of = |keys: &[&str]| {
        let is_key = |word: &str| keys.iter().any(|key| key.eq_ignore_ascii_case(word));
        text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_key)
    };
    if has_one_of(&WEEDERS) && !has_one_of(&PROBERS) {
        Agent::Weeder
    } else {
        Agent::Prober
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_guessed_by_keys_of_any_version() {
        for text in [
            "watchDuration: 5m",
            "servicesanddependantselectors: {}",
            "namespace: default\nservices:\n  etcd: {dependantPods: []}",
            "service: etcd\ndependantpods: []",
            "{\"services\": {}}",
            "kind: ConfigMap\ndata: {a: 'servicesAndDependantSelectors: {}'}",
        ] {
            assert_eq!(guess(text), Agent::Weeder, "{text}");
        }
        for text in [
            "",
            "dependantResourceInfos: []",
            "# scales services\ndependentResourceInfos: []",
            "probes: []\nnamespace: default # for services",
        ] {
            assert_eq!(guess(text), Agent::Prober, "{text}");
        }
    }
}
