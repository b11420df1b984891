//! Nulls in what Go programs write.

use serde::{Deserialize, Deserializer};

/// Go writes an empty list as null here and there, and takes a null for a value with nothing set.
///
/// # Errors
/// When something else than a `T` or a null is there.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
