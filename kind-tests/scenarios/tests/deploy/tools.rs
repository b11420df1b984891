//! helm, kustomize and kubectl, and the shell that an operator has them in.

use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use testbed::agent::AgentKind;
use testbed::go_programs::built;
use testbed::objects::{self, Manifests};

use crate::repository;

/// The chart.
pub const CHART: &str = "deploy/helm/dependency-watchdog";

/// Values that switch on all that the chart can render.
pub const EVERYTHING: &str =
    "monitoring: {enabled: true}\nverticalPodAutoscaler: {enabled: true}\n";

/// A search path that begins with helm, kustomize and kubectl.
pub static PATH: LazyLock<String> = LazyLock::new(|| {
    let tools = built("deployment-tools").expect("they can be built");
    let system = std::env::var("PATH").unwrap_or_default();
    format!("{}:{system}", tools.display())
});

/// What a shell script prints. It runs in the repository, with these variables, our `$VERSION`,
/// and the empty folder `$WORK`.
///
/// # Errors
/// When one of its commands fails: with all that it wrote.
pub fn shell(script: &str, variables: &[(&str, &str)]) -> Result<String> {
    let work = tempfile::tempdir()?;
    let mut shell = Command::new("sh");
    shell
        .args(["-euc", script])
        .current_dir(repository::path(""));
    shell.env("PATH", &*PATH).env_remove("KUBECONFIG");
    // What helm caches goes with the folder.
    for variable in [
        "WORK",
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
    ] {
        shell.env(variable, work.path());
    }
    shell.env("VERSION", env!("CARGO_PKG_VERSION"));
    let output = shell.envs(variables.iter().copied()).output()?;
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() {
        bail!("{}\n{printed}{errors}", output.status);
    }
    Ok(printed)
}

/// Renders a chart into a namespace with these values.
///
/// # Errors
/// When helm refuses.
pub fn template(chart: &str, namespace: &str, values: &str) -> Result<Manifests> {
    let script = "printf %s \"$VALUES\" |
        helm template dependency-watchdog \"$CHART\" --namespace \"$NAMESPACE\" --values -";
    let variables = [
        ("CHART", chart),
        ("NAMESPACE", namespace),
        ("VALUES", values),
    ];
    objects::read(&shell(script, &variables)?)
}

/// Renders our chart into the namespace garden with these values.
///
/// # Errors
/// When helm refuses.
pub fn chart(values: &str) -> Result<Manifests> {
    template(CHART, "garden", values)
}

/// Renders an overlay.
///
/// # Errors
/// When kustomize refuses.
pub fn overlay(name: &str) -> Result<Manifests> {
    let script = "kustomize build deploy/kustomize/overlays/$NAME";
    objects::read(&shell(script, &[("NAME", name)])?)
}

/// Renders a kustomization of one's own, in which `OURS` is our folder.
///
/// # Errors
/// When kustomize refuses.
pub fn customized(kustomization: &str) -> Result<Manifests> {
    let script = "ours=$(realpath --relative-to=\"$WORK\" deploy/kustomize)
        printf %s \"$KUSTOMIZATION\" | sed \"s@OURS@$ours@g\" >\"$WORK/kustomization.yaml\"
        kustomize build \"$WORK\"";
    objects::read(&shell(script, &[("KUSTOMIZATION", kustomization)])?)
}

/// Gardener's config of the prober with times for shoots whose grace is short.
pub fn quick() -> String {
    let config = AgentKind::Prober.config().replace("30s", "1s");
    format!("{config}initialDelay: 2s\nprobeTimeout: 4s\n")
}

/// The overlays there are.
///
/// # Errors
/// When there are none.
pub fn overlays() -> Result<Vec<String>> {
    let names = shell("cd deploy/kustomize/overlays && ls", &[])?;
    Ok(names.lines().map(str::to_owned).collect())
}
