//! What holds of both agents' config files.

use std::time::{Duration, SystemTime};

use anyhow::{Result, bail, ensure};
use common::document::{ConfigError, FieldError, Loaded};
use serde_json::Value;

use crate::yaml::File;
use crate::{GoAnswer, is_one_line};

/// Far more than the largest file needs, even instrumented on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads a file: the config, or none if it is refused, with the names of the template's fields
/// alone.
pub fn read<C>(
    parse: impl FnOnce() -> Result<Loaded<C>, ConfigError>,
    template: &Value,
) -> Result<Option<C>> {
    // Wall-clock time is good enough for this.
    let begin = SystemTime::now();
    let outcome = parse();
    let took = begin.elapsed().unwrap_or_default();
    ensure!(took < PATIENCE, "it took {took:?}");
    match outcome {
        Ok(Loaded {
            config, warnings, ..
        }) => {
            warnings
                .iter()
                .try_for_each(|warning| is_one_line(warning))?;
            Ok(Some(config))
        }
        Err(error) => {
            is_refusal(&error, template)?;
            Ok(None)
        }
    }
}

/// Every line of a refusal is one readable line, and every wrong field is named from the top.
fn is_refusal(error: &ConfigError, template: &Value) -> Result<()> {
    let text = error.to_string();
    let lines = 1 + error.fields().len().max(1);
    ensure!(
        text.lines().count() == lines,
        "not one line for each error and one for the file: {text:?}"
    );
    text.lines().try_for_each(is_one_line)?;
    for wrong in error.fields() {
        let mut fields = template
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys());
        let known = wrong.field.is_empty()
            || fields.any(|field| wrong.field.starts_with(field.trim_start_matches('~')));
        ensure!(known && !wrong.expected.is_empty(), "{wrong}");
    }
    Ok(())
}

/// Compares what Go says of a file with what we read. `surprises` names the fields that Go takes
/// and that are refused here on purpose; `shown` is our config in the words of the Go program.
pub fn agree<C>(
    File { text, is_spilt }: &File,
    go: GoAnswer,
    ours: Result<Loaded<C>, ConfigError>,
    surprises: impl Fn(&Value) -> Vec<String>,
    shown: impl FnOnce(&C) -> Result<Value>,
) -> Result<()> {
    match (go, ours) {
        (Ok(go), Ok(ours)) => {
            ensure!(
                surprises(&go).is_empty(),
                "accepted although {}: {text}",
                surprises(&go).join(", ")
            );
            let ours = shown(&ours.config)?;
            ensure!(go == ours, "Go reads {go}, we {ours} from\n{text}");
        }
        (Err(_), Err(_)) => {}
        // The escape of a slash came with YAML 1.2.
        (_, Err(ConfigError::Syntax { .. })) | (Err(_), Ok(_))
            if *is_spilt || text.contains("\\/") => {}
        // A key that is ignored may hold anything, also what JSON, through which Go sends the file,
        // has no word for.
        (Err(go), Ok(ours))
            if go.contains("json: unsupported value") && !ours.warnings.is_empty() => {}
        (Ok(go), Err(ours)) => {
            let surprises = surprises(&go);
            // No duration has a use for a sign.
            let is_negative = |error: &FieldError| {
                let value = error.value.as_deref().unwrap_or_default();
                value.starts_with("\"-") && error.expected.starts_with("a duration")
            };
            let is_decided =
                |error: &FieldError| surprises.contains(&error.field) || is_negative(error);
            let decided = !ours.fields().is_empty() && ours.fields().iter().all(is_decided);
            ensure!(decided, "Go reads {go}, we refuse for {ours}\nfrom\n{text}");
        }
        (Err(go), Ok(_)) => bail!("Go refuses for {go}, we accept\n{text}"),
    }
    Ok(())
}
