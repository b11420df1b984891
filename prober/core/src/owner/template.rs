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
    /// Those of some shoot, to try a template with.
    fn sample() -> Self {
        Self {
            namespace: "shoot--project--name".to_owned(),
            domain: Some("name.project.internal.example.org".to_owned()),
            seed: Some("seed".to_owned()),
            seed_uid: Some("01234567-89ab-cdef-0123-456789abcdef".to_owned()),
        }
    }

    /// What a placeholder stands for, none if the Cluster does not say it; of any other name what
    /// is expected instead.
    fn of(&self, placeholder: &str) -> Result<Option<&str>, &'static str> {
        match placeholder {
            "namespace" => Ok(Some(&self.namespace)),
            "domain" => Ok(self.domain.as_deref()),
            "seed" => Ok(self.seed.as_deref()),
            "seedUID" => Ok(self.seed_uid.as_deref()),
            _ => {
                Err("{{namespace}}, {{domain}}, {{seed}} or {{seedUID}} where it has a placeholder")
            }
        }
    }
}

impl Template {
    /// A text with known placeholders; otherwise what is expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("a text that is not blank".to_owned());
        }
        let template = Self(text.to_owned());
        template.filled(&Facts::sample())?;
        Ok(template)
    }

    /// The same for a text that is a DNS name once it is filled.
    pub fn parse_name(text: &str) -> Result<Self, String> {
        let template = Self::parse(text)?;
        match template.fill(&Facts::sample()) {
            Some(name) if is_dns_name(&name) => Ok(template),
            _ => Err("a DNS name, as owner.{{domain}}".to_owned()),
        }
    }

    /// The text for one shoot; none if its Cluster does not say what it takes.
    pub fn fill(&self, facts: &Facts) -> Option<String> {
        self.filled(facts).ok().flatten()
    }

    /// The same; of a text that is no template what is expected instead.
    fn filled(&self, facts: &Facts) -> Result<Option<String>, &'static str> {
        let (mut filled, mut rest) = (Some(String::new()), self.0.as_str());
        while let Some((before, after)) = rest.split_once("{{") {
            let (placeholder, after) =
                after.split_once("}}").ok_or("a \"}}\" after each \"{{\"")?;
            let fact = facts.of(placeholder)?;
            filled = filled
                .zip(fact)
                .map(|(filled, fact)| filled + before + fact);
            rest = after;
        }
        Ok(filled.map(|filled| filled + rest))
    }
}

/// Whether a query can ask for this name. A dot at the end changes nothing.
pub(super) fn is_dns_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let fits = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(plain)
    };
    name.len() <= 253 && name.split('.').all(fits)
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
