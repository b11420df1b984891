//! Every key of the config file with the field it is read into (rule 26): what it takes, its
//! default, what it means. The reader and docs/configure.md are made of these tables.

use std::time::Duration;

use common::config_object;
use common::document::ConfigValue;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::core::Expression;
use weeder_core::config::{Config, Service};
use weeder_core::selector::{Selector, is_label_key, is_label_value};

const LABEL_KEY: &str = "a label key, as app or example.org/app";
const LABEL_VALUE: &str = "a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit";

config_object! {
    ROOT, root -> Config {
        // A window without duration would close before anything is deleted (D-41).
        watch_duration = |value| value.duration_of_at_least(Duration::from_nanos(1)), "watchDuration",
            "a duration above 0", "5m0s", "How long crash-looping pods are deleted after their Service became ready";
        services = services, "servicesAndDependantSelectors",
            "an object with at least one Service, as {kube-apiserver: {podSelectors: [...]}}", "",
            "Which pods wait for which Service, in each namespace that has it";
        max_deletions_per_owner = |value| value.optional(limit), "maxDeletionsPerOwner",
            "a whole number of at least 1; without the field there is no limit", "null",
            "How many pods of one owner are deleted at most after one recovery. Not in the Go original";
    }
}

/// An entry of `servicesAndDependantSelectors`.
struct ServiceEntry {
    pod_selectors: Vec<Selector>,
}

config_object! {
    SERVICE, entry -> ServiceEntry {
        pod_selectors = selectors, "podSelectors", "a list of at least one label selector", "",
            "The pods that wait for the Service are those that any of these selects";
    }
}

struct LabelSelector {
    match_labels: Vec<Expression>,
    match_expressions: Vec<Expression>,
}

config_object! {
    strict SELECTOR, label_selector -> LabelSelector {
        match_labels = |value| value.entries(label),
            "matchLabels", "an object of labels", "{}", "Labels that the pod must have";
        match_expressions = |value| value.list(expression), "matchExpressions", "a list", "[]",
            "Requirements on its labels";
    }
}

config_object! {
    strict EXPRESSION, requirement -> LabelSelectorRequirement {
        key = |value| value.check(value.text()?, |key| is_label_key(key)), "key",
            "a label key, as app or example.org/app", "", "The label";
        operator = |value| value.check(value.text()?, |operator| OPERATORS.contains(&operator.as_str())), "operator",
            "In, NotIn, Exists or DoesNotExist", "", "How the label relates to the values";
        values = |value| value.list(label_value).map(Some), "values", "a list of label values", "[]",
            "With In and NotIn at least one";
    }
}

/// Kubernetes minds their case.
const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

fn limit(value: &ConfigValue<'_>) -> Option<u32> {
    let limit = u32::try_from(value.integer()?).unwrap_or_default();
    value.check(limit, |limit| *limit > 0)
}

fn services(value: &ConfigValue<'_>) -> Option<Vec<Service>> {
    value.check(value.entries(service)?, |services| !services.is_empty())
}

fn service(name: &str, value: &ConfigValue<'_>) -> Option<Service> {
    let is_name = !name.is_empty() && is_label_value(name);
    let name = value.accept(
        is_name.then_some(name),
        "the name of a Service before the colon",
    );
    let selectors = entry(value)?.pod_selectors;
    Some(Service {
        name: name?.into(),
        selectors,
    })
}

fn selectors(value: &ConfigValue<'_>) -> Option<Vec<Selector>> {
    value.check(value.list(selector)?, |selectors| !selectors.is_empty())
}

/// A null selects nothing, `{}` everything.
fn selector(value: &ConfigValue<'_>) -> Option<Selector> {
    if value.is_absent() {
        return Some(Selector::nothing());
    }
    let LabelSelector {
        match_labels,
        match_expressions,
    } = label_selector(value)?;
    Some(Selector::all_of(
        match_labels.into_iter().chain(match_expressions),
    ))
}

fn label(key: &str, value: &ConfigValue<'_>) -> Option<Expression> {
    let key = value.accept(is_label_key(key).then_some(key), LABEL_KEY)?;
    Some(Expression::In(key.to_owned(), [label_value(value)?].into()))
}

/// One requirement under the rules of the API server.
fn expression(value: &ConfigValue<'_>) -> Option<Expression> {
    let requirement = requirement(value)?;
    let needs_values = ["In", "NotIn"].contains(&requirement.operator.as_str());
    let expected = if needs_values {
        "at least one value with the operators In and NotIn"
    } else {
        "no values with the operators Exists and DoesNotExist"
    };
    let has_values = requirement
        .values
        .as_ref()
        .is_some_and(|values| !values.is_empty());
    value
        .field("values")
        .accept((has_values == needs_values).then_some(()), expected)?;
    Expression::try_from(requirement).ok()
}

fn label_value(value: &ConfigValue<'_>) -> Option<String> {
    value.accept(
        Some(value.text()?).filter(|text| is_label_value(text)),
        LABEL_VALUE,
    )
}
