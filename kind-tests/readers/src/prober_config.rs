//! The prober's file by `sigs.k8s.io/yaml` and the checks of the Go original (rules 15 to 23).

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use prober::config::{parse, to_json};
use serde_json::{Value, json};

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

    /// What is taken is in range and says the same when it is written out; what is refused is
    /// refused with every wrong field's name.
    fn check(&self) -> Result<()> {
        let text = &self.0.text;
        let Some(config) = read(|| parse(text), &TEMPLATE)? else {
            return Ok(());
        };
        ensure!(!config.kubeconfig_secret_name.trim().is_empty());
        ensure!(config.probe_interval >= Duration::from_secs(1));
        ensure!(!config.probe_timeout.is_zero() && !config.node_monitor_grace.is_zero());
        ensure!(config.backoff_jitter_factor >= 0.0 && config.backoff_jitter_factor.is_finite());
        ensure!(
            config.node_lease_failure_fraction > 0.0 && config.node_lease_failure_fraction <= 1.0
        );
        if let Some(check) = &config.owner_check {
            ensure!(
                !check.timeout.is_zero()
                    && check.timeout < check.interval
                    && check.interval <= check.tolerance
            );
        }
        ensure!(!config.dependents.is_empty());
        let resources: HashSet<_> = config
            .dependents
            .iter()
            .map(|dependent| &dependent.resource)
            .collect();
        ensure!(
            resources.len() == config.dependents.len(),
            "one resource twice"
        );
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
    let mut found = Vec::new();
    let mut when =
        |surprising: bool, field: &str| found.extend(surprising.then(|| field.to_owned()));
    let float = |value: &Value| {
        f64::from_bits(
            u64::from_str_radix(value.as_str().unwrap_or_default(), 16).unwrap_or_default(),
        )
    };
    when(nanos(&go["probeInterval"]) < 1_000_000_000, "probeInterval");
    when(nanos(&go["initialDelay"]) < 0, "initialDelay");
    when(nanos(&go["probeTimeout"]) <= 0, "probeTimeout");
    when(
        nanos(&go["kcmNodeMonitorGraceDuration"]) <= 0,
        "kcmNodeMonitorGraceDuration",
    );
    when(
        nanos(&go["scaleUpStabilization"]) < 0,
        "scaleUpStabilization",
    );
    let fraction = float(&go["nodeLeaseFailureFraction"]);
    when(
        !(fraction > 0.0 && fraction <= 1.0),
        "nodeLeaseFailureFraction",
    );
    when(
        float(&go["backoffJitterFactor"]) < 0.0,
        "backoffJitterFactor",
    );
    let mut seen = HashSet::new();
    for (index, entry) in go["dependentResourceInfos"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let at = |field: &str| format!("dependentResourceInfos[{index}]{field}");
        let [kind, name, version] = ["kind", "name", "apiVersion"]
            .map(|field| entry["ref"][field].as_str().unwrap_or_default());
        when(!seen.insert([kind, name, version]), &at(""));
        when(kind.trim().is_empty(), &at(".ref.kind"));
        when(name.trim().is_empty(), &at(".ref.name"));
        when(
            version.split('/').any(|part| part.trim().is_empty()),
            &at(".ref.apiVersion"),
        );
        for direction in ["scaleUp", "scaleDown"] {
            let turn = &entry[direction];
            when(
                turn["level"]
                    .as_i64()
                    .is_none_or(|level| i32::try_from(level).is_err()),
                &at(&format!(".{direction}.level")),
            );
            when(
                nanos(&turn["initialDelay"]) < 0,
                &at(&format!(".{direction}.initialDelay")),
            );
            when(
                nanos(&turn["timeout"]) <= 0,
                &at(&format!(".{direction}.timeout")),
            );
        }
    }
    found
}
