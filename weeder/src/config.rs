//! The weeder's config file (rule 26).

pub mod file;

use std::collections::BTreeMap;

use common::document::{ConfigError, Contents, FormerKeys, Loaded};
use go_compat::duration::GoDuration;
use weeder_core::config::{Config, Service};
use weeder_core::selector::Selector;

use file::File;

const FORMER: &FormerKeys = &[
    (
        "services",
        "a key of versions before 1.0, which servicesAndDependantSelectors replaced",
    ),
    (
        "dependantPods",
        "a key of versions before 1.0, which podSelectors replaced",
    ),
];

pub fn parse(text: &str) -> Result<Loaded<Config>, ConfigError> {
    read(&text.into())
}

pub fn read(contents: &Contents) -> Result<Loaded<Config>, ConfigError> {
    let mut loaded = contents.load(&File::every_key(), FORMER, File::check)?;
    loaded.warnings.extend(warnings(&loaded.config));
    Ok(loaded)
}

/// Returns one sentence on each selector that selects more or less than its author may think.
pub(crate) fn warnings(config: &Config) -> impl Iterator<Item = String> {
    config
        .services
        .iter()
        .flat_map(|Service { name, selectors }| {
            let path = format!("servicesAndDependantSelectors.{name}.podSelectors");
            let nothing = selectors
                .iter()
                .all(Selector::is_nothing)
                .then(|| format!("{path}: they select no pod at all"));
            let all = selectors
                .iter()
                .enumerate()
                .filter(|(_, selector)| selector.is_everything())
                .map(move |(index, _)| {
                    format!(
                        "{path}[{index}]: it is empty, so it selects every pod of the namespace"
                    )
                });
            nothing.into_iter().chain(all)
        })
}

/// The config with every default written out, for those who ask what is in force. Selectors are in
/// the API server's words.
pub fn to_json(config: &Config) -> serde_json::Value {
    let services: BTreeMap<&str, Vec<String>> = config
        .services
        .iter()
        .map(|Service { name, selectors }| {
            (&**name, selectors.iter().map(Selector::to_string).collect())
        })
        .collect();
    serde_json::json!({
        "watchDuration": GoDuration(config.watch_duration).to_string(),
        "servicesAndDependantSelectors": services,
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
    })
}

#[cfg(test)]
mod tests;
