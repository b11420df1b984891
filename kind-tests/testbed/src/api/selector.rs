//! Label and field selectors of lists and watches.

use serde_json::Value;

use crate::api::status::ApiError;

/// Which objects of a resource a list or watch is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    pub labels: Vec<Requirement>,
    pub fields: Vec<FieldTerm>,
}

/// One term of a label selector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldTerm {
    pub path: String,
    pub value: String,
    pub equal: bool,
}

impl Filter {
    /// Whether an object belongs to the list.
    pub fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let in_namespace = self.namespace.as_deref().is_none_or(|wanted| metadata["namespace"].as_str() == Some(wanted));
        in_namespace
            && self.labels.iter().all(|requirement| requirement.matches(&metadata["labels"]))
            && self.fields.iter().all(|term| term.matches(object))
    }

    /// The one object name that the field selector leaves, if it does.
    pub fn only_name(&self) -> Option<&str> {
        self.fields.iter().find(|term| term.equal && term.path == "metadata.name").map(|term| term.value.as_str())
    }
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let value = labels[&self.key].as_str();
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(wanted) => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
            Test::NotIn(unwanted) => value.is_none_or(|value| unwanted.iter().all(|one| one != value)),
            Test::Above(bound) => value.and_then(|value| value.parse::<i64>().ok()).is_some_and(|value| value > *bound),
            Test::Below(bound) => value.and_then(|value| value.parse::<i64>().ok()).is_some_and(|value| value < *bound),
        }
    }
}

impl FieldTerm {
    fn matches(&self, object: &Value) -> bool {
        let mut found = object;
        for part in self.path.split('.') {
            found = &found[part];
        }
        (found.as_str().unwrap_or_default() == self.value) == self.equal
    }
}

/// Reads a label selector: equality and set terms, joined by commas.
pub(crate) fn parse_labels(text: &str) -> Result<Vec<Requirement>, ApiError> {
    let refuse = || ApiError::bad_request(format!("unable to parse requirement: {text:?}"));
    split_terms(text).into_iter().map(|term| parse_requirement(term).ok_or_else(refuse)).collect()
}

/// Commas part terms, except between parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.retain(|term| !term.trim().is_empty());
    terms
}

fn parse_requirement(term: &str) -> Option<Requirement> {
    let term = term.trim();
    let made = |key: &str, test: Test| valid_key(key.trim()).then(|| Requirement { key: key.trim().to_owned(), test });
    if let Some(list) = term.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => made(key, Test::In(values)),
            "notin" => made(key, Test::NotIn(values)),
            _ => None,
        };
    }
    if let Some(key) = term.strip_prefix('!') {
        return made(key, Test::Absent);
    }
    if let Some((key, value)) = term.split_once("!=") {
        return made(key, Test::NotIn(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return made(key, Test::In(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = term.split_once('>') {
        return made(key, Test::Above(value.trim().parse().ok()?));
    }
    if let Some((key, value)) = term.split_once('<') {
        return made(key, Test::Below(value.trim().parse().ok()?));
    }
    made(term, Test::Exists)
}

fn valid_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
}

/// Reads a field selector. Any field may be named; a real server knows name, namespace and a few more per kind.
pub(crate) fn parse_fields(text: &str) -> Result<Vec<FieldTerm>, ApiError> {
    let refuse = || ApiError::bad_request(format!("invalid field selector: {text:?}"));
    let terms = text.split(',').filter(|term| !term.trim().is_empty());
    terms
        .map(|term| {
            let split = term.split_once("!=").map(|pair| (pair, false));
            let split = split.or_else(|| term.split_once("==").or_else(|| term.split_once('=')).map(|pair| (pair, true)));
            let ((path, value), equal) = split.ok_or_else(refuse)?;
            Ok(FieldTerm { path: path.trim().to_owned(), value: value.trim().to_owned(), equal })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: &str, labels: &Value) -> bool {
        parse_labels(selector).unwrap().iter().all(|requirement| requirement.matches(labels))
    }

    #[test]
    fn label_selectors_follow_the_full_syntax() {
        let labels = json!({"role": "apiserver", "tier": "3", "example.org/x": ""});
        for yes in [
            "",
            "role",
            "!absent",
            "role=apiserver",
            "role==apiserver",
            "role!=etcd",
            "absent!=etcd",
            "example.org/x=",
            "role in (etcd, apiserver),tier",
            "role notin (etcd)",
            "absent notin (etcd)",
            "tier>2",
            "tier < 4",
            "role in (apiserver),!absent",
        ] {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in [
            "absent",
            "!role",
            "role=etcd",
            "role!=apiserver",
            "role in (etcd)",
            "role notin (apiserver,x)",
            "absent in (x)",
            "tier>3",
            "absent<1",
        ] {
            assert!(!selects(no, &labels), "{no}");
        }
    }

    #[test]
    fn broken_selectors_are_bad_requests() {
        for broken in ["role in apiserver", "role is (x)", "a b", "=x", "tier>many"] {
            assert_eq!(parse_labels(broken).unwrap_err().code, 400, "{broken}");
        }
        assert_eq!(parse_fields("metadata.name").unwrap_err().code, 400);
    }

    #[test]
    fn fields_match_by_path() {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}});
        let filter = |text: &str| Filter { fields: parse_fields(text).unwrap(), ..Filter::default() };
        assert!(filter("metadata.name=a,metadata.namespace!=m").matches(&object));
        assert!(!filter("metadata.name!=a").matches(&object));
        assert_eq!(filter("metadata.name==a").only_name(), Some("a"));
    }
}
