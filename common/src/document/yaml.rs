//! YAML text to a tree of values, each with its place.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, NonFiniteFloatPolicy};

/// Maximum number of values in one file, aliases resolved: two hundred times those of Gardener's
/// file. It also keeps the search for duplicate keys short, which compares each key with all before
/// it.
const MAX_NODES: usize = 10_000;

/// Maximum nesting. The weeder's selectors, the deepest there are, need 7.
const MAX_DEPTH: usize = 64;

pub(super) enum Yaml {
    Scalar(Value),
    List(Vec<Spanned<Yaml>>),
    /// In the order of the file, duplicate keys included.
    Map(Vec<(String, Spanned<Yaml>)>),
}

/// Reads the documents of a text; empty ones are left out.
pub(super) fn read(text: &str) -> Result<Vec<Spanned<Yaml>>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
        },
        alias_limits: AliasLimits::default(),
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // A not-a-number is then reported with its field.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        legacy_octal_numbers: true,
        // A key that looks like a boolean or a number needs quotes: Go spells it in its own way.
        no_schema: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

/// Visits scalars of these types.
macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<Yaml, E> {
            Ok(Yaml::Scalar(value.into()))
        })*
    };
}

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E: Error>(self) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Yaml, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(items)).map(Yaml::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Yaml::Map(map))
    }
}
