//! References to names hold when people rename things, and a name that YAML would read as something
//! else stays a text.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::objects::{Manifests, get, metadata, name};

use crate::prometheus::alerts;
use crate::repository;
use crate::tools::{EVERYTHING, chart, given, kustomize};

/// Renders a kustomization of one's own over an overlay.
fn over(overlay: &str, fields: &Value) -> Result<Manifests> {
    let folder = tempfile::tempdir()?;
    // Kustomize takes relative paths only.
    let up = "../".repeat(folder.path().canonicalize()?.components().count() - 1);
    let overlay = repository::path("deploy/kustomize/overlays")
        .join(overlay)
        .canonicalize()?;
    let overlay = overlay.strip_prefix(Path::new("/"))?.display().to_string();
    let mut kustomization = json!({"resources": [format!("{up}{overlay}")]});
    for (field, value) in fields.as_object().into_iter().flatten() {
        kustomization[field] = value.clone();
    }
    // JSON is YAML.
    std::fs::write(
        folder.path().join("kustomization.yaml"),
        kustomization.to_string(),
    )?;
    kustomize(folder.path())
}

fn of_kind<'a>(objects: &'a Manifests, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects
        .values()
        .filter(move |object| object["kind"] == kind)
}

/// The jobs that Prometheus' operator makes of the ServiceMonitors: the value of a label of the
/// Service, or else its name.
fn jobs(objects: &Manifests) -> Result<Vec<String>> {
    let mut jobs = Vec::new();
    for monitor in of_kind(objects, "ServiceMonitor") {
        let wanted = monitor["spec"]["selector"]["matchLabels"]
            .as_object()
            .context("no labels")?;
        let has = |service: &&Value| {
            wanted
                .iter()
                .all(|(label, value)| service["metadata"]["labels"][label] == *value)
        };
        let service = of_kind(objects, "Service")
            .find(has)
            .context("no Service")?;
        let label = monitor["spec"]["jobLabel"]
            .as_str()
            .map(|label| &service["metadata"]["labels"][label]);
        jobs.push(
            label
                .and_then(Value::as_str)
                .unwrap_or(name(service))
                .to_owned(),
        );
    }
    jobs.sort();
    Ok(jobs)
}

#[test]
fn a_prefix_leaves_alerts_and_autoscalers_their_aim() -> Result<()> {
    for fields in [
        json!({"namePrefix": "my-"}),
        json!({"nameSuffix": "-blue"}),
        json!({"namePrefix": "a-", "nameSuffix": "-b", "namespace": "watch"}),
    ] {
        let objects = over("everything", &fields)?;
        let expected: Vec<_> = alerts(&over("everything", &json!({}))?)?
            .iter()
            .filter_map(|alert| alert["labels"]["job"].as_str().map(ToOwned::to_owned))
            .collect();
        assert_eq!(jobs(&objects)?, expected, "{fields}");
        let mut aims = 0;
        for autoscaler in of_kind(&objects, "VerticalPodAutoscaler") {
            let aim = autoscaler["spec"]["targetRef"]["name"]
                .as_str()
                .context("no name")?;
            get(
                &objects,
                &format!("Deployment {}/{aim}", metadata(autoscaler, "namespace")),
            )?;
            aims += 1;
        }
        ensure!(aims == 2, "{fields}: {aims} autoscalers");
    }
    assert_eq!(
        jobs(&chart(&EVERYTHING)?)?,
        ["dependency-watchdog-prober", "dependency-watchdog-weeder"]
    );
    Ok(())
}

#[test]
fn a_text_stays_a_text() -> Result<()> {
    for mode in ["Off", "Initial", "InPlaceOrRecreate"] {
        let (_file, argument) =
            given(&json!({"verticalPodAutoscaler": {"enabled": true, "updateMode": mode}}))?;
        let autoscaler =
            &chart(&[&argument])?["VerticalPodAutoscaler garden/dependency-watchdog-prober"];
        assert_eq!(autoscaler["spec"]["updatePolicy"]["updateMode"], mode);
    }
    for text in ["off", "1234", "null"] {
        let (_file, argument) = given(
            &json!({"priorityClassName": text, "image": {"tag": text}, "nodeSelector": {"pool": text}}),
        )?;
        let objects = chart(&[
            &argument,
            EVERYTHING[0],
            EVERYTHING[1],
            &format!("--namespace={text}"),
        ])?;
        for (key, object) in objects
            .iter()
            .filter(|(key, _)| !key.starts_with("ClusterRole"))
        {
            assert_eq!(object["metadata"]["namespace"], text, "{key}");
        }
        let pod = &get(
            &objects,
            &format!("Deployment {text}/dependency-watchdog-prober"),
        )?["spec"]["template"]["spec"];
        assert_eq!(
            (&pod["priorityClassName"], &pod["nodeSelector"]["pool"]),
            (&json!(text), &json!(text))
        );
        let binding = get(
            &objects,
            "ClusterRoleBinding gardener.cloud:dependency-watchdog-prober",
        )?;
        assert_eq!(binding["subjects"][0]["namespace"], text);
    }
    Ok(())
}
