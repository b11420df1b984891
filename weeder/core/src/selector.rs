//! Label selectors of pods, in the form of the config file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use go_compat::null::null_as_default;
use serde::{Deserialize, Serialize};

pub type Labels = BTreeMap<String, String>;

/// A LabelSelector. Unknown keys are errors: without them it would mean something else (D-83).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Selector {
    #[serde(deserialize_with = "null_as_default")]
    pub match_labels: Labels,
    #[serde(deserialize_with = "null_as_default")]
    pub match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    #[serde(default, deserialize_with = "null_as_default")]
    pub key: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub operator: Operator,
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Refused by those who read a file; matches nothing.
    #[default]
    #[serde(rename = "", skip_deserializing)]
    Missing,
}

impl Selector {
    pub fn matches(&self, labels: &Labels) -> bool {
        let (mut equal, mut more) = (self.match_labels.iter(), self.match_expressions.iter());
        equal.all(|(key, value)| labels.get(key) == Some(value))
            && more.all(|requirement| requirement.matches(labels))
    }

    /// All requirements, those on `matchLabels` included.
    pub fn requirements(&self) -> Vec<Requirement> {
        let equal = self.match_labels.iter().map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: BTreeSet::from([value.clone()]),
        });
        equal
            .chain(self.match_expressions.iter().cloned())
            .collect()
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let label = labels.get(&self.key);
        let is_listed = label.is_some_and(|label| self.values.contains(label));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Missing => false,
        }
    }
}

impl fmt::Display for Requirement {
    /// Formats a part of a `labelSelector` query parameter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        let values = values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists | Operator::Missing => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

#[cfg(test)]
mod tests;
