//! Reads a config file into the types of an agent.
//!
//! ```text
//! text -> serde-saphyr -> the agent's struct -> its check: all that is missing or out of range
//!              '-- the first value of a wrong type; keys that nobody reads (rule 15)
//! ```

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Track;
use serde_saphyr::UserMessageFormatter;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Number of characters of the file in an error about a value: enough to recognise it by.
const SHOWN: usize = 60;
/// Maximum number of characters of a sentence about a file.
const SENTENCE: usize = 500;

/// One sentence each on what is wrong with a file; not empty.
pub type Problems = Vec<String>;

/// A config, with warnings for its author.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// Complete and in range.
    pub config: T,
    /// One sentence each on what loads but will surprise.
    pub warnings: Vec<String>,
}

/// Refusal of a config file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}", problems.join("; "))]
pub struct ConfigError {
    pub file: String,
    pub problems: Problems,
}

/// Results of a check.
pub struct Findings {
    /// What the file says, with every default written out.
    values: Value,
    problems: Problems,
    /// One sentence each on what loads but will surprise.
    pub warnings: Vec<String>,
}

impl Findings {
    /// Refuses the file unless the condition is met. Fields are named from the top, as
    /// `dependentResourceInfos[1].scaleUp`.
    pub fn require(&mut self, field: &str, is_met: bool, expected: &str) {
        if !is_met {
            let pointer = format!("/{field}")
                .replace(['.', '['], "/")
                .replace(']', "");
            let value = self.values.pointer(&pointer).unwrap_or(&Value::Null);
            let problem = format!("{field}: {value}: expected {expected}");
            self.problems.push(problem);
        }
    }
}

/// Reads a file by the `parse` of an agent.
///
/// # Errors
/// When it cannot be read, or `parse` refuses it.
pub fn load<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Problems>,
) -> Result<T, ConfigError> {
    let text = fs::read_to_string(path).map_err(|error| vec![error.to_string()]);
    text.and_then(|text| parse(&text))
        .map_err(|problems| ConfigError {
            file: path.display().to_string(),
            problems,
        })
}

/// Reads a text as YAML into `F`, of which `check` makes the config.
///
/// # Errors
/// The first value of a wrong type with line and column, otherwise all that `check` requires.
pub fn parse<F: DeserializeOwned + Serialize, C>(
    text: &str,
    check: impl FnOnce(F, &mut Findings) -> C,
) -> Result<Loaded<C>, Problems> {
    let (file, unknown) = deserialize::<F>(text).map_err(|problem| told([problem]))?;
    let mut found = Findings {
        values: serde_json::to_value(&file).unwrap_or_default(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let config = check(file, &mut found);
    if !found.problems.is_empty() {
        // What is missing may be misspelt.
        return Err(told(found.problems.into_iter().chain(unknown)));
    }
    let warnings = told(found.warnings.into_iter().chain(unknown));
    Ok(Loaded { config, warnings })
}

/// Puts each sentence on one line, and cuts it off where it is long.
fn told(sentences: impl IntoIterator<Item = String>) -> Vec<String> {
    let plain = |sentence: String| {
        let line = sentence.replace(char::is_control, " ");
        line.chars().take(SENTENCE).collect()
    };
    sentences.into_iter().map(plain).collect()
}

/// Reads a text, and warns of keys that are ignored. Scalars are those of YAML 1.1, as the Go
/// original has them (rule 17); a text that is another scalar there (`role: yes`) needs quotes.
fn deserialize<F: DeserializeOwned>(text: &str) -> Result<(F, Vec<String>), String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        no_schema: true,
        with_snippet: false,
    };
    let (mut track, mut warnings) = (Track::new(), Vec::new());
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        let yaml = serde_path_to_error::Deserializer::new(yaml, &mut track);
        serde_ignored::deserialize(yaml, |path| {
            let path = path.to_string().replace(".?", "");
            warnings.push(format!("{path}: unknown key, ignored"));
        })
    });
    let file = read.map_err(|error| {
        let place = error
            .location()
            .and_then(|place| place.span().byte_offset());
        let rest = place.and_then(|place| text.get(place as usize..));
        let line = rest
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        let shown: String = line.chars().take(SHOWN).collect();
        let problem = error.render_with_formatter(&UserMessageFormatter);
        format!("{}: {shown:?}: {problem}", track.path())
    })?;
    Ok((file, warnings))
}

#[cfg(test)]
mod tests;
