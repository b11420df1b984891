//! From the fields of a document to a [`Config`] (rule 26).

use std::time::Duration;

use common::document::{Object, Value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::core::Expression;
use weeder_core::config::{Config, Service};
use weeder_core::selector::{Selector, is_label_key, is_label_value};

use super::keys;

/// The Go original's default (rule 26).
const WATCH_DURATION: Duration = Duration::from_secs(5 * 60);

const SERVICES: &str =
    "an object with at least one Service, as {kube-apiserver: {podSelectors: [...]}}";
const SELECTORS: &str = "a list of at least one label selector";
const OPERATORS: &str = "In, NotIn, Exists or DoesNotExist";
const LABEL_KEY: &str = "a label key, as app or example.org/app";
const LABEL_VALUE: &str = "a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit";

/// Reads the whole config; every error is noted in the document, `None` says that there was one.
pub(super) fn config(root: &Object<'_>) -> Option<Config> {
    root.warn_of_unknown(keys::ROOT);
    // Everything is read before the first `?`, so that all errors are found.
    let watch_duration = watch_duration(&root.field("watchDuration"));
    let services = services(&root.field("servicesAndDependantSelectors"));
    let max_deletions_per_owner = max_deletions_per_owner(&root.field("maxDeletionsPerOwner"));
    Some(Config {
        watch_duration: watch_duration?,
        services: services?,
        max_deletions_per_owner: max_deletions_per_owner?,
    })
}

/// A window without duration would close before anything is deleted (D-41).
fn watch_duration(field: &Value<'_>) -> Option<Duration> {
    if field.is_absent() {
        return Some(WATCH_DURATION);
    }
    field.accept(
        field
            .duration()?
            .to_std()
            .filter(|duration| !duration.is_zero()),
        "a duration above 0",
    )
}

fn max_deletions_per_owner(field: &Value<'_>) -> Option<Option<u32>> {
    if field.is_absent() {
        return Some(None);
    }
    let limit = u32::try_from(field.integer()?)
        .ok()
        .filter(|limit| *limit > 0);
    field
        .accept(
            limit,
            "a whole number of at least 1; without the field there is no limit",
        )
        .map(Some)
}

fn services(field: &Value<'_>) -> Option<Vec<Service>> {
    let entries: Vec<_> = field.required(SERVICES).object()?.entries().collect();
    let entries = field.accept(
        Some(entries).filter(|entries| !entries.is_empty()),
        SERVICES,
    )?;
    all(entries.iter().map(|(name, value)| service(name, value)))
}

fn service(name: &str, value: &Value<'_>) -> Option<Service> {
    let is_name = !name.is_empty() && is_label_value(name);
    let name = value.accept(
        is_name.then(|| name.to_owned()),
        "the name of a Service before the colon",
    );
    let service = value.object_or_empty()?;
    service.warn_of_unknown(keys::SERVICE);
    let field = service.field("podSelectors");
    let items = field.required(SELECTORS).items()?;
    let items = field.accept(Some(items).filter(|items| !items.is_empty()), SELECTORS)?;
    let selectors = all(items.iter().map(selector));
    Some(Service {
        name: name?,
        selectors: selectors?,
    })
}

/// A null selects nothing, `{}` everything (rule 26).
fn selector(value: &Value<'_>) -> Option<Selector> {
    if value.is_absent() {
        return Some(Selector::nothing());
    }
    let object = value.object()?;
    object.warn_of_unknown(keys::SELECTOR);
    let labels = object.field("matchLabels").object_or_empty();
    let labels =
        labels.and_then(|labels| all(labels.entries().map(|(key, value)| label(key, &value))));
    let expressions = list(&object.field("matchExpressions"), expression);
    Some(Selector::all_of(labels?.into_iter().chain(expressions?)))
}

fn label(key: &str, value: &Value<'_>) -> Option<Expression> {
    let key = value.accept(is_label_key(key).then(|| key.to_owned()), LABEL_KEY)?;
    Some(Expression::In(key, [label_value(value)?].into()))
}

/// One requirement under the rules of the API server.
fn expression(value: &Value<'_>) -> Option<Expression> {
    let object = value.object_or_empty()?;
    object.warn_of_unknown(keys::EXPRESSION);
    let [key_field, operator_field, values_field] =
        ["key", "operator", "values"].map(|name| object.field(name));
    let key = key_field.required(LABEL_KEY).text();
    let key =
        key.and_then(|key| key_field.accept(Some(key).filter(|key| is_label_key(key)), LABEL_KEY));
    let values = list(&values_field, label_value);
    let operator = operator_field.required(OPERATORS).text()?;
    // Kubernetes minds the case.
    let (compares, expected) = match operator.as_str() {
        "In" | "NotIn" => (true, "at least one value with the operators In and NotIn"),
        "Exists" | "DoesNotExist" => (
            false,
            "no values with the operators Exists and DoesNotExist",
        ),
        _ => return operator_field.accept(None, OPERATORS),
    };
    let values = values_field.accept(
        Some(values?).filter(|values| values.is_empty() != compares),
        expected,
    );
    Expression::try_from(LabelSelectorRequirement {
        key: key?,
        operator,
        values: Some(values?),
    })
    .ok()
}

/// A null is an empty string where Go expects one.
fn label_value(value: &Value<'_>) -> Option<String> {
    let text = if value.is_absent() {
        String::new()
    } else {
        value.text()?
    };
    value.accept(Some(text).filter(|text| is_label_value(text)), LABEL_VALUE)
}

/// What is read of each item; none of them where nothing stands.
fn list<T>(field: &Value<'_>, read: impl Fn(&Value<'_>) -> Option<T>) -> Option<Vec<T>> {
    if field.is_absent() {
        return Some(Vec::new());
    }
    all(field.items()?.iter().map(read))
}

/// Collects in two steps: one bad entry must not hide the errors of the next.
fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}
