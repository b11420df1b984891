//! Label selectors: what they match, and what several of them have in common.
//!
//! A selector is kept as what it allows per label key. That form is closed under "both" (one selector's requirements)
//! and, per key, under "either" (what several selectors have in common), so one type serves matching and narrowing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Which objects are meant, by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// What each key must be; none: nothing is selected. A key that is not here may be anything.
    keys: Option<BTreeMap<String, Allowed>>,
}

/// One requirement, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    allowed: Allowed,
}

/// How a requirement relates a key to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// Why a requirement makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// The key.
    #[error("a label key, as app or example.org/app")]
    Key,
    /// In and NotIn compare with values.
    #[error("at least one value with the operators In and NotIn")]
    NoValues,
    /// Exists and DoesNotExist do not.
    #[error("no values with the operators Exists and DoesNotExist")]
    Values,
    /// The value with this index.
    #[error("a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit")]
    Value(usize),
}

/// What one label may be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    /// Whether the label may be absent.
    absent: bool,
    values: Values,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    Only(BTreeSet<String>),
    AllBut(BTreeSet<String>),
}

impl Operator {
    /// The operator of this name; Kubernetes minds the case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            _ => return None,
        })
    }
}

impl Requirement {
    /// A requirement under the rules of the API server.
    ///
    /// # Errors
    /// When it breaks one of them (rule 26).
    pub fn try_new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, RequirementError> {
        if !is_label_key(key) {
            return Err(RequirementError::Key);
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => return Err(RequirementError::NoValues),
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => return Err(RequirementError::Values),
            _ => {}
        }
        if let Some(index) = values.iter().position(|value| !is_label_value(value)) {
            return Err(RequirementError::Value(index));
        }
        let values = values.into_iter().collect();
        let allowed = match operator {
            Operator::In => Allowed { absent: false, values: Values::Only(values) },
            Operator::NotIn => Allowed { absent: true, values: Values::AllBut(values) },
            Operator::Exists => Allowed { absent: false, values: Values::AllBut(values) },
            Operator::DoesNotExist => Allowed { absent: true, values: Values::Only(values) },
        };
        Ok(Self { key: key.to_owned(), allowed })
    }
}

impl Selector {
    /// Selects what fulfils all requirements; with none of them, everything.
    pub fn all_of(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut keys: BTreeMap<String, Allowed> = BTreeMap::new();
        for Requirement { key, allowed } in requirements {
            let both = match keys.remove(&key) {
                Some(other) => other.and(allowed),
                None => allowed,
            };
            keys.insert(key, both);
        }
        let possible = keys.values().all(Allowed::is_possible);
        Self { keys: possible.then_some(keys) }
    }

    /// Selects nothing.
    pub const fn nothing() -> Self {
        Self { keys: None }
    }

    /// Whether no labels at all could match.
    pub const fn is_nothing(&self) -> bool {
        self.keys.is_none()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        let fulfilled = |(key, allowed): (&String, &Allowed)| allowed.allows(labels.get(key).map(String::as_str));
        self.keys.as_ref().is_some_and(|keys| keys.iter().all(fulfilled))
    }

    /// A selector that matches whatever one of `selectors` does, and as little else as can be said key by key.
    pub fn common<'a>(selectors: impl IntoIterator<Item = &'a Self>) -> Self {
        let common = selectors.into_iter().filter_map(|selector| selector.keys.as_ref()).cloned().reduce(|common, mut keys| {
            // A key that one of them does not mention may be anything.
            let either = |(key, allowed): (String, Allowed)| Some((keys.remove(&key)?.or(allowed), key));
            common.into_iter().filter_map(either).map(|(allowed, key)| (key, allowed)).collect()
        });
        Self { keys: common }
    }
}

impl fmt::Display for Selector {
    /// Writes what the API server takes as `labelSelector`: exactly this selector, but for keys that may be absent or have one of
    /// a few values, which cannot be said there and are left out. A selector of nothing cannot be said either.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, Allowed { absent, values }) in self.keys.iter().flatten() {
            let requirement = match (absent, values) {
                (false, Values::Only(values)) => format!("{key} in ({})", listed(values)),
                (false, Values::AllBut(values)) if values.is_empty() => key.clone(),
                (false, Values::AllBut(values)) => format!("{key},{key} notin ({})", listed(values)),
                (true, Values::AllBut(values)) if values.is_empty() => continue,
                (true, Values::AllBut(values)) => format!("{key} notin ({})", listed(values)),
                (true, Values::Only(values)) if values.is_empty() => format!("!{key}"),
                (true, Values::Only(_)) => continue,
            };
            write!(f, "{separator}{requirement}")?;
            separator = ",";
        }
        Ok(())
    }
}

fn listed(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

impl Allowed {
    fn allows(&self, label: Option<&str>) -> bool {
        match (label, &self.values) {
            (None, _) => self.absent,
            (Some(value), Values::Only(values)) => values.contains(value),
            (Some(value), Values::AllBut(values)) => !values.contains(value),
        }
    }

    fn is_possible(&self) -> bool {
        self.absent || !matches!(&self.values, Values::Only(values) if values.is_empty())
    }

    fn and(self, other: Self) -> Self {
        Self { absent: self.absent && other.absent, values: self.values.and(other.values) }
    }

    fn or(self, other: Self) -> Self {
        Self { absent: self.absent || other.absent, values: self.values.or(other.values) }
    }
}

impl Values {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(a), Self::Only(b)) => Self::Only(&a & &b),
            (Self::Only(only), Self::AllBut(but)) | (Self::AllBut(but), Self::Only(only)) => Self::Only(&only - &but),
            (Self::AllBut(a), Self::AllBut(b)) => Self::AllBut(&a | &b),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(a), Self::Only(b)) => Self::Only(&a | &b),
            (Self::Only(only), Self::AllBut(but)) | (Self::AllBut(but), Self::Only(only)) => Self::AllBut(&but - &only),
            (Self::AllBut(a), Self::AllBut(b)) => Self::AllBut(&a & &b),
        }
    }
}

/// Whether the API server takes `text` as a label's key: a name, with a DNS subdomain and a slash before it if need be.
fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// Whether the API server takes `text` as a label's value.
pub fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63 && text.bytes().all(inner) && has_ends(text, |byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| lower(byte) || byte == b'-') && has_ends(part, lower);
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether the first and the last byte are as they must be; true for an empty text.
fn has_ends(text: &str, is_end: impl Fn(u8) -> bool) -> bool {
    [text.bytes().next(), text.bytes().next_back()].into_iter().flatten().all(is_end)
}

#[cfg(test)]
mod tests;
