//! The config file as it is written, each key missing or null at times, and what it must hold.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use common::document::Findings;
use go_compat::duration::Seconds;
use go_compat::null::null_as_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::core::Expression;
use serde::{Deserialize, Serialize};
use weeder_core::config::{Config, Service};
use weeder_core::selector::{Selector, has_valid_labels};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    #[serde(default = "Seconds::<300>::value", with = "Seconds::<300>")]
    watch_duration: Duration,
    #[serde(default, deserialize_with = "null_as_default")]
    services_and_dependant_selectors: BTreeMap<String, Option<Entry>>,
    max_deletions_per_owner: Option<NonZeroU32>,
}

/// An entry of `servicesAndDependantSelectors`.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// A null selects nothing, `{}` everything.
    #[serde(default, deserialize_with = "null_as_default")]
    pod_selectors: Vec<Option<PodSelector>>,
}

/// A LabelSelector. Unknown keys are errors: without them it would mean something else (D-83).
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodSelector {
    #[serde(default, deserialize_with = "null_as_default")]
    match_labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_as_default")]
    match_expressions: Vec<Requirement>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    #[serde(default, deserialize_with = "null_as_default")]
    key: String,
    #[serde(default, deserialize_with = "null_as_default")]
    operator: String,
    #[serde(default, deserialize_with = "null_as_default")]
    values: Vec<String>,
}

impl File {
    /// Makes the config, and reports what is wrong.
    pub(super) fn check(self, found: &mut Findings) -> Config {
        let duration = self.watch_duration;
        let services = self.services_and_dependant_selectors;
        let some = "at least one Service, as {kube-apiserver: {podSelectors: [...]}}";
        // A window without duration would close before anything is deleted (D-41).
        found.require("watchDuration", !duration.is_zero(), "a duration above 0");
        found.require("servicesAndDependantSelectors", !services.is_empty(), some);
        let services = services.into_iter();
        Config {
            watch_duration: duration,
            services: services
                .map(|(name, entry)| service(name, entry.unwrap_or_default(), found))
                .collect(),
            max_deletions_per_owner: self.max_deletions_per_owner.map(NonZeroU32::get),
        }
    }
}

fn service(name: String, entry: Entry, found: &mut Findings) -> Service {
    let path = format!("servicesAndDependantSelectors.{name}.podSelectors");
    let some = "a list of at least one label selector";
    found.require(&path, !entry.pod_selectors.is_empty(), some);
    let selectors = entry.pod_selectors.into_iter().enumerate();
    let selectors = selectors.map(|(index, selector)| match selector {
        Some(selector) => selector.check(&format!("{path}[{index}]"), found),
        None => Selector::nothing(),
    });
    Service {
        selectors: selectors.collect(),
        name: name.into(),
    }
}

impl PodSelector {
    fn check(self, path: &str, found: &mut Findings) -> Selector {
        let labels = self
            .match_labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key,
                operator: "In".to_owned(),
                values: vec![value],
            });
        let requirements = labels.chain(self.match_expressions);
        let expressions: Option<Vec<_>> = requirements.map(Requirement::expression).collect();
        let valid = "label keys, In and NotIn with label values, Exists and DoesNotExist without";
        found.require(path, expressions.is_some(), valid);
        expressions.map_or(Selector::nothing(), Selector::all_of)
    }
}

impl Requirement {
    /// Converts by the rules of the API server. kube's conversion has not all of them.
    fn expression(self) -> Option<Expression> {
        let Self {
            key,
            operator,
            values,
        } = self;
        if values.is_empty() != ["Exists", "DoesNotExist"].contains(&operator.as_str()) {
            return None;
        }
        let requirement = LabelSelectorRequirement {
            key,
            operator,
            values: Some(values),
        };
        requirement.try_into().ok().filter(has_valid_labels)
    }
}
