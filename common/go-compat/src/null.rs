//! Null values in objects written by Go programs.

use serde::{Deserialize, Deserializer};

/// Deserializes null as the default. Go sometimes writes an empty list as null, and reads null as
/// an unset value.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
