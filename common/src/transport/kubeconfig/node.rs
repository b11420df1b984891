//! The documents of a kubeconfig. A scalar is what is written, whatever it looks like: a name may be
//! `7`, a password `1e3`.

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned};

use crate::yaml::Yaml;

pub(super) type Node = Spanned<Yaml>;

/// Reads all documents. The error is a line and what is wrong there: the parser's message could
/// quote it.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Node>, (Option<u64>, &'static str)> {
    let text = decode(bytes).ok_or((None, "is not UTF-8 text"))?;
    let options = serde_saphyr::options! {
        // As kubectl takes them.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // A name may look like a number beyond all bounds.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        // Nothing but `true` and `false` is a boolean, in the spellings of YAML.
        strict_booleans: true,
        with_snippet: false,
    };
    let mut documents: Vec<Node> = serde_saphyr::from_multiple_with_options(&text, options)
        .map_err(|error| {
            let line = error.location().map(|location| location.line());
            (line, "is not YAML, or larger than any kubeconfig")
        })?;
    documents.retain(|document| !document.value.is_null());
    for document in &mut documents {
        if !matches!(document.value, Yaml::Map(_)) {
            let line = document.referenced.line();
            return Err((Some(line), "is a text or a list, not a kubeconfig"));
        }
        spell_out(document, &text);
    }
    Ok(documents)
}

/// A text in UTF-8, or in UTF-16 as PowerShell writes it.
fn decode(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<_, _>>().ok()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// Replaces numbers by what is written there.
fn spell_out(node: &mut Node, text: &str) {
    match &mut node.value {
        Yaml::Scalar(number @ Value::Number(_)) => {
            *number = written(node.defined, text).unwrap_or_default().into();
        }
        Yaml::Scalar(_) => {}
        Yaml::List(items) => items.iter_mut().for_each(|item| spell_out(item, text)),
        Yaml::Map(entries) => {
            let values = entries.iter_mut();
            values.for_each(|(_, value)| spell_out(value, text));
        }
    }
}

fn written(place: Location, text: &str) -> Option<&str> {
    let span = place.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    Some(text.get(start..start + length)?.trim())
}

/// The value for derived types.
pub(super) fn json(node: &Node) -> Value {
    match &node.value {
        Yaml::Scalar(scalar) => scalar.clone(),
        Yaml::List(items) => items.iter().map(json).collect(),
        Yaml::Map(entries) => {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), json(value)))
                .collect()
        }
    }
}
