//! Label selectors: what they match, and what several of them have in common. kube's
//! [`Expression`]s do the matching.
//!
//! What expressions on one key allow together is found by trying each value that they mention, one
//! that none mentions, and no label.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube_core::{Expression, SelectorExt};

pub type Labels = BTreeMap<String, String>;

/// No label has this value, so no expression mentions it.
const UNMENTIONED: &str = "?";

/// Which objects are meant, by their labels: with at most two expressions per key, ordered by key;
/// none: nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Option<kube_core::Selector>);

impl Selector {
    /// Selects what fulfils all expressions; with none of them, everything.
    pub fn all_of(expressions: impl IntoIterator<Item = Expression>) -> Self {
        Self(either(&[expressions.into_iter().collect()]))
    }

    pub const fn nothing() -> Self {
        Self(None)
    }

    /// Whether no labels at all could match.
    pub const fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.0
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }

    /// A selector that matches whatever one of `selectors` does, and as little else as can be asked
    /// of the API server key by key.
    pub fn common<'a>(selectors: impl IntoIterator<Item = &'a Self>) -> Self {
        let alternatives = selectors
            .into_iter()
            .filter_map(|selector| selector.0.clone());
        let alternatives: Vec<Vec<Expression>> = alternatives
            .map(|selector| selector.into_iter().collect())
            .collect();
        Self(either(&alternatives))
    }
}

impl fmt::Display for Selector {
    /// Writes what the API server takes as `labelSelector`. A selector of nothing cannot be said
    /// there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|selector| selector.fmt(f))
    }
}

/// What one of the alternatives allows, of which each is a list of expressions that must all hold;
/// none when nothing can.
fn either(alternatives: &[Vec<Expression>]) -> Option<kube_core::Selector> {
    if alternatives.is_empty() {
        return None;
    }
    let keys: BTreeSet<&str> = alternatives
        .iter()
        .flatten()
        .map(|expression| parts(expression).0)
        .collect();
    let per_key: Option<Vec<_>> = keys
        .into_iter()
        .map(|key| either_on(key, alternatives))
        .collect();
    Some(per_key?.into_iter().flatten().collect())
}

/// What one of the alternatives allows on this key. That a label may be absent or have one of a few
/// values cannot be said to the API server: then nothing is said of the key.
fn either_on(key: &str, alternatives: &[Vec<Expression>]) -> Option<Vec<Expression>> {
    let allows = |label: Option<&str>| {
        let labels: Labels = label
            .map(|label| (key.to_owned(), label.to_owned()))
            .into_iter()
            .collect();
        let holds =
            |expression: &Expression| parts(expression).0 != key || expression.matches(&labels);
        alternatives
            .iter()
            .any(|expressions| expressions.iter().all(holds))
    };
    let of_key = alternatives
        .iter()
        .flatten()
        .map(parts)
        .filter(|(of, _)| *of == key);
    let mentioned: BTreeSet<&String> = of_key.filter_map(|(_, values)| values).flatten().collect();
    let (allowed, refused): (BTreeSet<_>, BTreeSet<_>) = mentioned
        .into_iter()
        .cloned()
        .partition(|value| allows(Some(value)));
    let not_in = (!refused.is_empty()).then(|| Expression::NotIn(key.to_owned(), refused));
    match (allows(None), allows(Some(UNMENTIONED))) {
        (true, true) => Some(not_in.into_iter().collect()),
        (false, true) => Some(
            std::iter::once(Expression::Exists(key.to_owned()))
                .chain(not_in)
                .collect(),
        ),
        (false, false) => {
            (!allowed.is_empty()).then(|| vec![Expression::In(key.to_owned(), allowed)])
        }
        (true, false) if allowed.is_empty() => Some(vec![Expression::DoesNotExist(key.to_owned())]),
        (true, false) => Some(Vec::new()),
    }
}

/// The key and, of the two operators in use that have any, the values.
fn parts(expression: &Expression) -> (&str, Option<&BTreeSet<String>>) {
    match expression {
        Expression::In(key, values) | Expression::NotIn(key, values) => (key, Some(values)),
        Expression::Exists(key)
        | Expression::DoesNotExist(key)
        | Expression::Equal(key, _)
        | Expression::NotEqual(key, _) => (key, None),
    }
}

/// Whether the API server takes `text` as a label's key: a name, with a DNS subdomain and a slash
/// before it if need be.
pub fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// Whether the API server takes `text` as a label's value.
pub fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63
        && text.bytes().all(inner)
        && has_ends(text, |byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| lower(byte) || byte == b'-')
            && has_ends(part, lower)
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether the first and the last byte are as they must be; true for an empty text.
fn has_ends(text: &str, is_end: impl Fn(u8) -> bool) -> bool {
    [text.bytes().next(), text.bytes().next_back()]
        .into_iter()
        .flatten()
        .all(is_end)
}

#[cfg(test)]
mod tests;
