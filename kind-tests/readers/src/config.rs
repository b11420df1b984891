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
    let lines = 1 + error.fields().len();
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

/// Whether only Go's reader takes the value: a duration with a sign (nothing has a use for one), a
/// boolean, null or a fraction for a text, or a whole number with a point.
fn is_gos_alone(error: &FieldError) -> bool {
    let value = error.value.as_deref().unwrap_or_default();
    let float = value.parse::<f64>().ok();
    let float = float.filter(|_| value.contains(['.', 'e']));
    match error.expected.as_str() {
        "a string, in quotes" => float.is_some() || ["true", "false", "null"].contains(&value),
        expected if expected.starts_with("a whole number that") => {
            float.is_some_and(|number| number.fract() == 0.0)
        }
        expected => expected.starts_with("a duration like") && value.starts_with("\"-"),
    }
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
            // Here it is a text as it is written.
            let text = text.to_lowercase();
            let is_no_number = text.contains(".inf") || text.contains(".nan");
            ensure!(
                go == ours || is_no_number,
                "Go reads {go}, we {ours} from\n{text}"
            );
        }
        (Err(_), Err(_)) => {}
        // The escape of a slash came with YAML 1.2.
        (_, Err(ConfigError::File { .. })) | (Err(_), Ok(_))
            if *is_spilt || text.contains("\\/") => {}
        // One document, and quotes for keys that look like something else.
        (Ok(_), Err(ConfigError::File { problem, .. }))
            if problem.starts_with("a second document") && text.contains("\n---\n")
                || problem.starts_with("The string value") => {}
        // A bare 0 is a duration of nothing.
        (Err(go), Ok(_))
            if go.contains("cannot unmarshal number") && go.ends_with("of type string") => {}
        // JSON, through which Go sends the file, has no word for it; here it may stand under a key
        // that is ignored, or is a text.
        (Err(go), Ok(_)) if go.contains("json: unsupported value") => {}
        (Ok(go), Err(ours)) => {
            let surprises = surprises(&go);
            let is_decided =
                |error: &FieldError| surprises.contains(&error.field) || is_gos_alone(error);
            let decided = !ours.fields().is_empty() && ours.fields().iter().all(is_decided);
            ensure!(decided, "Go reads {go}, we refuse for {ours}\nfrom\n{text}");
        }
        (Err(go), Ok(_)) => bail!("Go refuses for {go}, we accept\n{text}"),
    }
    Ok(())
}
