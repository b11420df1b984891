//! YAML as a tree of values, each with its place.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// Has no `Debug`: it may hold credentials.
#[derive(Clone)]
pub(crate) enum Yaml {
    Scalar(Value),
    List(Vec<Spanned<Yaml>>),
    /// In the order of the file, with the duplicate keys that its reader lets through.
    Map(Vec<(String, Spanned<Yaml>)>),
}

impl Yaml {
    /// The value of a key that is set.
    pub(crate) fn get(&self, key: &str) -> Option<&Spanned<Self>> {
        let Self::Map(entries) = self else {
            return None;
        };
        let (_, value) = entries.iter().find(|(name, _)| name == key)?;
        Some(value).filter(|value| !value.value.is_null())
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(Value::Null))
    }
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
