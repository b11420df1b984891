//! The chart as a part of another one, which has it below `charts/`.

use anyhow::{Result, ensure};
use testbed::objects::{self, Manifests};

use crate::tools::{CHART, chart, shell};

/// Renders a chart that depends on a copy of ours with these further fields.
///
/// # Errors
/// When helm refuses the values.
fn umbrella(fields: &str, values: &str) -> Result<Manifests> {
    let script = "mkdir \"$WORK/charts\"
        cp -R \"$CHART\" \"$WORK/charts\"
        dependency=\"name: dependency-watchdog, version: $VERSION, $FIELDS\"
        echo \"{apiVersion: v2, name: seed, version: 1.0.0, dependencies: [{$dependency}]}\" >\"$WORK/Chart.yaml\"
        printf %s \"$VALUES\" | helm template dependency-watchdog \"$WORK\" --namespace garden --values -";
    let variables = [("CHART", CHART), ("FIELDS", fields), ("VALUES", values)];
    objects::read(&shell(script, &variables)?)
}

#[test]
fn condition_switches_the_chart() -> Result<()> {
    let (on, off) = (chart("")?, Manifests::new());
    // Without a condition Helm leaves it to the chart.
    for (fields, name) in [
        ("alias: watchdog, condition: watchdog.enabled", "watchdog"),
        ("", "dependency-watchdog"),
    ] {
        for (enabled, expected) in [("true", &on), ("false", &off), ("null", &on)] {
            let values = format!("{name}: {{enabled: {enabled}}}");
            let rendered = umbrella(fields, &values)?;
            ensure!(&rendered == expected, "{fields}: {values}");
        }
    }
    Ok(())
}

#[test]
fn copied_folder_is_whole() -> Result<()> {
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
