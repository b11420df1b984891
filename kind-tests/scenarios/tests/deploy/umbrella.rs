//! The chart as a part of another one, which has it below `charts/`.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::objects::{self, Manifests};

use crate::repository;
use crate::tools::{CHART, chart, everything, good, template};

/// A chart that depends on ours.
pub struct Umbrella(TempDir);

impl Umbrella {
    /// Makes one that names it with these further fields, and lays it below `charts/` by a shell
    /// command about the folders `$CHART` and `$CHARTS`.
    ///
    /// # Errors
    /// When the command fails.
    pub fn new(fields: &Value, lay: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let charts = folder.path().join("charts");
        std::fs::create_dir(&charts)?;
        let mut command = Command::new("sh");
        command
            .args(["-euc", lay])
            .env("CHART", repository::path(CHART))
            .env("CHARTS", &charts);
        good(command.output()?)?;
        let mut dependency =
            json!({"name": "dependency-watchdog", "version": env!("CARGO_PKG_VERSION")});
        for (field, value) in fields.as_object().into_iter().flatten() {
            dependency[field] = value.clone();
        }
        let about = json!({"apiVersion": "v2", "name": "seed", "version": "1.0.0", "dependencies": [dependency]});
        // JSON is YAML.
        std::fs::write(folder.path().join("Chart.yaml"), about.to_string())?;
        Ok(Self(folder))
    }

    /// Renders it with these values.
    ///
    /// # Errors
    /// When helm refuses.
    pub fn render(&self, values: &Value) -> Result<Manifests> {
        objects::read(&good(template(self.0.path(), "garden", values)?)?)
    }
}

/// Lays the folder below `charts/` as `cp` does, which keeps links.
pub const COPY: &str = "cp -R \"$CHART\" \"$CHARTS\"";

#[test]
fn condition_switches_the_chart() -> Result<()> {
    let (on, off) = (chart(&json!({}))?, Manifests::new());
    let own = json!({"condition": "dependency-watchdog.enabled"});
    let alias = json!({"alias": "watchdog", "condition": "watchdog.enabled"});
    // Without a condition Helm leaves it to the chart.
    for (fields, name) in [
        (own, "dependency-watchdog"),
        (alias, "watchdog"),
        (json!({}), "dependency-watchdog"),
    ] {
        let umbrella = Umbrella::new(&fields, COPY)?;
        for (enabled, expected) in [(json!(true), &on), (json!(false), &off), (Value::Null, &on)] {
            let values = json!({name: {"enabled": enabled}});
            ensure!(&umbrella.render(&values)? == expected, "{fields}: {values}");
        }
        ensure!(umbrella.render(&json!({}))? == on, "{fields}");
    }
    let mut values = everything();
    values["enabled"] = false.into();
    ensure!(chart(&values)? == off);
    Ok(())
}

#[test]
fn copied_folder_is_whole() -> Result<()> {
    for lay in [
        COPY,
        "tar -C \"$CHART/..\" -c dependency-watchdog | tar -C \"$CHARTS\" -x",
        "mkdir \"$CHARTS/dependency-watchdog\" && cp -P -R \"$CHART/.\" \"$CHARTS/dependency-watchdog\"",
    ] {
        let umbrella = Umbrella::new(&json!({}), lay)?;
        ensure!(umbrella.render(&json!({}))? == chart(&json!({}))?, "{lay}");
    }
    Ok(())
}

/// The originals of files that the chart holds a copy of: Helm reads nothing outside of it.
const ORIGINALS: [(&str, &str); 5] = [
    (
        "dashboard.json",
        "deploy/kustomize/components/monitoring/dashboard.json",
    ),
    ("prober.yaml", "config/prober.yaml"),
    (
        "prometheus-rule.yaml",
        "deploy/kustomize/components/monitoring/prometheus-rule.yaml",
    ),
    ("values.yaml", "deploy/helm/dependency-watchdog/values.yaml"),
    ("weeder.yaml", "config/weeder.yaml"),
];

#[test]
fn charts_files_are_copies() -> Result<()> {
    let folder = format!("{CHART}/files");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(repository::path(&folder))? {
        let entry = entry?;
        ensure!(
            entry.file_type()?.is_file(),
            "{:?} is no file",
            entry.path()
        );
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ORIGINALS.map(|(name, _)| name), "a copy of what?");
    for (name, original) in ORIGINALS {
        let copy = format!("{folder}/{name}");
        let same = repository::text(&copy)? == repository::text(original)?;
        ensure!(same, "run: cp {original} {copy}");
    }
    Ok(())
}
