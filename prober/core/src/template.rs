//! Texts in the config with placeholders that are filled per shoot.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A text that may contain `{{namespace}}`, `{{domain}}`, `{{seed}}` and `{{seedUID}}`. Not blank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Template(String);

/// Values for the placeholders, read from a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub namespace: String,
    /// Internal domain of the shoot: the host of the advertised address `internal`, without `api.`.
    pub domain: Option<String>,
    /// Seed that holds the Cluster.
    pub seed: Option<String>,
    pub seed_uid: Option<String>,
}

impl Facts {
    fn sample() -> Self {
        Self {
            namespace: "shoot--project--name".to_owned(),
            domain: Some("name.project.internal.example.org".to_owned()),
            seed: Some("seed".to_owned()),
            seed_uid: Some("01234567-89ab-cdef-0123-456789abcdef".to_owned()),
        }
    }
}

impl Template {
    /// Parses a text with known placeholders. The error describes the expected text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let template = Self(text.to_owned());
        let filled = template.fill(&Facts::sample()).unwrap_or_default();
        match filled.split_once("{{") {
            None if text.trim().is_empty() => Err("a text that is not blank"),
            None => Ok(template),
            Some((_, rest)) if rest.contains("}}") => {
                Err("{{namespace}}, {{domain}}, {{seed}} or {{seedUID}} where it has a placeholder")
            }
            Some(_) => Err("a \"}}\" after each \"{{\""),
        }
    }

    /// Parses a text that is a DNS name once filled. The error describes the expected text.
    pub fn parse_name(text: &str) -> Result<Self, &'static str> {
        let template = Self::parse(text)?;
        match template.fill(&Facts::sample()) {
            Some(name) if is_dns_name(&name) => Ok(template),
            _ => Err("a DNS name, as owner.{{domain}}"),
        }
    }

    /// Fills the placeholders. Returns `None` if the Cluster lacks one of the values.
    pub fn fill(&self, facts: &Facts) -> Option<String> {
        let mut text = self.0.replace("{{namespace}}", &facts.namespace);
        for (placeholder, fact) in [
            ("{{domain}}", &facts.domain),
            ("{{seed}}", &facts.seed),
            ("{{seedUID}}", &facts.seed_uid),
        ] {
            if text.contains(placeholder) {
                text = text.replace(placeholder, fact.as_ref()?);
            }
        }
        Some(text)
    }
}

/// Reads a text with known placeholders.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    let text = String::deserialize(deserializer)?;
    Template::parse(&text).map_err(|expected| D::Error::custom(format!("expected {expected}")))
}

/// Reads a text that is a DNS name once filled.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    let text = String::deserialize(deserializer)?;
    Template::parse_name(&text).map_err(|expected| D::Error::custom(format!("expected {expected}")))
}

/// True if a query can ask for this name. A dot at the end changes nothing.
pub fn is_dns_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(plain)
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
