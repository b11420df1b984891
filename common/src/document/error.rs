//! Errors of a config file.

use std::fmt;

use serde_saphyr::Location;

use crate::text::plural;

/// Number of characters of a path or a value in a message: enough to recognise it by.
const SHOWN: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Its path, as `dependentResourceInfos[1].scaleUp.level`; empty for the file as a whole.
    pub field: String,
    /// As JSON, shortened when long; `None` if it is missing.
    pub value: Option<String>,
    pub expected: String,
    /// `None` if it is missing.
    pub place: Option<Location>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field.as_str() {
            "" => "the file".to_owned(),
            field => shown(field),
        };
        let value = self.value.as_deref().unwrap_or("missing");
        write!(f, "{field}: {value}: expected {}", self.expected)
    }
}

/// Refusal of a config file. The text begins with its name.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read, or is no YAML document of a config.
    #[error("{file}: {problem}")]
    File {
        file: String,
        /// With line and column where they are known.
        problem: String,
    },
    /// Fields are wrong, in the order of the file, or missing: one line each after the first.
    #[error("{}", listed(file, errors))]
    Fields {
        file: String,
        errors: Vec<FieldError>,
        /// Keys that are ignored; not part of the text.
        warnings: Vec<String>,
    },
}

impl ConfigError {
    /// Wrong fields; empty if the file is no document.
    pub fn fields(&self) -> &[FieldError] {
        match self {
            Self::Fields { errors, .. } => errors,
            Self::File { .. } => &[],
        }
    }

    /// One sentence each on what is no error, but will surprise.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Fields { warnings, .. } => warnings,
            Self::File { .. } => &[],
        }
    }
}

/// Formats a place in the file; line and column count from 1.
pub(super) fn position(place: Location) -> String {
    format!("line {}, column {}", place.line(), place.column())
}

/// Puts a path or a value on one line, and cuts it off where it is long.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.replace(char::is_control, " ");
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(end);
        shown.push_str("...");
    }
    shown
}

fn listed(file: &str, errors: &[FieldError]) -> String {
    let lines = errors.iter().map(|error| match error.place {
        Some(place) => format!("\n  {error} ({})", position(place)),
        None => format!("\n  {error}"),
    });
    let count = errors.len();
    format!(
        "{file}: {count} error{}{}",
        plural(count),
        lines.collect::<String>()
    )
}
