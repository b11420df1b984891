//! Texts of the config with placeholders that a shoot's Cluster fills.

use std::fmt;

use serde::Serialize;

/// A text in which `{{namespace}}`, `{{domain}}`, `{{seed}}` and `{{seedUID}}` may stand. It is
/// never blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Template(String);

/// What a Cluster says of its shoot, as far as templates ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub namespace: String,
    /// The shoot's internal domain: that of the advertised address `internal`, without `api.`.
    pub domain: Option<String>,
    /// The seed that the Cluster is on.
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
    /// A text with known placeholders; otherwise what is expected instead.
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

    /// A text that is a DNS name once its placeholders are filled; otherwise what is expected
    /// instead.
    pub fn parse_name(text: &str) -> Result<Self, &'static str> {
        let template = Self::parse(text)?;
        match template.fill(&Facts::sample()) {
            Some(name) if is_dns_name(&name) => Ok(template),
            _ => Err("a DNS name, as owner.{{domain}}"),
        }
    }

    /// The text for one shoot; none if its Cluster does not say what it takes.
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
