//! Label selectors: matching, and the common part of several selectors. kube's [`Expression`] does
//! the matching.
//!
//! The values that several expressions on one key allow are found by testing each value that they
//! mention, one that they do not mention, and an absent label.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube_core::{Expression, SelectorExt};

pub type Labels = BTreeMap<String, String>;

/// No label has this value, so no expression mentions it.
const UNMENTIONED: &str = "?";

/// Expressions on labels, all of which must match: at most two per key, ordered by key. `None`
/// selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Option<Vec<Expression>>);

impl Selector {
    /// Selects objects that match all expressions; an empty list selects everything.
    pub fn all_of(expressions: impl IntoIterator<Item = Expression>) -> Self {
        Self::any_of(&[expressions.into_iter().collect()])
    }

    pub const fn nothing() -> Self {
        Self(None)
    }

    /// True if no labels can match.
    pub const fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// True if all labels match.
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        let expressions = self.0.as_ref();
        expressions.is_some_and(|all| all.iter().all(|expression| expression.matches(labels)))
    }

    /// Selector that matches everything that any of `selectors` does, and as little else as an API
    /// server can be queried for, key by key.
    pub fn common<'a>(selectors: impl IntoIterator<Item = &'a Self>) -> Self {
        let alternatives: Vec<_> = selectors
            .into_iter()
            .filter_map(|selector| selector.0.clone())
            .collect();
        Self::any_of(&alternatives)
    }

    fn any_of(alternatives: &[Vec<Expression>]) -> Self {
        if alternatives.is_empty() {
            return Self::nothing();
        }
        let expressions = alternatives.iter().flatten();
        let keys: BTreeSet<&str> = expressions.map(|expression| parts(expression).0).collect();
        let per_key: Option<Vec<_>> = keys
            .into_iter()
            .map(|key| any_on_key(key, alternatives))
            .collect();
        Self(per_key.map(|expressions| expressions.concat()))
    }
}

impl fmt::Display for Selector {
    /// Formats a `labelSelector` query parameter, which cannot express an empty selection.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expressions = self.0.iter().flatten().map(ToString::to_string);
        f.write_str(&expressions.collect::<Vec<_>>().join(","))
    }
}

/// Expressions for everything that any alternative allows on this key, or `None` if that is nothing.
/// Empty if the API server cannot be queried for it: no expression matches an absent label as well
/// as certain values.
fn any_on_key(key: &str, alternatives: &[Vec<Expression>]) -> Option<Vec<Expression>> {
    let allows = |label: Option<&str>| {
        let label = label.map(|label| (key.to_owned(), label.to_owned()));
        let labels = Labels::from_iter(label);
        let holds =
            |expression: &Expression| parts(expression).0 != key || expression.matches(&labels);
        alternatives
            .iter()
            .any(|expressions| expressions.iter().all(holds))
    };
    let expressions = alternatives.iter().flatten().map(parts);
    let mentioned: BTreeSet<&String> = expressions
        .filter(|(of, _)| *of == key)
        .filter_map(|(_, values)| values)
        .flatten()
        .collect();
    let (allowed, refused): (BTreeSet<String>, BTreeSet<String>) = mentioned
        .into_iter()
        .cloned()
        .partition(|value| allows(Some(value)));
    let not_refused = (!refused.is_empty()).then(|| Expression::NotIn(key.to_owned(), refused));
    let key = key.to_owned();
    match (allows(None), allows(Some(UNMENTIONED))) {
        (true, true) => Some(Vec::from_iter(not_refused)),
        (false, true) => {
            let exists = std::iter::once(Expression::Exists(key));
            Some(exists.chain(not_refused).collect())
        }
        (true, false) if allowed.is_empty() => Some(vec![Expression::DoesNotExist(key)]),
        (true, false) => Some(vec![]),
        (false, false) if allowed.is_empty() => None,
        (false, false) => Some(vec![Expression::In(key, allowed)]),
    }
}

/// The key and, for the two operators that have them, the values.
fn parts(expression: &Expression) -> (&str, Option<&BTreeSet<String>>) {
    match expression {
        Expression::In(key, values) | Expression::NotIn(key, values) => (key, Some(values)),
        Expression::Exists(key)
        | Expression::DoesNotExist(key)
        | Expression::Equal(key, _)
        | Expression::NotEqual(key, _) => (key, None),
    }
}

/// Characters allowed in label keys and values besides letters and digits, except at their ends.
const PUNCTUATION: [char; 3] = ['-', '_', '.'];

/// True if the API server accepts the expression's key and values.
pub fn has_valid_labels(expression: &Expression) -> bool {
    let (key, values) = parts(expression);
    is_label_key(key)
        && values
            .into_iter()
            .flatten()
            .all(|value| is_label_value(value))
}

/// True if the API server accepts `text` as a label key: a name, optionally after a DNS subdomain
/// and a slash.
fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// True if the API server accepts `text` as a label value.
fn is_label_value(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(&c);
    text.len() <= 63
        && text.chars().all(is_allowed)
        && !text.starts_with(PUNCTUATION)
        && !text.ends_with(PUNCTUATION)
}

fn is_subdomain(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        !part.is_empty()
            && part.chars().all(is_allowed)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests;
