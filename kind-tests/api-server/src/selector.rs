//! Label and field selectors of lists and watches. kube knows what a selector matches, but does not
//! read one.

use std::collections::BTreeMap;

use kube_core::{Expression, Selector, SelectorExt};
use serde::Deserialize;
use serde_json::Value;

use crate::status::{ApiError, bad_request};

/// Which objects of a resource a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub labels: Selector,
    /// Equations of dotted paths.
    pub fields: Vec<Expression>,
}

impl Filter {
    /// Whether an object belongs to the list.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = || BTreeMap::deserialize(&object["metadata"]["labels"]).unwrap_or_default();
        let text = |path: &str| {
            let value = object.pointer(&format!("/{}", path.replace('.', "/")));
            value.and_then(Value::as_str).unwrap_or_default()
        };
        let is_so = |field: &Expression| match field {
            Expression::Equal(path, value) => text(path) == value,
            Expression::NotEqual(path, value) => text(path) != value,
            _ => false,
        };
        (self.labels.selects_all() || self.labels.matches(&labels()))
            && self.fields.iter().all(is_so)
    }

    /// Only those of one namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        let is_there = Expression::Equal("metadata.namespace".to_owned(), namespace.to_owned());
        self.fields.push(is_there);
        self
    }

    /// The one object name that the field selector leaves, if it does.
    pub fn only_name(&self) -> Option<&str> {
        self.fields.iter().find_map(|field| match field {
            Expression::Equal(path, name) if path == "metadata.name" => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Reads a selector: equality and set terms, joined by commas. The comparisons of numbers are not
/// offered.
pub(crate) fn parse<T: FromIterator<Expression>>(text: &str) -> Result<T, ApiError> {
    // Commas part terms, except between parentheses.
    let mut depth = 0;
    let terms = text.split(move |letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    let terms = terms.map(str::trim).filter(|term| !term.is_empty());
    let read = |read: &str| {
        term(read).ok_or_else(|| bad_request(format!("unable to parse requirement: {text:?}")))
    };
    terms.map(read).collect()
}

fn term(term: &str) -> Option<Expression> {
    if let Some((head, values)) = term.strip_suffix(')').and_then(|set| set.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().to_owned());
        return match head.trim().rsplit_once(char::is_whitespace)? {
            (name, "in") => Some(Expression::In(key(name)?, values.collect())),
            (name, "notin") => Some(Expression::NotIn(key(name)?, values.collect())),
            _ => None,
        };
    }
    if let Some(name) = term.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key(name)?));
    }
    let Some((name, value)) = term.split_once('=') else {
        return Some(Expression::Exists(key(term)?));
    };
    // One `=` may be written as two.
    let value = value.strip_prefix('=').unwrap_or(value).trim().to_owned();
    Some(match name.strip_suffix('!') {
        Some(name) => Expression::NotEqual(key(name)?, value),
        None => Expression::Equal(key(name)?, value),
    })
}

fn key(text: &str) -> Option<String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    let key = text.trim();
    (!key.is_empty() && key.chars().all(is_valid)).then(|| key.to_owned())
}
