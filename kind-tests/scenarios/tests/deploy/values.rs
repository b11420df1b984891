//! Values of the chart: those that may be set, and those that are refused before anything is installed.

use crate::repository;
use crate::tools::{CHART, chart, given, helm};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::{command, config, container};
use testbed::objects::get;

#[test]
fn values_that_make_no_sense_are_refused_by_name() -> Result<()> {
    let dependent = |part: Value| {
        let mut dependent = json!({
            "ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kube-controller-manager"},
            "scaleUp": {"level": 0}, "scaleDown": {"level": 0},
        });
        for (key, value) in part.as_object().into_iter().flatten() {
            dependent[key] = value.clone();
        }
        json!({"prober": {"config": {"dependentResourceInfos": [dependent]}}})
    };
    let selectors = |selectors: Value| json!({"weeder": {"config": {"servicesAndDependantSelectors": {"etcd-main-client": {"podSelectors": selectors}}}}});
    let bad = [
        (
            "a key that does not exist",
            json!({"replica": 2}),
            "replica",
        ),
        (
            "a key of an agent that does not exist",
            json!({"prober": {"replicas": 2}}),
            "prober",
        ),
        ("replicas in words", json!({"replicas": "two"}), "replicas"),
        (
            "fewer replicas than none",
            json!({"replicas": -1}),
            "replicas",
        ),
        (
            "a digest that is none",
            json!({"image": {"digest": "sha256:abc"}}),
            "digest",
        ),
        (
            "no image",
            json!({"image": {"repository": ""}}),
            "repository",
        ),
        (
            "an unknown pull policy",
            json!({"image": {"pullPolicy": "Sometimes"}}),
            "pullPolicy",
        ),
        (
            "an unknown log level",
            json!({"prober": {"logLevel": "warn"}}),
            "logLevel",
        ),
        (
            "an argument that is no flag",
            json!({"weeder": {"extraArgs": ["zap-devel"]}}),
            "extraArgs",
        ),
        (
            "a fraction above 1",
            json!({"prober": {"config": {"nodeLeaseFailureFraction": 1.5}}}),
            "nodeLeaseFailureFraction",
        ),
        (
            "a fraction of nothing",
            json!({"prober": {"config": {"nodeLeaseFailureFraction": 0}}}),
            "nodeLeaseFailureFraction",
        ),
        (
            "a duration without a unit",
            json!({"prober": {"config": {"probeInterval": 30}}}),
            "probeInterval",
        ),
        (
            "a duration in days",
            json!({"prober": {"config": {"initialDelay": "1d"}}}),
            "initialDelay",
        ),
        (
            "a key that the prober does not know",
            json!({"prober": {"config": {"probeIntervall": "30s"}}}),
            "probeIntervall",
        ),
        (
            "an owner check without a value",
            json!({"prober": {"config": {"ownerCheck": {"name": "owner.{{domain}}"}}}}),
            "value",
        ),
        (
            "an unknown way of losing",
            json!({"prober": {"config": {"ownerCheck": {"name": "o", "value": "v", "onLoss": "end"}}}}),
            "onLoss",
        ),
        (
            "nothing to scale",
            json!({"prober": {"config": {"dependentResourceInfos": []}}}),
            "dependentResourceInfos",
        ),
        (
            "a ref without a name",
            dependent(json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment"}})),
            "name",
        ),
        (
            "a level in words",
            dependent(json!({"scaleUp": {"level": "0"}})),
            "level",
        ),
        ("no selector", selectors(json!([])), "podSelectors"),
        (
            "an unknown operator",
            selectors(json!([{"matchExpressions": [{"key": "role", "operator": "Is"}]}])),
            "operator",
        ),
        (
            "a port that is none",
            json!({"networkPolicy": {"apiServerPorts": [70000]}}),
            "apiServerPorts",
        ),
        (
            "nobody who may read metrics",
            json!({"networkPolicy": {"metricsFrom": []}}),
            "metricsFrom",
        ),
        (
            "somebody who may ask for the status without a name",
            json!({"networkPolicy": {"statusFrom": ["prometheus"]}}),
            "statusFrom",
        ),
        (
            "an unknown update mode",
            json!({"verticalPodAutoscaler": {"updateMode": "Always"}}),
            "updateMode",
        ),
        (
            "a scrape interval without a unit",
            json!({"monitoring": {"scrapeInterval": "30"}}),
            "scrapeInterval",
        ),
    ];
    let path = repository::path(CHART);
    for (what, values, named) in bad {
        let (_file, argument) = given(&values)?;
        let output = helm(&[
            "template",
            "dependency-watchdog",
            &path.to_string_lossy(),
            &argument,
        ])?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "{what}: {values} is taken");
        ensure!(
            text.contains("schema") && text.contains(named),
            "{what}: it does not name {named}: {text}"
        );
    }
    Ok(())
}

