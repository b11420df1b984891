//! What can be wrong with a config file.

use std::fmt;

use go_compat::yaml::Location;

use crate::text::plural;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Its path, as `dependentResourceInfos[1].scaleUp.level`; empty for the file as a whole.
    pub field: String,
    /// As written (shortened when long); `None` if it is missing.
    pub value: Option<String>,
    pub expected: String,
    /// `None` if it is missing, or for the file as a whole.
    pub place: Option<Location>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() {
            "the file"
        } else {
            &self.field
        };
        write!(
            f,
            "{field}: {}: expected {}",
            self.value.as_deref().unwrap_or("missing"),
            self.expected
        )
    }
}

/// Why a config file was refused. The text names the file in its first line and then has one line
/// per error.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}: {source}")]
    Read {
        file: String,
        source: std::io::Error,
    },
    /// The text is no YAML document that could be read at all.
    #[error("{file}: 1 error\n  {problem}")]
    Syntax {
        file: String,
        /// What is wrong, with line and column where they are known.
        problem: String,
    },
    /// Fields are wrong or missing: all of them, in the order of the file's documentation.
    #[error("{}", listed(file, errors))]
    Fields {
        file: String,
        errors: Vec<FieldError>,
        /// What loads but will surprise, as far as it was found; not part of the text.
        warnings: Vec<String>,
    },
}

impl ConfigError {
    /// The wrong fields; none when the file could not be read as a document.
    pub fn fields(&self) -> &[FieldError] {
        if let Self::Fields { errors, .. } = self {
            errors
        } else {
            &[]
        }
    }

    /// One sentence each on what is no error, but will surprise.
    pub fn warnings(&self) -> &[String] {
        if let Self::Fields { warnings, .. } = self {
            warnings
        } else {
            &[]
        }
    }
}

/// A place in the file as a message names it; both count from 1.
pub(super) fn position(place: Location) -> String {
    format!("line {}, column {}", place.line(), place.column())
}

fn listed(file: &str, errors: &[FieldError]) -> String {
    let plural = plural(errors.len());
    let place = |error: &FieldError| {
        error
            .place
            .map(|place| format!(" ({})", position(place)))
            .unwrap_or_default()
    };
    let lines: String = errors
        .iter()
        .map(|error| format!("\n  {error}{}", place(error)))
        .collect();
    format!("{file}: {} error{plural}{lines}", errors.len())
}
