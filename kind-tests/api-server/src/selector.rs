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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors_match_by_equality_set_and_existence() {
        let object = json!({"metadata": {"labels": {"role": "apiserver", "tier": "3", "example.org/x": ""}}});
        for (matches, selector) in [
            (true, ""),
            (true, "role"),
            (true, "!absent"),
            (true, "role=apiserver"),
            (true, "role==apiserver"),
            (true, "role!=etcd"),
            (true, "absent!=etcd"),
            (true, "example.org/x="),
            (true, "role in (etcd, apiserver),tier"),
            (true, "role notin (etcd)"),
            (true, "absent notin (etcd)"),
            (true, "role in (apiserver),!absent"),
            (false, "absent"),
            (false, "!role"),
            (false, "role=etcd"),
            (false, "role!=apiserver"),
            (false, "role in (etcd)"),
            (false, "role notin (apiserver,x)"),
            (false, "absent in (x)"),
            (false, "role in (apiserver),absent"),
        ] {
            let filter = Filter {
                labels: parse_labels(selector).unwrap(),
                ..Filter::default()
            };
            assert_eq!(filter.matches(&object), matches, "{selector}");
        }
    }

    #[test]
    fn broken_selectors_are_bad_requests() {
        for broken in ["role in apiserver", "role is (x)", "a b", "=x", "tier>2"] {
            assert_eq!(parse_labels(broken).unwrap_err().code, 400, "{broken}");
        }
        assert_eq!(parse_fields("metadata.name").unwrap_err().code, 400);
    }

    #[test]
    fn fields_match_by_path() {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}});
        let filter = |text: &str| Filter {
            fields: parse_fields(text).unwrap(),
            ..Filter::default()
        };
        assert!(filter("metadata.name=a,metadata.namespace!=m").matches(&object));
        assert!(!filter("metadata.name!=a").matches(&object));
        assert_eq!(filter("metadata.name==a").only_name(), Some("a"));
    }
}
