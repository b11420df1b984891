//! YAML 1.1 text to a tree of values, each with the spelling that Go's way through JSON gives it.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, NonFiniteFloatPolicy};
pub use serde_saphyr::{Location, Spanned};
use strum::EnumTryAs;

/// The most values in one file, aliases resolved: two hundred times those of Gardener's file. It
/// also keeps the search for duplicate keys short, which compares each key with all before it.
const MAX_NODES: usize = 10_000;

/// The deepest nesting. The weeder's selectors, the deepest there are, need 7.
const MAX_DEPTH: usize = 64;

/// One YAML value. Keys are texts, as they are after the Go original's way through JSON; of
/// duplicates only the last is kept.
#[derive(Clone, Debug, PartialEq, EnumTryAs)]
pub enum YamlNode {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Spanned<YamlNode>>),
    Map(Vec<(String, Spanned<YamlNode>)>),
}

impl YamlNode {
    /// The text a string field gets from a scalar: a bare number or boolean becomes its usual
    /// spelling (rule 18).
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(spelling(*value)),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// Whether Go's decoder takes `key` for the field `name`. Field names are ASCII; Go's folding would
/// also take two exotic letters (the long s and the Kelvin sign) for s and k, which nobody writes.
pub fn same_field(key: &str, name: &str) -> bool {
    key.eq_ignore_ascii_case(name)
}

/// A float as the Go original spells it: the shortest digits of a float32 (also where those of the
/// file were more), with an exponent from a million on and below a ten-thousandth.
fn spelling(value: f64) -> String {
    let value = value as f32;
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let scientific = format!("{value:e}");
    let exponent: Option<(&str, i32)> = scientific
        .split_once('e')
        .and_then(|(digits, power)| Some((digits, power.parse().ok()?)));
    match exponent {
        Some((digits, power)) if !(-4..6).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.abs())
        }
        _ => value.to_string(),
    }
}

impl fmt::Display for YamlNode {
    /// The value as an error message shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Enough to recognise a value by.
        const SHOWN: usize = 60;
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) if text.chars().count() > SHOWN => {
                write!(f, "{:?}...", text.chars().take(SHOWN).collect::<String>())
            }
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("a map"),
        }
    }
}

/// Reads the first document of `text`; no document at all is [`YamlNode::Null`].
pub fn read(text: &str) -> Result<YamlNode, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
        },
        alias_limits: AliasLimits::default(),
        // Passed through to the visitor below, which keeps the last.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // A not-a-number is then reported with its field.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
    };
    let mut bytes = text.as_bytes();
    let first = serde_saphyr::read_with_options::<_, YamlNode>(&mut bytes, options).next();
    first
        .unwrap_or(Ok(YamlNode::Null))
        .map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Integer(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Integer(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlNode, A::Error> {
        let mut map: Vec<(String, Spanned<YamlNode>)> = Vec::new();
        while let Some((key, value)) = entries.next_entry::<YamlNode, _>()? {
            let key = key
                .as_text()
                .ok_or_else(|| de::Error::custom(format!("{key} cannot be a key")))?;
            match map.iter_mut().find(|(known, _)| *known == key) {
                Some(entry) => entry.1 = value,
                None => map.push((key, value)),
            }
        }
        Ok(YamlNode::Map(map))
    }
}
