//! The chart as a part of another one, which has it below `charts/`.

use anyhow::{Result, ensure};
use testbed::objects::{self, Manifests};

use crate::tools::{CHART, chart, shell};

/// Lays the folder below `charts/` as `cp` does, which keeps links.
const COPY: &str = "cp -R \"$chart\" \"$charts\"";

/// Renders a chart that depends on ours with these further fields, and has it laid below `charts/`
/// by a shell command about the folders `$chart` and `$charts`.
///
/// # Errors
/// When the command fails, or helm refuses the values.
fn laid(fields: &str, lay: &str, values: &str) -> Result<Manifests> {
    let script = "chart=$(realpath deploy/helm/dependency-watchdog) charts=$WORK/charts
        mkdir \"$charts\"
        eval \"$LAY\"
        dependency=\"name: dependency-watchdog, version: $VERSION, $FIELDS\"
        echo \"{apiVersion: v2, name: seed, version: 1.0.0, dependencies: [{$dependency}]}\" >\"$WORK/Chart.yaml\"
        printf %s \"$VALUES\" | helm template dependency-watchdog \"$WORK\" --namespace garden --values -";
    let variables = [("FIELDS", fields), ("LAY", lay), ("VALUES", values)];
    objects::read(&shell(script, &variables)?)
}

/// Renders a chart that depends on ours.
///
/// # Errors
/// When helm refuses the values.
pub fn umbrella(values: &str) -> Result<Manifests> {
    laid("", COPY, values)
}

#[test]
fn condition_switches_the_chart() -> Result<()> {
    let (on, off) = (chart("")?, Manifests::new());
    // Without a condition Helm leaves it to the chart.
    for (fields, name) in [
        (
            "condition: dependency-watchdog.enabled",
            "dependency-watchdog",
        ),
        ("alias: watchdog, condition: watchdog.enabled", "watchdog"),
        ("", "dependency-watchdog"),
    ] {
        for (enabled, expected) in [("true", &on), ("false", &off), ("null", &on)] {
            let values = format!("{name}: {{enabled: {enabled}}}");
            let rendered = laid(fields, COPY, &values)?;
            ensure!(&rendered == expected, "{fields}: {values}");
        }
        ensure!(laid(fields, COPY, "")? == on, "{fields}");
    }
    ensure!(chart("{enabled: false, monitoring: {enabled: true}}")? == off);
    Ok(())
}

#[test]
fn copied_folder_is_whole() -> Result<()> {
    for lay in [
        COPY,
        "tar -C \"$chart/..\" -c dependency-watchdog | tar -C \"$charts\" -x",
        "mkdir \"$charts/dependency-watchdog\" && cp -P -R \"$chart/.\" \"$charts/dependency-watchdog\"",
    ] {
        ensure!(laid("", lay, "")? == chart("")?, "{lay}");
    }
    // Helm reads nothing outside of it, so it holds copies.
    let script = "cd \"$CHART/files\"
        for copy in *; do
            case $copy in
            dashboard.json | prometheus-rule.yaml) original=deploy/kustomize/components/monitoring/$copy ;;
            values.yaml) original=$CHART/$copy ;;
            *) original=config/$copy ;;
            esac
            [ ! -h \"$copy\" ] && cmp \"$copy\" \"$OLDPWD/$original\" || { echo \"run: cp $original $CHART/files/$copy\"; exit 1; }
        done";
    shell(script, &[("CHART", CHART)]).map(drop)
}
