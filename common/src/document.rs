//! Reads a config file the way the Go original does (rules 15 to 21), and finds every error in it
//! at once.
//!
//! ```text
//! text -> yaml::read -> ConfigValue::field -> ConfigValue::text | integer | duration | ... -> the agent's config
//!                                                 \-> Problems -> ConfigError
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
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use go_compat::yaml;
use rustix::fs::OFlags;

pub use error::{ConfigError, FieldError};
pub use key::ConfigKey;
pub use value::ConfigValue;

/// The largest config file read, in bytes: Kubernetes' limit for all data of a ConfigMap.
const MAX_BYTES: u64 = 1024 * 1024;

/// The errors and warnings found so far. Reading goes on after an error, so that all of them are
/// reported together.
#[derive(Debug, Default)]
struct Problems {
    errors: RefCell<Vec<FieldError>>,
    warnings: RefCell<Vec<String>>,
}

/// A config, with warnings for its author.
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
    /// Names the file in errors.
    file: String,
    bytes: Vec<u8>,
}

impl From<&str> for Contents {
    /// A text that is in no file; errors call it `config`.
    fn from(text: &str) -> Self {
        Self {
            file: "config".to_owned(),
            bytes: text.into(),
        }
    }
}

impl Contents {
    /// Reads whatever the path names, as long as it takes: a person may name a pipe.
    pub fn of(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path, File::open(path))
    }

    /// Reads a regular file and refuses all else without a wait: nobody may ever write to a named
    /// pipe.
    pub(crate) fn of_regular(path: &Path) -> Result<Self, ConfigError> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path);
        let regular = opened.and_then(|opened| match opened.metadata()?.is_file() {
            true => Ok(opened),
            false => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
        });
        Self::read(path, regular)
    }

    fn read(path: &Path, opened: std::io::Result<File>) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let mut bytes = Vec::new();
        match opened.and_then(|opened| opened.take(MAX_BYTES + 1).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Self { file, bytes }),
            Err(source) => Err(ConfigError::Read { file, source }),
        }
    }

    pub fn text(&self) -> Result<&str, ConfigError> {
        str::from_utf8(&self.bytes).map_err(|_| self.syntax("it is not UTF-8 text"))
    }

    /// Reads the text as YAML and hands its top level to `read`, which notes every error in it and
    /// gives `None` when it cannot go on.
    pub fn load<T>(
        &self,
        read: impl FnOnce(&ConfigValue<'_>) -> Option<T>,
    ) -> Result<Loaded<T>, ConfigError> {
        let text = self.text()?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.syntax(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let yaml = yaml::read(text).map_err(|problem| self.syntax(problem))?;
        let problems = Problems::default();
        let config = ConfigValue::root(&yaml, &problems)
            .object()
            .and_then(|root| read(&root));
        let (errors, warnings) = (problems.errors.into_inner(), problems.warnings.into_inner());
        match config {
            Some(config) if errors.is_empty() => Ok(Loaded { config, warnings }),
            _ => Err(ConfigError::Fields {
                file: self.file.clone(),
                errors,
                warnings,
            }),
        }
    }

    fn syntax(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError::Syntax {
            file: self.file.clone(),
            problem: problem.into(),
        }
    }
}

#[cfg(test)]
mod tests;