#[test]
fn gardeners_own_config_fits_the_schema() -> Result<()> {
    let read = |agent: &str| -> Result<Value> {
        Ok(serde_saphyr::from_str(&repository::text(&format!(
            "config/{agent}.yaml"
        ))?)?)
    };
    let (_file, argument) = given(
        &json!({"prober": {"config": read("prober")?}, "weeder": {"config": read("weeder")?}}),
    )?;
    let objects = chart(&[&argument])?;
    for agent in ["prober", "weeder"] {
        let held: Value =
            serde_saphyr::from_str(config(&objects, &format!("dependency-watchdog-{agent}"))?)?;
        assert_eq!(held, read(agent)?);
    }
    Ok(())
}

#[test]
fn a_config_value_is_merged_into_gardeners_config() -> Result<()> {
    let objects = chart(&[
        "--set=prober.config.probeInterval=20s",
        "--set=weeder.config.maxDeletionsPerOwner=3",
    ])?;
    let prober: Value = serde_saphyr::from_str(config(&objects, "dependency-watchdog-prober")?)?;
    assert_eq!(prober["probeInterval"], "20s");
    assert_eq!(
        prober["kubeConfigSecretName"],
        "shoot-access-dependency-watchdog-probe"
    );
    assert_eq!(
        prober["dependentResourceInfos"].as_array().map(Vec::len),
        Some(3)
    );
    let weeder: Value = serde_saphyr::from_str(config(&objects, "dependency-watchdog-weeder")?)?;
    assert_eq!(
        (&weeder["maxDeletionsPerOwner"], &weeder["watchDuration"]),
        (&json!(3), &json!("5m0s"))
    );
    Ok(())
}

#[test]
fn images_arguments_and_places_are_taken_over() -> Result<()> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let values = json!({
        "image": {"repository": "example.org/watchdog", "digest": digest, "pullSecrets": [{"name": "registry"}]},
        "prober": {"extraArgs": ["--metrics-per-shoot"], "logLevel": "debug"},
        "nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "",
        "monitoring": {"enabled": true, "labels": {"prometheus": "ours"}, "runBooks": "https://git.example.org/dwd/"},
    });
    let (_file, argument) = given(&values)?;
    let objects = chart(&[&argument])?;
    let prober = "dependency-watchdog-prober";
    assert_eq!(
        container(&objects, prober)?["image"],
        format!("example.org/watchdog@{digest}")
    );
    let command = command(&objects, prober)?;
    assert_eq!(
        command.last().map(String::as_str),
        Some("--metrics-per-shoot")
    );
    ensure!(
        command.contains(&"--zap-log-level=debug".to_owned()),
        "{command:?}"
    );
    let pod =
        &get(&objects, "Deployment garden/dependency-watchdog-prober")?["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"pool": "system"}));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(pod["priorityClassName"], Value::Null);
    let rule = get(&objects, "PrometheusRule garden/dependency-watchdog")?;
    assert_eq!(rule["metadata"]["labels"]["prometheus"], "ours");
    let book = rule["spec"]["groups"][0]["rules"][0]["annotations"]["runbook_url"]
        .as_str()
        .context("no run-book")?;
    ensure!(
        book.starts_with("https://git.example.org/dwd/docs/run-books/"),
        "{book}"
    );
    Ok(())
}

#[test]
fn in_another_namespace_the_lease_is_there_too() -> Result<()> {
    let objects = chart(&["--namespace=watch"])?;
    for agent in ["prober", "weeder"] {
        let deployment = get(
            &objects,
            &format!("Deployment watch/dependency-watchdog-{agent}"),
        )?;
        let command =
            deployment["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
        ensure!(
            command.contains("--leader-election-namespace=watch"),
            "{command}"
        );
    }
    ensure!(
        !objects.keys().any(|key| key.contains(" garden/")),
        "{:#?}",
        objects.keys()
    );
    Ok(())
}
