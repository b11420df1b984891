//! helm, kustomize, and the programs of Prometheus.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use testbed::objects::{self, Manifests};

use crate::repository;

/// The chart.
pub const CHART: &str = "deploy/helm/dependency-watchdog";
/// Arguments that switch on all that the chart can render.
pub const EVERYTHING: [&str; 2] = [
    "--set=monitoring.enabled=true",
    "--set=verticalPodAutoscaler.enabled=true",
];

/// The folder with what a script `build` makes, which it does first if this user's cache has none.
fn built(what: &str) -> Result<PathBuf> {
    let build = repository::path(&format!("kind-tests/{what}/build"));
    let output = Command::new(&build).stderr(Stdio::inherit()).output();
    let folder = good(output.with_context(|| format!("cannot run {}", build.display()))?)?;
    Ok(PathBuf::from(folder.trim()))
}

/// The resource definitions that Gardener brings.
///
/// # Errors
/// When they cannot be read.
pub fn definitions() -> Result<Vec<Value>> {
    let files = std::fs::read_dir(built("gardenlet")?.join("definitions"))?;
    files
        .map(|file| {
            Ok(serde_saphyr::from_str(&std::fs::read_to_string(
                file?.path(),
            )?)?)
        })
        .collect()
}

/// helm or kustomize.
fn program(name: &str) -> Result<Command> {
    Ok(Command::new(built("deployment-tools")?.join(name)))
}

/// A program of Debian's package `prometheus`.
///
/// # Errors
/// When it is not installed; says what to install.
pub fn of_prometheus(program: &str) -> Result<PathBuf> {
    system(program, "prometheus")
}

/// A program that is installed on this system.
///
/// # Errors
/// When it is not; says which of Debian's packages has it.
pub fn system(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file());
    found.with_context(|| {
        format!("{program} is needed: on Debian and Ubuntu, apt-get install {package}")
    })
}

/// Runs helm; what it caches goes with the returned folder's end.
///
/// # Errors
/// When it cannot be run. That it failed is in its output.
pub fn helm(args: &[&str]) -> Result<Output> {
    let home = TempDir::new()?;
    let mut command = program("helm")?;
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.path());
    }
    Ok(command.args(args).env_remove("KUBECONFIG").output()?)
}

/// A file of values, for as long as it is kept, and the argument that names it.
///
/// # Errors
/// When it cannot be written.
pub fn given(values: &Value) -> Result<(NamedTempFile, String)> {
    let file = NamedTempFile::new()?;
    // JSON is YAML.
    std::fs::write(file.path(), values.to_string())?;
    let argument = format!("--values={}", file.path().display());
    Ok((file, argument))
}

/// Renders the chart into the namespace garden with these further arguments.
///
/// # Errors
/// When helm refuses.
pub fn chart(args: &[&str]) -> Result<Manifests> {
    template(&repository::path(CHART), args)
}

/// Renders a chart.
///
/// # Errors
/// When helm refuses.
pub fn template(chart: &Path, args: &[&str]) -> Result<Manifests> {
    let chart = chart.to_string_lossy();
    let mut all = vec![
        "template",
        "dependency-watchdog",
        &chart,
        "--namespace=garden",
    ];
    all.extend(args);
    objects::read(&good(helm(&all)?)?)
}

/// Renders an overlay.
///
/// # Errors
/// When kustomize refuses.
pub fn overlay(name: &str) -> Result<Manifests> {
    kustomize(&repository::path("deploy/kustomize/overlays").join(name))
}

/// Renders a folder.
///
/// # Errors
/// When kustomize refuses.
pub fn kustomize(folder: &Path) -> Result<Manifests> {
    objects::read(&good(
        program("kustomize")?.arg("build").arg(folder).output()?,
    )?)
}

/// The overlays there are.
///
/// # Errors
/// When their folder cannot be read.
pub fn overlays() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(repository::path("deploy/kustomize/overlays"))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    ensure!(!names.is_empty(), "there are no overlays");
    names.sort();
    Ok(names)
}

/// Output of a program that ended well.
///
/// # Errors
/// When it did not: with all that it wrote.
pub fn good(output: Output) -> Result<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    bail!(
        "{}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
}
