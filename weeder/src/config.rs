//! The weeder's config file (rule 26).

mod file;

use common::document::{self, Loaded, Problems};
use go_compat::duration::GoDuration;
use serde_json::{Map, Value, json};
use weeder_core::config::{Config, Service};

use file::File;

pub fn parse(text: &str) -> Result<Loaded<Config>, Problems> {
    document::parse(text, |file: File, found| {
        let config = file.check(found);
        found.warnings.extend(warnings(&config));
        config
    })
}

/// Returns one sentence on each selector of every pod, which is more than its author may think.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for Service { name, selectors } in &config.services {
        for (index, _) in selectors
            .iter()
            .enumerate()
            .filter(|(_, selector)| selector.is_everything())
        {
            warnings.push(format!(
                "servicesAndDependantSelectors.{name}.podSelectors[{index}]: it is empty, so it selects every pod of \
                 the namespace"
            ));
        }
    }
    warnings
}

/// The config with every default written out, for those who ask what is in force. Selectors are in
/// the API server's words.
pub fn to_json(config: &Config) -> Value {
    let services = config.services.iter().map(|Service { name, selectors }| {
        let selectors = selectors.iter().map(|selector| selector.to_string().into());
        (name.to_string(), Value::Array(selectors.collect()))
    });
    json!({
        "watchDuration": GoDuration(config.watch_duration).to_string(),
        "servicesAndDependantSelectors": services.collect::<Map<_, _>>(),
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
    })
}

#[cfg(test)]
mod tests;
