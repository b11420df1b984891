//! helm, kustomize, kubectl, and the programs of Prometheus.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use testbed::go_programs::built;
use testbed::objects::{self, Manifests};

use crate::repository;

/// The chart.
pub const CHART: &str = "deploy/helm/dependency-watchdog";

/// Values that switch on all that the chart can render.
pub fn everything() -> Value {
    json!({"monitoring": {"enabled": true}, "verticalPodAutoscaler": {"enabled": true}})
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

/// The folder with helm, kustomize and kubectl.
static TOOLS: LazyLock<PathBuf> =
    LazyLock::new(|| built("deployment-tools").expect("they can be built"));

/// One of these programs.
pub fn tool(name: &str) -> PathBuf {
    TOOLS.join(name)
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
    let mut command = Command::new(tool("helm"));
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.path());
    }
    Ok(command.args(args).env_remove("KUBECONFIG").output()?)
}

/// What helm says when it renders a chart into a namespace with these values.
///
/// # Errors
/// When it cannot be run.
pub fn template(chart: &Path, namespace: &str, values: &Value) -> Result<Output> {
    let file = NamedTempFile::new()?;
    // JSON is YAML.
    std::fs::write(file.path(), values.to_string())?;
    let [chart, file] = [chart, file.path()].map(Path::to_string_lossy);
    let options = ["--namespace", namespace, "--values", &file];
    helm(&[&["template", "dependency-watchdog", &chart], &options[..]].concat())
}

/// Renders our chart into the namespace garden with these values.
///
/// # Errors
/// When helm refuses.
pub fn chart(values: &Value) -> Result<Manifests> {
    let output = template(&repository::path(CHART), "garden", values)?;
    objects::read(&good(output)?)
}

/// Renders an overlay.
///
/// # Errors
/// When kustomize refuses.
pub fn overlay(name: &str) -> Result<Manifests> {
    kustomize(&repository::path("deploy/kustomize/overlays").join(name))
}

/// Renders a kustomization of one's own, whose resources and components are parts of ours.
///
/// # Errors
/// When kustomize refuses.
pub fn customized(mut kustomization: Value) -> Result<Manifests> {
    let folder = TempDir::new()?;
    // Kustomize takes relative paths only.
    let up = "../".repeat(folder.path().canonicalize()?.components().count() - 1);
    let ours = repository::path("deploy/kustomize").canonicalize()?;
    let ours = format!("{up}{}", ours.strip_prefix("/")?.display());
    for kind in ["resources", "components"] {
        let parts = kustomization.get_mut(kind).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            *part = format!("{ours}/{}", part.as_str().context("no path")?).into();
        }
    }
    // JSON is YAML.
    let file = folder.path().join("kustomization.yaml");
    std::fs::write(file, kustomization.to_string())?;
    kustomize(folder.path())
}

fn kustomize(folder: &Path) -> Result<Manifests> {
    let output = Command::new(tool("kustomize"))
        .arg("build")
        .arg(folder)
        .output()?;
    objects::read(&good(output)?)
}

/// The overlays there are.
///
/// # Errors
/// When their folder cannot be read.
pub fn overlays() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(repository::path("deploy/kustomize/overlays"))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names: Vec<String> = names.collect::<Result<_>>()?;
    ensure!(!names.is_empty(), "there are no overlays");
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
