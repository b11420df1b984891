//! The prober's file by `sigs.k8s.io/yaml` and the checks of the Go original (rules 15 to 23).

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use prober::config::{Config, ScaleInfo};
use serde_json::{Value, json};

use crate::config::{agree, read};
use crate::yaml::{BOOLEAN, DURATION, File, INTEGER, NUMBER, WORD};
use crate::{Go, Input, Source, in_yaml};

/// A file.
#[derive(Debug)]
pub struct Prober(File);

/// In the name and the value of an owner record.
const PLACEHOLDER: &str = "\\{\\{(domain|namespace|seed|seedUID|shoot)\\}\\}";

/// The file's fields; its texts are patterns.
fn template() -> Value {
    let scale = json!({"~level": INTEGER, "~initialDelay": DURATION, "~timeout": DURATION});
    let kind = format!("((Deployment|StatefulSet|Depoyment)|{WORD})");
    let version = format!("((apps/v1|v1|apps/v1/x|/|/v1|a/)|apps/v1|v1|v1|{WORD})");
    json!({
        "kubeConfigSecretName": WORD,
        "~probeInterval": DURATION,
        "~initialDelay": DURATION,
        "~probeTimeout": DURATION,
        "~backoffJitterFactor": NUMBER,
        "~kcmNodeMonitorGraceDuration": DURATION,
        "~nodeLeaseFailureFraction": NUMBER,
        "~~scaleUpStabilization": DURATION,
        "~~restoreOnlyHeldDown": BOOLEAN,
        "~~standbyProtects": BOOLEAN,
        "~~ownerCheck": {
            "name": format!("('owner\\.{PLACEHOLDER}'|owner\\.[a-z]{{1,8}}|{WORD})"),
            "value": format!("('{PLACEHOLDER}'|{WORD})"),
            "~servers": ["(10\\.0\\.0\\.[0-9]|'\\[::1\\]:53'|10\\.0\\.0\\.1:5[0-9]{2})"],
            "~interval": "[1-9]0s",
            "~timeout": "[1-9]s",
            "~tolerance": "[1-9]m",
            "~onLoss": format!("(standDown|passivate|{WORD})"),
        },
        "dependentResourceInfos": [{
            "ref": {"kind": kind, "name": WORD, "apiVersion": version},
            "~optional": BOOLEAN,
            "scaleUp": scale,
            "scaleDown": scale,
        }],
    })
}

impl Input for Prober {
    fn make(source: &mut Source<'_>) -> Self {
        Self(File::make(source, &template()))
    }

    /// What is taken is in range and says the same when it is written out; what is refused is refused with every wrong field's name.
    fn check(&self) -> Result<()> {
        let text = &self.0.text;
        let Some(config) = read(|| Config::parse(text), &template())? else { return Ok(()) };
        ensure!(!config.kubeconfig_secret_name.trim().is_empty());
        ensure!(config.probe_interval >= Duration::from_secs(1));
        ensure!(!config.probe_timeout.is_zero() && !config.node_monitor_grace.is_zero());
        ensure!(config.backoff_jitter_factor >= 0.0 && config.backoff_jitter_factor.is_finite());
        ensure!(config.node_lease_failure_fraction > 0.0 && config.node_lease_failure_fraction <= 1.0);
        if let Some(check) = &config.owner_check {
            ensure!(!check.timeout.is_zero() && check.timeout < check.interval && check.interval <= check.tolerance);
        }
        ensure!(!config.dependents.is_empty());
        let resources: HashSet<_> = config.dependents.iter().map(|dependent| &dependent.resource).collect();
        ensure!(resources.len() == config.dependents.len(), "one resource twice");
        let again = Config::parse(&in_yaml(&written(&config)))?.config;
        ensure!(again == config, "{again:?} from {text:?}");
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        // The Go original checks no owner records.
        if self.0.text.to_lowercase().contains("ownercheck") {
            return Ok(());
        }
        let answer = go.ask(&json!({"prober": self.0.text}))?;
        agree(&self.0, answer, Config::parse(&self.0.text), surprises, shown)
    }
}

/// A file that has a field in several cases.
#[derive(Debug)]
pub struct Spellings(String);

impl Input for Spellings {
    fn make(source: &mut Source<'_>) -> Self {
        let spellings: BTreeSet<String> =
            (0..1 + source.below(4)).map(|_| source.text("[kK][uU][bB]e[cC]onfig[sS]ecretName")).collect();
        let mut entries = Vec::new();
        for (index, name) in spellings.into_iter().enumerate() {
            let place = source.below(entries.len() + 1);
            entries.insert(place, format!("{name}: value-{index}\n"));
        }
        let rest =
            "dependentResourceInfos: [{ref: {kind: Deployment, name: a, apiVersion: apps/v1}, scaleUp: {}, scaleDown: {}}]";
        Self(entries.concat() + rest)
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let go = go.ask(&json!({"prober": self.0}))?.map_err(Error::msg)?;
        let ours = shown(&Config::parse(&self.0)?.config);
        ensure!(go == ours, "Go reads {}, we {}", go["kubeConfigSecretName"], ours["kubeConfigSecretName"]);
        Ok(())
    }
}

