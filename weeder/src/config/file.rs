//! The config file as it is written, and what it must hold.

use std::collections::BTreeMap;
use std::time::Duration;

use common::document::Findings;
use kube::core::Expression;
use serde::{Deserialize, Serialize};
use weeder_core::config::{Config, Service};
use weeder_core::selector::{Selector, is_label_key, is_label_value};

const LABEL_KEY: &str = "a label key, as app or example.org/app";
const LABEL_VALUE: &str = "a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit";

#[derive(Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct File {
    #[serde(with = "go_compat::duration")]
    watch_duration: Duration,
    services_and_dependant_selectors: BTreeMap<String, Option<Entry>>,
    max_deletions_per_owner: Option<i32>,
}

/// An entry of `servicesAndDependantSelectors`.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    /// A null selects nothing, `{}` everything.
    pod_selectors: Vec<Option<LabelSelector>>,
}

/// Unknown keys are errors: without them a selector would mean something else (D-83).
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct LabelSelector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Requirement>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Requirement {
    key: String,
    operator: Option<Operator>,
    values: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, Serialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Default for File {
    fn default() -> Self {
        Self {
            watch_duration: Duration::from_secs(5 * 60),
            services_and_dependant_selectors: BTreeMap::new(),
            max_deletions_per_owner: None,
        }
    }
}

impl File {
    /// Returns a file with every key there is, each with its default.
    pub fn every_key() -> Self {
        let values = vec![String::new()];
        let requirement = Requirement {
            values,
            ..Requirement::default()
        };
        let selector = LabelSelector {
            match_labels: BTreeMap::from([Default::default()]),
            match_expressions: vec![requirement],
        };
        let entry = Entry {
            pod_selectors: vec![Some(selector)],
        };
        Self {
            services_and_dependant_selectors: BTreeMap::from([(String::new(), Some(entry))]),
            ..Self::default()
        }
    }

    /// Converts what is in the file, and reports what is wrong.
    pub(super) fn check(self, found: &mut Findings) -> Config {
        let services = self.services_and_dependant_selectors;
        let limit = self.max_deletions_per_owner;
        for (key, is_met, expected) in [
            // A window without duration would close before anything is deleted (D-41).
            (
                "watchDuration",
                !self.watch_duration.is_zero(),
                "a duration above 0",
            ),
            (
                "servicesAndDependantSelectors",
                !services.is_empty(),
                "an object with at least one Service, as {kube-apiserver: {podSelectors: [...]}}",
            ),
            (
                "maxDeletionsPerOwner",
                limit.is_none_or(|limit| limit > 0),
                "a whole number of at least 1; without the field there is no limit",
            ),
        ] {
            found.require(key, is_met, expected);
        }
        Config {
            watch_duration: self.watch_duration,
            services: services
                .into_iter()
                .map(|(name, entry)| service(name, entry.unwrap_or_default(), found))
                .collect(),
            max_deletions_per_owner: limit.and_then(|limit| limit.try_into().ok()),
        }
    }
}

fn service(name: String, entry: Entry, found: &mut Findings) -> Service {
    let path = format!("servicesAndDependantSelectors.{name}");
    let is_name = !name.is_empty() && is_label_value(&name);
    found.require(&path, is_name, "the name of a Service before the colon");
    let path = format!("{path}.podSelectors");
    found.require(
        &path,
        !entry.pod_selectors.is_empty(),
        "a list of at least one label selector",
    );
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

impl LabelSelector {
    fn check(self, path: &str, found: &mut Findings) -> Selector {
        let mut expressions = Vec::new();
        for (key, value) in self.match_labels {
            let path = format!("{path}.matchLabels.{key}");
            found.require(&path, is_label_key(&key), LABEL_KEY);
            found.require(&path, is_label_value(&value), LABEL_VALUE);
            expressions.push(Expression::In(key, [value].into()));
        }
        for (index, requirement) in self.match_expressions.into_iter().enumerate() {
            let path = format!("{path}.matchExpressions[{index}]");
            expressions.extend(requirement.check(&path, found));
        }
        Selector::all_of(expressions)
    }
}

impl Requirement {
    /// Checks the rules of the API server.
    fn check(self, path: &str, found: &mut Findings) -> Option<Expression> {
        let Self {
            key,
            operator,
            values,
        } = self;
        let needs_values = matches!(operator, Some(Operator::In | Operator::NotIn));
        found.require(&format!("{path}.key"), is_label_key(&key), LABEL_KEY);
        found.require(
            &format!("{path}.operator"),
            operator.is_some(),
            "In, NotIn, Exists or DoesNotExist",
        );
        found.require(
            &format!("{path}.values"),
            operator.is_none() || needs_values != values.is_empty(),
            if needs_values {
                "at least one value with the operators In and NotIn"
            } else {
                "no values with the operators Exists and DoesNotExist"
            },
        );
        for (index, value) in values.iter().enumerate() {
            found.require(
                &format!("{path}.values[{index}]"),
                is_label_value(value),
                LABEL_VALUE,
            );
        }
        let values = values.into_iter().collect();
        Some(match operator? {
            Operator::In => Expression::In(key, values),
            Operator::NotIn => Expression::NotIn(key, values),
            Operator::Exists => Expression::Exists(key),
            Operator::DoesNotExist => Expression::DoesNotExist(key),
        })
    }
}
