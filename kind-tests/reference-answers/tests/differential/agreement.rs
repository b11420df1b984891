//! When the Go original and we agree about a config file.

use anyhow::{Result, bail, ensure};
use common::document::{ConfigError, Loaded};
use serde_json::Value;

use super::yaml::File;

/// Compares what Go says of a file with what we read. `surprises` names the fields that Go takes and that are refused here on
/// purpose; `shown` is our config in the words of the Go program.
pub fn agree<C>(
    File { text, is_spilt }: &File,
    go: Result<Value, String>,
    ours: Result<Loaded<C>, ConfigError>,
    surprises: fn(&Value) -> Vec<String>,
    shown: impl FnOnce(&C) -> Value,
) -> Result<()> {
    match (go, ours) {
        (Ok(go), Ok(ours)) => {
            ensure!(surprises(&go).is_empty(), "accepted although {}: {text}", surprises(&go).join(", "));
            let ours = shown(&ours.config);
            ensure!(go == ours, "Go reads {go}, we {ours} from\n{text}");
        }
        (Err(_), Err(_)) => {}
        // The escape of a slash came with YAML 1.2.
        (_, Err(ConfigError::Syntax { .. })) | (Err(_), Ok(_)) if *is_spilt || text.contains("\\/") => {}
        // A key that is ignored may hold anything, also what JSON, through which Go sends the file, has no word for.
        (Err(go), Ok(ours)) if go.contains("json: unsupported value") && !ours.warnings.is_empty() => {}
        (Ok(go), Err(ours)) => {
            let surprises = surprises(&go);
            let decided = !ours.fields().is_empty() && ours.fields().iter().all(|error| surprises.contains(&error.field));
            ensure!(decided, "Go reads {go}, we refuse for {ours}\nfrom\n{text}");
        }
        (Err(go), Ok(_)) => bail!("Go refuses for {go}, we accept\n{text}"),
    }
    Ok(())
}
