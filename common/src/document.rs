//! Reads a config file the way the Go original does (rules 15 to 21), and finds every error in it
//! at once.
//!
//! ```text
//! text -> yaml::read -> Node -> Object::field -> Value::text | integer | duration | ... -> the agent's config
//!                                                        \-> Problems -> ConfigError
//! ```
//!
//! The Go original turns YAML 1.1 into JSON and decodes that into Go structs: keys match in any
//! case, unknown keys are ignored, a bare `123` may stand where a string is due. serde-saphyr gives
//! the scalars of YAML 1.1 and refuses alias bombs; the rest is done here on a small tree, because
//! serde's derived types stop at the first error and match keys exactly.

mod error;
mod key;
mod value;

use std::cell::RefCell;
use std::io::Read;
use std::path::Path;

use go_compat::yaml;

pub use error::{ConfigError, FieldError};
pub use key::Key;
pub use value::{Object, Value};

/// The largest config file read, in bytes: Kubernetes' limit for all data of a ConfigMap.
const MAX_BYTES: u64 = 1024 * 1024;

/// What was found wrong, or worth a word, while a document was read. Reading goes on after an
/// error, so that all of them are reported together.
#[derive(Debug, Default)]
pub struct Problems {
    errors: RefCell<Vec<FieldError>>,
    warnings: RefCell<Vec<String>>,
}

impl Problems {
    /// Notes something that loads but will surprise.
    pub fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }
}

/// A config and what its author should hear about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// Complete and in range.
    pub config: T,
    /// One sentence each on what loads but will surprise.
    pub warnings: Vec<String>,
}

/// What a file holds at one moment; of one that is too large, enough to see that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    file: String,
    bytes: Vec<u8>,
}

impl Contents {
    /// # Errors
    /// [`ConfigError::Read`] when it cannot be read.
    pub fn of(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let mut bytes = Vec::new();
        match std::fs::File::open(path)
            .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        {
            Ok(_) => Ok(Self { file, bytes }),
            Err(source) => Err(ConfigError::Read { file, source }),
        }
    }

    /// # Errors
    /// [`ConfigError::Syntax`] when it is none.
    pub fn text(&self) -> Result<&str, ConfigError> {
        str::from_utf8(&self.bytes)
            .map_err(|_| ConfigError::syntax(&self.file, "it is not UTF-8 text"))
    }
}

/// Reads what a file holds as [`parse`] reads text.
///
/// # Errors
/// Those of [`Contents::text`] and of [`parse`]; all of them name the file.
pub fn load<T>(
    contents: &Contents,
    read: impl FnOnce(&Object<'_>, &Problems) -> Option<T>,
) -> Result<Loaded<T>, ConfigError> {
    parse(&contents.file, contents.text()?, read)
}

/// Reads `text` as YAML and hands its top level to `read`, which notes every error in the
/// [`Problems`] and gives `None` when it cannot go on. The result comes with the warnings. `file`
/// names the text in errors.
///
/// # Errors
/// [`ConfigError::Syntax`] when the text is larger than 1 MiB or no YAML, [`ConfigError::Fields`]
/// with all errors `read` noted.
pub fn parse<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&Object<'_>, &Problems) -> Option<T>,
) -> Result<Loaded<T>, ConfigError> {
    if text.len() as u64 > MAX_BYTES {
        return Err(ConfigError::syntax(
            file,
            format!("it is larger than {MAX_BYTES} bytes"),
        ));
    }
    let root = yaml::read(text).map_err(|problem| ConfigError::syntax(file, problem))?;
    let problems = Problems::default();
    let result = match Value::root(&root, &problems).object_or_empty() {
        Some(object) => read(&object, &problems),
        None => None,
    };
    let (errors, warnings) = (problems.errors.into_inner(), problems.warnings.into_inner());
    match result {
        Some(config) if errors.is_empty() => Ok(Loaded { config, warnings }),
        _ => Err(ConfigError::Fields {
            file: file.to_owned(),
            errors,
            warnings,
        }),
    }
}

#[cfg(test)]
mod tests;
