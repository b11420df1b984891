//! Texts of the config with placeholders that a shoot's Cluster fills.

use std::fmt;

use serde::{Serialize, Serializer};

/// A text in which `{{namespace}}`, `{{domain}}`, `{{seed}}` and `{{seedUID}}` may stand. It is never blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Filled(Placeholder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Namespace,
    Domain,
    Seed,
    SeedUid,
}

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
}

impl Placeholder {
    const ALL: [Self; 4] = [Self::Namespace, Self::Domain, Self::Seed, Self::SeedUid];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Domain => "domain",
            Self::Seed => "seed",
            Self::SeedUid => "seedUID",
        }
    }

    fn of(self, facts: &Facts) -> Option<&str> {
        match self {
            Self::Namespace => Some(&facts.namespace),
            Self::Domain => facts.domain.as_deref(),
            Self::Seed => facts.seed.as_deref(),
            Self::SeedUid => facts.seed_uid.as_deref(),
        }
    }
}

impl Template {
    /// A text with known placeholders; otherwise what is expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        const KNOWN: &str = "{{namespace}}, {{domain}}, {{seed}} or {{seedUID}} where it has a placeholder";
        if text.trim().is_empty() {
            return Err("a text that is not blank".to_owned());
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("a \"}}\" after each \"{{\"")?;
            let placeholder = Placeholder::ALL.into_iter().find(|known| known.as_str() == name).ok_or(KNOWN)?;
            pieces.extend((!before.is_empty()).then(|| Piece::Text(before.to_owned())));
            pieces.push(Piece::Filled(placeholder));
            rest = after;
        }
        pieces.extend((!rest.is_empty()).then(|| Piece::Text(rest.to_owned())));
        Ok(Self(pieces))
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
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Filled(placeholder) => placeholder.of(facts),
        });
        pieces.collect()
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
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Filled(placeholder) => write!(f, "{{{{{}}}}}", placeholder.as_str()),
        })
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
