//! The chart as a part of another one, which has it below `charts/`.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::objects::Manifests;

use crate::repository;
use crate::tools::{CHART, chart, given, good, template};

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
        let (_file, argument) = given(values)?;
        template(self.0.path(), &[&argument])
    }
}

/// Lays the folder below `charts/` as `cp` does, which keeps links.
pub const COPY: &str = "cp -R \"$CHART\" \"$CHARTS\"";

#[test]
fn a_condition_switches_the_chart() -> Result<()> {
    let (on, off) = (chart(&[])?, Manifests::new());
    let by = |fields: Value| Umbrella::new(&fields, COPY);
    let own = by(json!({"condition": "dependency-watchdog.enabled"}))?;
    let alias = by(json!({"alias": "watchdog", "condition": "watchdog.enabled"}))?;
    let none = by(json!({}))?;
    for (umbrella, values, expected) in [
        (&own, json!({"dependency-watchdog": {"enabled": true}}), &on),
        (
            &own,
            json!({"dependency-watchdog": {"enabled": false}}),
            &off,
        ),
        (&own, json!({"dependency-watchdog": {"enabled": null}}), &on),
        (&own, json!({}), &on),
        (&alias, json!({"watchdog": {"enabled": true}}), &on),
        (&alias, json!({"watchdog": {"enabled": false}}), &off),
        // Without a condition Helm leaves it to the chart.
        (
            &none,
            json!({"dependency-watchdog": {"enabled": true}}),
            &on,
        ),
        (
            &none,
            json!({"dependency-watchdog": {"enabled": false}}),
            &off,
        ),
    ] {
        ensure!(&umbrella.render(&values)? == expected, "{values}");
    }
    ensure!(chart(&["--set=enabled=false", "--set=monitoring.enabled=true"])? == off);
    Ok(())
}

#[test]
fn a_copied_folder_is_whole() -> Result<()> {
    for lay in [
        COPY,
        "tar -C \"$CHART/..\" -c dependency-watchdog | tar -C \"$CHARTS\" -x",
        "mkdir \"$CHARTS/dependency-watchdog\" && cp -P -R \"$CHART/.\" \"$CHARTS/dependency-watchdog\"",
    ] {
        let umbrella = Umbrella::new(&json!({}), lay)?;
        ensure!(umbrella.render(&json!({}))? == chart(&[])?, "{lay}");
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
fn the_charts_files_are_copies() -> Result<()> {
    let folder = Path::new(CHART).join("files");
    for entry in std::fs::read_dir(repository::path(&folder.to_string_lossy()))? {
        let entry = entry?;
        ensure!(
            entry.file_type()?.is_file(),
            "{} is no file",
            entry.path().display()
        );
        let name = entry.file_name();
        ensure!(
            ORIGINALS.iter().any(|(copy, _)| name == *copy),
            "a copy of what: {name:?}"
        );
    }
    for (name, original) in ORIGINALS {
        let copy = format!("{}/{name}", folder.display());
        ensure!(
            repository::text(&copy)? == repository::text(original)?,
            "run: cp {original} {copy}"
        );
    }
    Ok(())
}