/// The fields of a config that the Go original takes and that are refused here on purpose (D-7, D-9, "Ranges are validated at load").
fn surprises(go: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut when = |surprising: bool, field: &str| {
        if surprising {
            found.push(field.to_owned());
        }
    };
    let nanos = |value: &Value| value.as_i64().unwrap_or_default();
    let float = |value: &Value| f64::from_bits(u64::from_str_radix(value.as_str().unwrap_or_default(), 16).unwrap_or_default());
    when(nanos(&go["probeInterval"]) < 1_000_000_000, "probeInterval");
    when(nanos(&go["initialDelay"]) < 0, "initialDelay");
    when(nanos(&go["probeTimeout"]) <= 0, "probeTimeout");
    when(nanos(&go["kcmNodeMonitorGraceDuration"]) <= 0, "kcmNodeMonitorGraceDuration");
    when(nanos(&go["scaleUpStabilization"]) < 0, "scaleUpStabilization");
    let fraction = float(&go["nodeLeaseFailureFraction"]);
    when(!(fraction > 0.0 && fraction <= 1.0), "nodeLeaseFailureFraction");
    when(float(&go["backoffJitterFactor"]) < 0.0, "backoffJitterFactor");
    let mut seen = HashSet::new();
    for (index, entry) in go["dependents"].as_array().into_iter().flatten().enumerate() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let at = |field: &str| format!("dependentResourceInfos[{index}]{field}");
        when(!seen.insert([text("kind"), text("name"), text("apiVersion")]), &at(""));
        when(text("kind").trim().is_empty(), &at(".ref.kind"));
        when(text("name").trim().is_empty(), &at(".ref.name"));
        when(text("apiVersion").split('/').any(|part| part.trim().is_empty()), &at(".ref.apiVersion"));
        for direction in ["scaleUp", "scaleDown"] {
            let turn = &entry[direction];
            when(i32::try_from(nanos(&turn["level"])).is_err(), &at(&format!(".{direction}.level")));
            when(nanos(&turn["initialDelay"]) < 0, &at(&format!(".{direction}.initialDelay")));
            when(nanos(&turn["timeout"]) <= 0, &at(&format!(".{direction}.timeout")));
        }
    }
    found
}

fn nanos(duration: Duration) -> Value {
    json!(duration.as_nanos() as u64)
}

/// What we read, in the words of the Go program.
fn shown(config: &Config) -> Value {
    let turn = |info: &ScaleInfo| json!({"level": info.level, "initialDelay": nanos(info.initial_delay), "timeout": nanos(info.timeout)});
    let dependents = config.dependents.iter().map(|dependent| {
        let resource = &dependent.resource;
        json!({
            "kind": resource.kind, "name": resource.name, "apiVersion": resource.api_version, "optional": dependent.optional,
            "scaleUp": turn(&dependent.scale_up), "scaleDown": turn(&dependent.scale_down),
        })
    });
    json!({
        "kubeConfigSecretName": config.kubeconfig_secret_name,
        "probeInterval": nanos(config.probe_interval),
        "initialDelay": nanos(config.initial_delay),
        "probeTimeout": nanos(config.probe_timeout),
        "backoffJitterFactor": format!("{:x}", config.backoff_jitter_factor.to_bits()),
        "kcmNodeMonitorGraceDuration": nanos(config.node_monitor_grace),
        "nodeLeaseFailureFraction": format!("{:x}", config.node_lease_failure_fraction.to_bits()),
        "scaleUpStabilization": nanos(config.scale_up_stabilization),
        "restoreOnlyHeldDown": config.restore_only_held_down,
        "standbyProtects": config.standby_protects,
        "dependents": dependents.collect::<Vec<_>>(),
    })
}

/// What is shown, as a file that says the same.
fn written(config: &Config) -> Value {
    let mut written = shown(config);
    let span = |value: &mut Value| *value = json!(format!("{value}ns"));
    for field in ["probeInterval", "initialDelay", "probeTimeout", "kcmNodeMonitorGraceDuration", "scaleUpStabilization"] {
        span(&mut written[field]);
    }
    written["backoffJitterFactor"] = json!(config.backoff_jitter_factor);
    written["nodeLeaseFailureFraction"] = json!(config.node_lease_failure_fraction);
    written["ownerCheck"] = json!(config.owner_check.as_ref().map(|check| json!({
        "name": check.name, "value": check.value, "servers": check.servers, "onLoss": check.on_loss,
        "interval": format!("{}ns", check.interval.as_nanos()), "timeout": format!("{}ns", check.timeout.as_nanos()),
        "tolerance": format!("{}ns", check.tolerance.as_nanos()),
    })));
    let mut dependents = written["dependents"].take();
    for dependent in dependents.as_array_mut().into_iter().flatten() {
        let reference = json!({"kind": dependent["kind"], "name": dependent["name"], "apiVersion": dependent["apiVersion"]});
        dependent["ref"] = reference;
        for direction in ["scaleUp", "scaleDown"] {
            span(&mut dependent[direction]["initialDelay"]);
            span(&mut dependent[direction]["timeout"]);
        }
    }
    written["dependentResourceInfos"] = dependents;
    written
}
