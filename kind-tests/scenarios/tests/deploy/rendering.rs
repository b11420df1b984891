//! Chart and overlays render the same objects, and these hold what they should.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::{command, container};
use testbed::objects::{self, Manifests, get, items, metadata, name};

use crate::prometheus::alerts;
use crate::repository;
use crate::tools::{chart, customized, everything, good, helm, overlay, overlays, template};

const AGENTS: [&str; 2] = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];

fn same(chart: &Manifests, overlay: &Manifests) -> Result<()> {
    let (ours, theirs) = (chart.keys(), overlay.keys());
    ensure!(ours.clone().eq(theirs.clone()), "{ours:#?} and {theirs:#?}");
    for (key, object) in chart {
        let other = &overlay[key];
        ensure!(
            object == other,
            "{key} differs\nchart:   {object}\noverlay: {other}"
        );
    }
    Ok(())
}

fn of_kind<'a>(objects: &'a Manifests, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects
        .values()
        .filter(move |object| object["kind"] == kind)
}

#[test]
fn chart_renders_what_overlays_do() -> Result<()> {
    let class =
        json!({"resources": ["overlays/plain"], "components": ["components/no-priority-class"]});
    for (values, overlay) in [
        (json!({}), overlay("plain")),
        (
            json!({"monitoring": {"enabled": true}}),
            overlay("monitoring"),
        ),
        (everything(), overlay("everything")),
        (json!({"priorityClassName": ""}), customized(class)),
    ] {
        same(&chart(&values)?, &overlay?).with_context(|| values.to_string())?;
    }
    let everything = chart(&everything())?;
    for kind in [
        "ServiceMonitor",
        "PrometheusRule",
        "VerticalPodAutoscaler",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ] {
        ensure!(of_kind(&everything, kind).count() > 0, "no {kind}");
    }
    Ok(())
}

#[test]
fn package_renders_what_the_folder_does() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let release = |digest: &str| {
        let mut command = Command::new(repository::path("deploy/release"));
        let command = command.arg("chart").arg(folder.path());
        command.args(["example.org/watchdog", digest]).output()
    };
    ensure!(
        !release("latest")?.status.success(),
        "a digest that is none is taken"
    );
    good(release(&digest)?)?;
    let package = concat!("dependency-watchdog-", env!("CARGO_PKG_VERSION"), ".tgz");
    let package = folder.path().join(package);
    // For Artifact Hub, which scans it.
    let shown = good(helm(&["show", "chart", &package.to_string_lossy()])?)?;
    ensure!(
        shown.contains(&format!("image: example.org/watchdog@{digest}\n")),
        "{shown}"
    );
    let packaged = objects::read(&good(template(&package, "garden", &everything())?)?)?;
    let mut values = everything();
    values["image"] = json!({"repository": "example.org/watchdog", "digest": digest});
    same(&packaged, &chart(&values)?)
}

#[test]
fn overlays_run_one_restricted_container() -> Result<()> {
    for overlay_name in overlays()? {
        let objects = overlay(&overlay_name)?;
        let expected = if overlay_name == "monitoring-alone" {
            0
        } else {
            2
        };
        assert_eq!(
            of_kind(&objects, "Deployment").count(),
            expected,
            "{overlay_name}"
        );
        for deployment in of_kind(&objects, "Deployment") {
            let container = container(&objects, name(deployment))?;
            let path = |probe: &str| &container[probe]["httpGet"]["path"];
            let found = json!([
                container["securityContext"]["readOnlyRootFilesystem"],
                path("startupProbe"),
                path("livenessProbe"),
                path("readinessProbe"),
                // Every failure of a probe, at the start too, is an Event of kind Warning.
                container["startupProbe"]["initialDelaySeconds"],
                deployment["spec"]["replicas"],
                container["image"],
            ]);
            let replicas = if overlay_name == "trial" { 1 } else { 2 };
            let image = concat!("dependency-watchdog:", env!("CARGO_PKG_VERSION"));
            let expected = json!([true, "/healthz", "/healthz", "/readyz", 5, replicas, image]);
            assert_eq!(found, expected, "{overlay_name}: {}", name(deployment));
        }
    }
    Ok(())
}

