//! The prober's file by `sigs.k8s.io/yaml` and the checks of the Go original (rules 15 to 23).

use std::collections::HashSet;

use anyhow::{Result, ensure};
use prober::config::{Config, ScaleInfo};
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::{Value, json};

use super::agreement::agree;
use super::yaml::{self, File, Yaml, map, mostly};

fn files() -> BoxedStrategy<File> {
    let scale = || {
        let fields = vec![
            ("level", 60, mostly(yaml::integer())),
            ("initialDelay", 30, mostly(yaml::duration())),
            ("timeout", 30, mostly(yaml::duration())),
        ];
        prop_oneof![15 => map(fields), 1 => yaml::any_yaml()].boxed()
    };
    let kind = prop_oneof!["(Deployment|StatefulSet|Depoyment)", yaml::word()].boxed();
    let version = prop_oneof![4 => "(apps/v1|v1|apps/v1/x|/|/v1|a/)", 1 => yaml::word()].boxed();
    let reference = prop_oneof![
        15 => map(vec![("kind", 95, mostly(kind)), ("name", 95, mostly(yaml::word())), ("apiVersion", 95, mostly(version))]),
        1 => yaml::any_yaml(),
    ];
    let entry = map(vec![
        ("ref", 97, reference.boxed()),
        ("optional", 30, mostly(yaml::boolean())),
        ("scaleUp", 97, scale()),
        ("scaleDown", 97, scale()),
    ]);
    let entries = (prop::collection::vec(entry, 0..3), yaml::style()).prop_map(|(items, style)| Yaml::List(items, style));
    yaml::document(map(vec![
        ("kubeConfigSecretName", 95, mostly(yaml::word())),
        ("probeInterval", 30, mostly(yaml::duration())),
        ("initialDelay", 30, mostly(yaml::duration())),
        ("probeTimeout", 30, mostly(yaml::duration())),
        ("backoffJitterFactor", 30, mostly(yaml::number())),
        ("kcmNodeMonitorGraceDuration", 30, mostly(yaml::duration())),
        ("nodeLeaseFailureFraction", 30, mostly(yaml::number())),
        ("scaleUpStabilization", 10, mostly(yaml::duration())),
        ("restoreOnlyHeldDown", 10, mostly(yaml::boolean())),
        ("standbyProtects", 10, mostly(yaml::boolean())),
        ("dependentResourceInfos", 95, prop_oneof![15 => entries, 1 => yaml::any_yaml()].boxed()),
    ]))
}

#[test]
fn prober_files_mean_what_they_mean_to_the_reference() -> Result<()> {
    campaign(
        1_500,
        files(),
        |file| json!({"prober": file.text}),
        |file, go| agree(file, go, Config::parse(&file.text), surprises, shown),
    )
}

#[test]
fn of_a_name_in_several_cases_the_one_counts_that_counts_for_the_reference() -> Result<()> {
    let spelling = "[kK][uU][bB]e[cC]onfig[sS]ecretName";
    let spellings = prop::collection::btree_set(spelling, 1..5).prop_map(Vec::from_iter).prop_shuffle();
    let text = |spellings: &[String]| {
        let entries = spellings.iter().enumerate().map(|(index, name)| format!("{name}: value-{index}\n"));
        entries.collect::<String>()
            + "dependentResourceInfos: [{ref: {kind: Deployment, name: a, apiVersion: apps/v1}, scaleUp: {}, scaleDown: {}}]"
    };
    campaign(
        500,
        spellings,
        |spellings| json!({"prober": text(spellings)}),
        |spellings, go| {
            let (go, ours) = (go.map_err(anyhow::Error::msg)?, shown(&Config::parse(&text(spellings))?.config));
            ensure!(go == ours, "Go reads {}, we {}", go["kubeConfigSecretName"], ours["kubeConfigSecretName"]);
            Ok(())
        },
    )
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

/// What we read, in the words of the Go program.
fn shown(config: &Config) -> Value {
    let turn = |info: &ScaleInfo| json!({"level": info.level, "initialDelay": info.initial_delay.as_nanos() as u64, "timeout": info.timeout.as_nanos() as u64});
    let dependents: Vec<Value> = config
        .dependents
        .iter()
        .map(|dependent| {
            let resource = &dependent.resource;
            json!({
                "kind": resource.kind, "name": resource.name, "apiVersion": resource.api_version, "optional": dependent.optional,
                "scaleUp": turn(&dependent.scale_up), "scaleDown": turn(&dependent.scale_down),
            })
        })
        .collect();
    json!({
        "kubeConfigSecretName": config.kubeconfig_secret_name,
        "probeInterval": config.probe_interval.as_nanos() as u64,
        "initialDelay": config.initial_delay.as_nanos() as u64,
        "probeTimeout": config.probe_timeout.as_nanos() as u64,
        "backoffJitterFactor": format!("{:x}", config.backoff_jitter_factor.to_bits()),
        "kcmNodeMonitorGraceDuration": config.node_monitor_grace.as_nanos() as u64,
        "nodeLeaseFailureFraction": format!("{:x}", config.node_lease_failure_fraction.to_bits()),
        "scaleUpStabilization": config.scale_up_stabilization.as_nanos() as u64,
        "restoreOnlyHeldDown": config.restore_only_held_down,
        "standbyProtects": config.standby_protects,
        "dependents": dependents,
    })
}
