//! The weeder's config file (rule 26).

mod labels;

use common::document::{self, Findings, Loaded, Problems};
use weeder_core::config::{Config, Dependants};
use weeder_core::selector::{Operator, Requirement, Selector};

use self::labels::{is_label_key, is_label_value};

pub fn parse(text: &str) -> Result<Loaded<Config>, Problems> {
    document::parse(text, |config: Config, found| {
        check(&config, found);
        found.warnings.extend(warnings(&config));
        config
    })
}

/// Reports what is out of range.
fn check(config: &Config, found: &mut Findings) {
    let some = "at least one Service, as {kube-apiserver: {podSelectors: [...]}}";
    // A window without duration would close before anything is deleted (D-41).
    let duration = "a duration above 0";
    found.require("watchDuration", !config.watch_duration.is_zero(), duration);
    found.require(
        "servicesAndDependantSelectors",
        !config.services.is_empty(),
        some,
    );
    for (name, Dependants { pod_selectors }) in &config.services {
        let path = format!("servicesAndDependantSelectors.{name}.podSelectors");
        let some = "a list of at least one label selector";
        found.require(&path, !pod_selectors.is_empty(), some);
        for (index, selector) in pod_selectors.iter().enumerate() {
            let mut all = selector.iter().flat_map(Selector::requirements);
            let valid =
                "label keys, In and NotIn with label values, Exists and DoesNotExist without";
            found.require(&format!("{path}[{index}]"), all.all(is_valid), valid);
        }
    }
}

/// True if an API server accepts it.
fn is_valid(
    Requirement {
        key,
        operator,
        values,
    }: Requirement,
) -> bool {
    let takes_none = matches!(operator, Operator::Exists | Operator::DoesNotExist);
    operator != Operator::Missing
        && is_label_key(&key)
        && values.is_empty() == takes_none
        && values.iter().all(|value| is_label_value(value))
}

/// Returns one sentence on each selector of every pod, which is more than its author may think.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, Dependants { pod_selectors }) in &config.services {
        for (index, selector) in pod_selectors.iter().enumerate() {
            if *selector == Some(Selector::default()) {
                let path = format!("servicesAndDependantSelectors.{name}.podSelectors[{index}]");
                warnings.push(format!(
                    "{path}: it is empty, so it selects every pod of the namespace"
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
