//! Label and field selectors of lists and watches. kube knows what a selector matches, but does not
//! read one.

use std::collections::BTreeMap;

use kube_core::{Expression, Selector, SelectorExt};
use serde::Deserialize;
use serde_json::Value;

use crate::object::metadata;
use crate::status::{ApiError, bad_request};

/// Which objects of a resource a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    pub labels: Selector,
    /// Equations of dotted paths.
    pub fields: Vec<Expression>,
}

impl Filter {
    /// Whether an object belongs to the list.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = || BTreeMap::deserialize(&object["metadata"]["labels"]).unwrap_or_default();
        let namespace = self.namespace.as_deref();
        namespace.is_none_or(|namespace| metadata(object, "namespace") == namespace)
            && (self.labels.selects_all() || self.labels.matches(&labels()))
            && self.fields.iter().all(|field| has_field(object, field))
    }

    /// The one object name that the field selector leaves, if it does.
    pub fn only_name(&self) -> Option<&str> {
        self.fields.iter().find_map(|field| match field {
            Expression::Equal(path, name) if path == "metadata.name" => Some(name.as_str()),
            _ => None,
        })
    }
}

fn has_field(object: &Value, field: &Expression) -> bool {
    let (Expression::Equal(path, _) | Expression::NotEqual(path, _)) = field else {
        return false;
    };
    let value = object.pointer(&format!("/{}", path.replace('.', "/")));
    let value = value.and_then(Value::as_str).unwrap_or_default();
    field.matches(&BTreeMap::from([(path.clone(), value.to_owned())]))
}

/// Reads a label selector: equality and set terms, joined by commas. The comparisons of numbers are
/// not offered.
pub(crate) fn parse_labels(text: &str) -> Result<Selector, ApiError> {
    let refuse = || bad_request(format!("unable to parse requirement: {text:?}"));
    // Commas part terms, except between parentheses.
    let mut depth = 0;
    let terms = text.split(move |letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    let terms = terms.map(str::trim).filter(|term| !term.is_empty());
    terms
        .map(|term| label_term(term).ok_or_else(refuse))
        .collect()
}

fn label_term(term: &str) -> Option<Expression> {
    if let Some((head, values)) = term.strip_suffix(')').and_then(|set| set.split_once('(')) {
        let values = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        return match head.trim().rsplit_once(char::is_whitespace)? {
            (name, "in") => Some(Expression::In(key(name)?, values)),
            (name, "notin") => Some(Expression::NotIn(key(name)?, values)),
            _ => None,
        };
    }
    if let Some(name) = term.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key(name)?));
    }
    equation(term).or_else(|| Some(Expression::Exists(key(term)?)))
}

/// Reads `key=value`, `key==value` or `key!=value`.
fn equation(term: &str) -> Option<Expression> {
    let read = |operator| {
        let (name, value) = term.split_once(operator)?;
        Some((key(name)?, value.trim().to_owned()))
    };
    if let Some((name, value)) = read("!=") {
        return Some(Expression::NotEqual(name, value));
    }
    let (name, value) = read("==").or_else(|| read("="))?;
    Some(Expression::Equal(name, value))
}

fn key(text: &str) -> Option<String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    let key = text.trim();
    (!key.is_empty() && key.chars().all(is_valid)).then(|| key.to_owned())
}

/// Reads a field selector. Any field may be named; a real server knows name, namespace and a few
/// more per kind.
pub(crate) fn parse_fields(text: &str) -> Result<Vec<Expression>, ApiError> {
    let refuse = || bad_request(format!("invalid field selector: {text:?}"));
    let terms = text.split(',').filter(|term| !term.trim().is_empty());
    terms
        .map(|term| equation(term).ok_or_else(refuse))
        .collect()
}
