//! What is expected of an answer, written as the answer itself with less in it.
//!
//! An object may have more fields than expected, a `null` may be absent. A `message`, and a body
//! that is no JSON, contains the expected text. `$name` is what stands there where it is met first,
//! and the same wherever it is met again, also in requests.

use std::collections::BTreeMap;

use serde_json::Value;

/// What `$name`s stand for.
pub(super) type Names = BTreeMap<String, String>;

/// A text with what is known in the place of `$name`s.
pub(super) fn filled(text: &str, known: &Names) -> String {
    let fill = |text: String, (name, value): (&String, &String)| text.replace(name, value);
    // The longest name first, as it may begin with another one.
    known.iter().rev().fold(text.to_owned(), fill)
}

/// Compares an answer, or a part of it, with what is expected.
///
/// # Errors
/// Where the first difference is, and what there is instead.
pub(super) fn check(
    expected: &Value,
    found: &Value,
    known: &mut Names,
    place: &str,
) -> Result<(), String> {
    let differs = || Err(format!("{place} is {found}, not {expected}"));
    match (expected, found) {
        (Value::Object(fields), Value::Object(_) | Value::Null) => {
            fields.iter().try_for_each(|(key, field)| {
                check(field, &found[key], known, &format!("{place}.{key}"))
            })
        }
        (Value::Array(items), Value::Array(others)) => {
            if items.len() != others.len() {
                return differs();
            }
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.try_for_each(|(at, (item, other))| {
                check(item, other, known, &format!("{place}[{at}]"))
            })
        }
        (Value::String(name), Value::String(text))
            if name.starts_with('$') && !known.contains_key(name) =>
        {
            known.insert(name.clone(), text.clone());
            Ok(())
        }
        (Value::String(expected), Value::String(text)) => {
            let expected = filled(expected, known);
            let is_prose = place.is_empty() || place.ends_with(".message");
            if *text == expected || is_prose && text.contains(&expected) {
                Ok(())
            } else {
                differs()
            }
        }
        (expected, found) if expected == found => Ok(()),
        _ => differs(),
    }
}