#[test]
fn trial_touches_nothing_beside_it() -> Result<()> {
    let (trial, plain) = (overlay("trial")?, overlay("plain")?);
    for (key, object) in &trial {
        let writes = items(&object["rules"])
            .flat_map(|rule| items(&rule["verbs"]))
            .any(|verb| !["get", "list", "watch"].iter().any(|reads| verb == reads));
        let of_others = key.starts_with("Role") || key.starts_with("PodDisruptionBudget");
        ensure!(
            !plain.contains_key(key) && !of_others && !writes,
            "{key}: {object}"
        );
    }
    // Selectors of the installation beside it find none of these pods.
    let is_apart = |app: &Value| app.as_str().is_some_and(|app| app.ends_with("-trial"));
    for deployment in of_kind(&trial, "Deployment") {
        let spec = &deployment["spec"];
        let app = &spec["template"]["metadata"]["labels"]["app"];
        ensure!(
            is_apart(app) && spec["selector"]["matchLabels"]["app"] == *app,
            "{spec}"
        );
        let command = command(&trial, name(deployment))?;
        ensure!(command.ends_with(&["--dry-run".to_owned()]), "{command:?}");
    }
    for policy in of_kind(&trial, "NetworkPolicy") {
        ensure!(
            is_apart(&policy["spec"]["podSelector"]["matchLabels"]["app"]),
            "{policy}"
        );
    }
    Ok(())
}

#[test]
fn unwanted_agent_leaves_nothing_behind() -> Result<()> {
    for (agent, other) in [("prober", "weeder"), ("weeder", "prober")] {
        let mut values = everything();
        values[agent] = json!({"enabled": false});
        let objects = chart(&values)?;
        let of = |agent: &str| {
            let name = format!("dependency-watchdog-{agent}");
            objects.keys().filter(|key| key.contains(&name)).count()
        };
        ensure!(of(agent) == 0 && of(other) > 5, "{:#?}", objects.keys());
        let alerts = get(&objects, "PrometheusRule garden/dependency-watchdog")?.to_string();
        let awaited =
            |agent: &str| alerts.contains(&format!("job=\\\"dependency-watchdog-{agent}\\\""));
        ensure!(!awaited(agent) && awaited(other), "{alerts}");
    }
    Ok(())
}

#[test]
fn monitoring_can_stand_alone() -> Result<()> {
    let (alone, plain) = (overlay("monitoring-alone")?, overlay("plain")?);
    let mut added = overlay("monitoring")?;
    added.retain(|key, _| !plain.contains_key(key));
    same(&added, &alone)?;
    // Its Services find the pods by what Gardener's pods carry, too.
    for agent in AGENTS {
        let spec = &get(&alone, &format!("Service garden/{agent}"))?["spec"];
        assert_eq!(spec["selector"], json!({ "app": agent }));
        assert_eq!(spec["ports"][0]["targetPort"], "metrics");
    }
    Ok(())
}

/// The jobs that Prometheus' operator makes of the ServiceMonitors: the value of a label of the
/// Service, or else its name.
fn jobs(objects: &Manifests) -> Result<Vec<&str>> {
    let mut jobs = Vec::new();
    for monitor in of_kind(objects, "ServiceMonitor") {
        let wanted = &monitor["spec"]["selector"]["matchLabels"];
        let wanted = wanted.as_object().context("no labels")?;
        let has = |service: &&Value| {
            let labels = &service["metadata"]["labels"];
            wanted.iter().all(|(label, value)| labels[label] == *value)
        };
        let service = of_kind(objects, "Service")
            .find(has)
            .context("no Service")?;
        let label = monitor["spec"]["jobLabel"].as_str();
        let label = label.and_then(|label| service["metadata"]["labels"][label].as_str());
        jobs.push(label.unwrap_or(name(service)));
    }
    jobs.sort_unstable();
    Ok(jobs)
}

#[test]
fn prefix_leaves_alerts_their_aim() -> Result<()> {
    for names in [
        json!({}),
        json!({"namePrefix": "my-"}),
        json!({"nameSuffix": "-blue"}),
        json!({"namePrefix": "a-", "nameSuffix": "-b", "namespace": "watch"}),
    ] {
        let mut kustomization = names.clone();
        kustomization["resources"] = json!(["overlays/everything"]);
        let objects = customized(kustomization)?;
        assert_eq!(jobs(&objects)?, AGENTS, "{names}");
        assert_eq!(
            of_kind(&objects, "VerticalPodAutoscaler").count(),
            2,
            "{names}"
        );
        for autoscaler in of_kind(&objects, "VerticalPodAutoscaler") {
            let aim = autoscaler["spec"]["targetRef"]["name"]
                .as_str()
                .context("no name")?;
            get(
                &objects,
                &format!("Deployment {}/{aim}", metadata(autoscaler, "namespace")),
            )?;
        }
    }
    // The jobs that alerts name.
    let everything = chart(&everything())?;
    let alerts = alerts(&everything)?.into_iter();
    let named = alerts.filter_map(|alert| alert["labels"]["job"].as_str());
    assert_eq!(
        (jobs(&everything)?, named.collect::<Vec<_>>()),
        (AGENTS.to_vec(), AGENTS.to_vec())
    );
    Ok(())
}
