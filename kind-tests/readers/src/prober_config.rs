//! The prober's file by `sigs.k8s.io/yaml` and the checks of the Go original (rules 15 to 23).

use std::collections::HashSet;
use std::sync::LazyLock;

use anyhow::{Error, Result, ensure};
use prober::config::{parse, to_json};
use serde_json::{Value, json};
use testbed::objects::items;

use crate::config::{agree, read};
use crate::durations::nanos;
use crate::yaml::{File, template};
use crate::{Choices, GoProgram, ReaderInput, in_yaml};

/// A file.
#[derive(Debug)]
pub struct ProberFile(File);

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/prober_config.yaml")));

/// A field in several cases, of which one counts.
const SPELLINGS: &str = "([kK][uU][bB]e[cC]onfig[sS]ecretName: [a-z]{4}\n){1,4}\
    dependentResourceInfos: \\[\\{ref: \\{kind: Deployment, name: a, apiVersion: v1\\}, scaleUp: \\{\\}, scaleDown: \\{\\}\\}\\]\n";

impl ReaderInput for ProberFile {
    fn make(source: &mut Choices<'_>) -> Self {
        let mut file = File::make(source, &TEMPLATE);
        if !file.is_spilt && source.percent(25) {
            file.text = source.text(SPELLINGS);
        }
        Self(file)
    }

    /// What is taken says the same when it is written out; what is refused is refused with every
    /// wrong field's name.
    fn check(&self) -> Result<()> {
        let text = &self.0.text;
        let Some(config) = read(|| parse(text), &TEMPLATE)? else {
            return Ok(());
        };
        if let Some(check) = &config.owner_check {
            ensure!(!check.timeout.is_zero() && check.timeout < check.interval);
            ensure!(check.interval <= check.tolerance);
        }
        let again = parse(&in_yaml(&to_json(&config)))?.config;
        ensure!(again == config, "{again:?} from {text:?}");
        Ok(())
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        // The Go original checks no owner records.
        if self.0.text.to_lowercase().contains("ownercheck") {
            return Ok(());
        }
        let answer = go.ask("prober", json!(self.0.text))?;
        agree(&self.0, answer, parse(&self.0.text), surprises, |config| {
            go.ask("prober", json!(in_yaml(&to_json(config))))?
                .map_err(Error::msg)
        })
    }
}

/// The fields of a config that the Go original takes and that are refused here on purpose (D-7,
/// D-9, "Ranges are validated at load").
fn surprises(go: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let float = |value| f64::from_bits(u64::from_str_radix(&text(value), 16).unwrap_or_default());
    let fraction = float(&go["nodeLeaseFailureFraction"]);
    let mut found = vec![
        (
            "nodeLeaseFailureFraction".to_owned(),
            !(fraction > 0.0 && fraction <= 1.0),
        ),
        (
            "backoffJitterFactor".to_owned(),
            float(&go["backoffJitterFactor"]) < 0.0,
        ),
    ];
    // Nanoseconds that are too few.
    for (field, too_few) in [
        ("probeInterval", 999_999_999),
        ("initialDelay", -1),
        ("probeTimeout", 0),
        ("kcmNodeMonitorGraceDuration", 0),
        ("scaleUpStabilization", -1),
    ] {
        found.push((field.to_owned(), nanos(&go[field]) <= too_few));
    }
    let mut seen = HashSet::new();
    for (index, entry) in items(&go["dependentResourceInfos"]).enumerate() {
        let mut when = |field: &str, is_surprise| {
            found.push((
                format!("dependentResourceInfos[{index}]{field}"),
                is_surprise,
            ));
        };
        let [kind, name, version] =
            ["kind", "name", "apiVersion"].map(|field| text(&entry["ref"][field]));
        let is_blank = |text: &str| text.trim().is_empty();
        when(".ref.kind", is_blank(&kind));
        when(".ref.name", is_blank(&name));
        when(".ref.apiVersion", version.split('/').any(is_blank));
        when("", !seen.insert([kind, name, version]));
        for direction in ["scaleUp", "scaleDown"] {
            let scale = &entry[direction];
            let level = scale["level"].as_i64().map(i32::try_from);
            when(
                &format!(".{direction}.level"),
                !matches!(level, Some(Ok(_))),
            );
            let delay = nanos(&scale["initialDelay"]);
            when(&format!(".{direction}.initialDelay"), delay < 0);
            when(
                &format!(".{direction}.timeout"),
                nanos(&scale["timeout"]) <= 0,
            );
        }
    }
    found.retain(|(_, is_surprise)| *is_surprise);
    found.into_iter().map(|(field, _)| field).collect()
}
