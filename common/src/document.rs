//! Reads a config file into the types of an agent, and finds every error in it at once.
//!
//! ```text
//! text -> Yaml -> Findings::convert -> serde -> the agent's check -> its config
//!                     \---------- Findings ---------/ -> ConfigError
//! ```
//!
//! serde-saphyr gives the scalars of YAML 1.1, as the Go original has them, and refuses alias bombs.
//! What it does not know of Go's way from there into structs is done on a small tree: keys in any
//! case, null for what is not set, unknown keys ignored (rules 15 to 20).

mod error;
mod findings;

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned};

pub use error::{ConfigError, FieldError};
pub use findings::Findings;

use crate::yaml::Yaml;

/// The largest config file read, in bytes: Kubernetes' limit for all data of a ConfigMap.
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum number of values in one file, aliases resolved: two hundred times those of Gardener's
/// file. It also keeps the search for duplicate keys short, which compares each key with all before
/// it.
const MAX_NODES: usize = 10_000;
/// Maximum nesting. The weeder's selectors, the deepest there are, need 7.
const MAX_DEPTH: usize = 64;

/// Keys of former versions of the Go original, each with a hint.
pub type FormerKeys = [(&'static str, &'static str)];

/// A config, with warnings for its author.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// Complete and in range.
    pub config: T,
    /// One sentence each on what loads but will surprise.
    pub warnings: Vec<String>,
}

/// Bytes of a file at one moment; of one that is too large, enough to see that it is.
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
            Err(error) => Err(ConfigError::File {
                file,
                problem: error.to_string(),
            }),
        }
    }

    pub fn text(&self) -> Result<&str, ConfigError> {
        str::from_utf8(&self.bytes).map_err(|_| self.refused("it is not UTF-8 text"))
    }

    /// Reads the text as YAML into `T`, and hands it to `check`, which reports what is wrong or will
    /// surprise. `known` has every key that there is; in an object whose keys are data it has an
    /// empty one.
    pub fn load<T: DeserializeOwned + Serialize, C>(
        &self,
        known: &T,
        former: &FormerKeys,
        check: impl FnOnce(T, &mut Findings) -> C,
    ) -> Result<Loaded<C>, ConfigError> {
        let text = self.text()?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.refused(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let documents = documents(text).map_err(|error| self.refused(error))?;
        let file = only(documents).map_err(|problem| self.refused(problem))?;
        let known = serde_json::to_value(known).expect("texts, numbers, lists and maps of them");
        let mut findings = Findings::default();
        let file = findings.convert("", &file, &known);
        let read = findings.read(file);
        let config = read.map(|read| check(read, &mut findings));
        let warnings = findings.ignored(former);
        let place = |error: &FieldError| {
            let place = error.place.map(|place| (place.line(), place.column()));
            place.unwrap_or((u64::MAX, 0))
        };
        findings.errors.sort_by_key(place);
        match config {
            Some(config) if findings.errors.is_empty() => Ok(Loaded { config, warnings }),
            _ => Err(ConfigError::Fields {
                file: self.file.clone(),
                errors: findings.errors,
                warnings,
            }),
        }
    }

    fn refused(&self, problem: impl ToString) -> ConfigError {
        ConfigError::File {
            file: self.file.clone(),
            problem: problem.to_string(),
        }
    }
}

/// Reads the documents of a text; empty ones are left out.
fn documents(text: &str) -> Result<Vec<Spanned<Yaml>>, serde_saphyr::Error> {
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

/// Keys that manifests have beside their kind, and config files do not.
const MANIFESTS: [&str; 4] = ["data", "stringData", "spec", "items"];

/// The only document, which is no manifest. An empty file is one without keys.
fn only(documents: Vec<Spanned<Yaml>>) -> Result<Spanned<Yaml>, String> {
    let mut documents = documents.into_iter();
    let unknown = Location::UNKNOWN;
    let none = || Spanned::new(Yaml::Map(Vec::new()), unknown, unknown);
    let document = documents.next().unwrap_or_else(none);
    let is_set = |key: &&str| document.value.get(key).is_some();
    if let Some(kind) = document.value.get("kind")
        && let Yaml::Scalar(kind) = &kind.value
        && MANIFESTS.iter().any(is_set)
    {
        return Err(format!(
            "it is the manifest of a {kind}: take the text below a key of its `data`"
        ));
    }
    match documents.next() {
        None => Ok(document),
        Some(second) => Err(format!(
            "a second document begins at line {}: write all keys into one",
            second.referenced.line()
        )),
    }
}

#[cfg(test)]
mod tests;
