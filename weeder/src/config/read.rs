//! From the fields of a document to a [`Config`] (rule 26).

use std::time::Duration;

use common::document::{Object, Value};

use super::{Config, Service, keys};
use crate::core::selector::{Operator, Requirement, RequirementError, Selector, is_label_value};

/// The Go original's default (rule 26).
const WATCH_DURATION: Duration = Duration::from_secs(5 * 60);

const SERVICES: &str = "an object with at least one Service, as {kube-apiserver: {podSelectors: [...]}}";
const SELECTORS: &str = "a list of at least one label selector";
const OPERATORS: &str = "In, NotIn, Exists or DoesNotExist";

/// Reads the whole config; every error is noted in the document, `None` says that there was one.
pub(super) fn config(root: &Object<'_>) -> Option<Config> {
    root.warn_of_unknown(keys::ROOT);
    // Everything is read before the first `?`, so that all errors are found.
    let watch_duration = watch_duration(&root.field("watchDuration"));
    let services = services(&root.field("servicesAndDependantSelectors"));
    let max_deletions_per_owner = max_deletions_per_owner(&root.field("maxDeletionsPerOwner"));
    Some(Config { watch_duration: watch_duration?, services: services?, max_deletions_per_owner: max_deletions_per_owner? })
}

/// A window without duration would close before anything is deleted (D-41).
fn watch_duration(field: &Value<'_>) -> Option<Duration> {
    if field.is_absent() {
        return Some(WATCH_DURATION);
    }
    field.accept(field.duration()?.to_std().filter(|duration| !duration.is_zero()), "a duration above 0")
}

fn max_deletions_per_owner(field: &Value<'_>) -> Option<Option<u32>> {
    if field.is_absent() {
        return Some(None);
    }
    let limit = u32::try_from(field.integer()?).ok().filter(|limit| *limit > 0);
    field.accept(limit, "a whole number of at least 1; without the field there is no limit").map(Some)
}

fn services(field: &Value<'_>) -> Option<Vec<Service>> {
    let entries: Vec<_> = field.required(SERVICES).object()?.entries().collect();
    if entries.is_empty() {
        field.refuse(SERVICES);
        return None;
    }
    let services: Vec<_> = entries.into_iter().map(|(name, value)| service(name, &value)).collect();
    services.into_iter().collect()
}

fn service(name: &str, value: &Value<'_>) -> Option<Service> {
    let is_name = !name.is_empty() && is_label_value(name);
    if !is_name {
        value.refuse("the name of a Service before the colon");
    }
    let service = value.object_or_empty()?;
    service.warn_of_unknown(keys::SERVICE);
    let field = service.field("podSelectors");
    let items = field.required(SELECTORS).items()?;
    if items.is_empty() {
        field.refuse(SELECTORS);
        return None;
    }
    let selectors: Vec<_> = items.iter().map(selector).collect();
    let selectors = selectors.into_iter().collect::<Option<_>>()?;
    is_name.then(|| Service { name: name.to_owned(), selectors })
}

/// A null selects nothing, `{}` everything (rule 26).
fn selector(value: &Value<'_>) -> Option<Selector> {
    if value.is_absent() {
        return Some(Selector::nothing());
    }
    let object = value.object()?;
    object.warn_of_unknown(keys::SELECTOR);
    let labels = object.field("matchLabels");
    let labels =
        labels.object_or_empty().map(|labels| labels.entries().map(|(key, value)| label(key, &value)).collect::<Vec<_>>());
    let expressions = object.field("matchExpressions");
    let expressions = if expressions.is_absent() { Some(Vec::new()) } else { expressions.items() };
    let expressions = expressions.map(|items| items.iter().map(expression).collect::<Vec<_>>());
    let requirements: Option<Vec<_>> = labels?.into_iter().chain(expressions?).collect();
    Some(Selector::all_of(requirements?))
}

fn label(key: &str, value: &Value<'_>) -> Option<Requirement> {
    // A null is an empty string where Go expects one.
    let text = if value.is_absent() { String::new() } else { value.text()? };
    Requirement::try_new(key, Operator::In, vec![text]).map_err(|error| value.refuse(error.to_string())).ok()
}

fn expression(value: &Value<'_>) -> Option<Requirement> {
    let object = value.object_or_empty()?;
    object.warn_of_unknown(keys::EXPRESSION);
    let (key_field, operator_field, values_field) = (object.field("key"), object.field("operator"), object.field("values"));
    let key = key_field.required("a label key, as app or example.org/app").text();
    let operator = operator_field.required(OPERATORS).text();
    let operator = operator.and_then(|name| operator_field.accept(Operator::named(&name), OPERATORS));
    let items = if values_field.is_absent() { Vec::new() } else { values_field.items()? };
    let values: Option<Vec<String>> =
        items.iter().map(|item| if item.is_absent() { Some(String::new()) } else { item.text() }).collect();
    Requirement::try_new(&key?, operator?, values?)
        .map_err(|error| match error {
            RequirementError::Key => key_field.refuse(error.to_string()),
            RequirementError::NoValues | RequirementError::Values => values_field.refuse(error.to_string()),
            RequirementError::Value(index) => items[index].refuse(error.to_string()),
        })
        .ok()
}
