//! Chart and overlays render the same objects, and these hold what they should.

use std::process::Command;

use crate::repository;
use crate::tools::{CHART, EVERYTHING, chart, good, helm, kustomize, overlay, overlays, template};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::{command, config, container};
use testbed::objects::{Manifests, get};

fn same(chart: &Manifests, overlay: &Manifests) -> Result<()> {
    ensure!(
        chart.keys().eq(overlay.keys()),
        "{:#?} and {:#?}",
        chart.keys(),
        overlay.keys()
    );
    for (key, object) in chart {
        ensure!(
            object == &overlay[key],
            "{key} differs\nchart:   {object}\noverlay: {}",
            overlay[key]
        );
    }
    Ok(())
}

#[test]
fn the_chart_renders_what_the_overlays_do() -> Result<()> {
    let monitoring = ["--set=monitoring.enabled=true"];
    for (name, args) in [
        ("plain", &[][..]),
        ("monitoring", &monitoring),
        ("everything", &EVERYTHING),
    ] {
        same(&chart(args)?, &overlay(name)?).context(name)?;
    }
    let everything = chart(&EVERYTHING)?;
    for kind in [
        "ServiceMonitor",
        "PrometheusRule",
        "VerticalPodAutoscaler",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ] {
        ensure!(
            everything.keys().any(|key| key.starts_with(kind)),
            "no {kind}"
        );
    }
    Ok(())
}

#[test]
fn a_chart_that_is_packaged_with_an_image_renders_what_the_folder_does() -> Result<()> {
    let (folder, digest) = (
        tempfile::tempdir()?,
        format!("sha256:{}", "0123456789abcdef".repeat(4)),
    );
    let release = |digest: &str| {
        let mut command = Command::new(repository::path("deploy/release"));
        command
            .arg("chart")
            .arg(folder.path())
            .args(["example.org/watchdog", digest])
            .output()
    };
    ensure!(
        !release("latest")?.status.success(),
        "a digest that is none is taken"
    );
    good(release(&digest)?)?;
    let package = folder.path().join(concat!(
        "dependency-watchdog-",
        env!("CARGO_PKG_VERSION"),
        ".tgz"
    ));
    // For Artifact Hub, which scans it.
    let shown: Value = serde_saphyr::from_str(&good(helm(&[
        "show",
        "chart",
        &package.to_string_lossy(),
    ])?)?)?;
    let images = shown["annotations"]["artifacthub.io/images"]
        .as_str()
        .unwrap_or_default();
    ensure!(
        images.contains(&format!("image: example.org/watchdog@{digest}\n")),
        "{shown}"
    );
    let digest = format!("--set=image.digest={digest}");
    let image = ["--set=image.repository=example.org/watchdog", &digest];
    same(
        &template(&package, &EVERYTHING)?,
        &chart(&[image, EVERYTHING].concat())?,
    )
}

#[test]
fn the_priority_class_can_be_left_out() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Kustomize takes relative paths only.
    let up = "../".repeat(folder.path().canonicalize()?.components().count() - 1);
    let path = |part: &str| {
        format!(
            "{up}{}",
            repository::path("deploy/kustomize").join(part).display()
        )
        .replace("//", "/")
    };
    let kustomization = json!({"resources": [path("overlays/plain")], "components": [path("components/no-priority-class")]});
    // JSON is YAML.
    std::fs::write(
        folder.path().join("kustomization.yaml"),
        kustomization.to_string(),
    )?;
    let objects = kustomize(folder.path())?;
    ensure!(objects != overlay("plain")?, "the class is still there");
    same(&chart(&["--set=priorityClassName="])?, &objects)
}

#[test]
fn the_chart_passes_helms_linter() -> Result<()> {
    let path = repository::path(CHART);
    for args in [&[][..], &EVERYTHING] {
        let path = path.to_string_lossy();
        let mut all = vec!["lint", "--strict", &path];
        all.extend(args);
        good(helm(&all)?)?;
    }
    Ok(())
}

#[test]
fn the_config_maps_hold_the_files_of_the_folder_config() -> Result<()> {
    for (name, suffix) in [("plain", ""), ("trial", "-trial")] {
        let objects = overlay(name)?;
        for agent in ["prober", "weeder"] {
            let held = config(&objects, &format!("dependency-watchdog-{agent}{suffix}"))?;
            assert_eq!(
                held.trim_end(),
                repository::text(&format!("config/{agent}.yaml"))?.trim_end()
            );
        }
    }
    Ok(())
}

#[test]
fn every_overlay_runs_the_same_restricted_container() -> Result<()> {
    for name in overlays()? {
        let objects = overlay(&name)?;
        let mut seen = 0;
        for (key, object) in objects
            .iter()
            .filter(|(key, _)| key.starts_with("Deployment "))
        {
            let container = container(&objects, key.trim_start_matches("Deployment garden/"))?;
            ensure!(
                container["securityContext"]["readOnlyRootFilesystem"] == true,
                "{name}: {key}"
            );
            for (probe, path) in [
                ("startupProbe", "/healthz"),
                ("livenessProbe", "/healthz"),
                ("readinessProbe", "/readyz"),
            ] {
                ensure!(
                    container[probe]["httpGet"]["path"] == path,
                    "{name}: {key}: {probe}"
                );
            }
            // Every failure of a probe, at the start too, is an Event of kind Warning.
            ensure!(
                container["startupProbe"]["initialDelaySeconds"] == 5,
                "{name}: {key}"
            );
            let replicas = if name == "trial" { 1 } else { 2 };
            ensure!(object["spec"]["replicas"] == replicas, "{name}: {key}");
            let version = format!("dependency-watchdog:{}", env!("CARGO_PKG_VERSION"));
            ensure!(
                container["image"] == version,
                "{name}: {key}: {}",
                container["image"]
            );
            seen += 1;
        }
        let expected = if name == "monitoring-alone" { 0 } else { 2 };
        ensure!(seen == expected, "{name}: {seen} Deployments");
    }
    Ok(())
}

#[test]
fn the_trial_touches_nothing_of_the_installation_beside_it() -> Result<()> {
    let (trial, plain) = (overlay("trial")?, overlay("plain")?);
    for (key, object) in &trial {
        ensure!(!plain.contains_key(key), "{key} is in both");
        ensure!(
            !key.starts_with("Role") && !key.starts_with("PodDisruptionBudget"),
            "{key}"
        );
        let reads = |rule: &Value| {
            let verbs = rule["verbs"].as_array().into_iter().flatten();
            verbs
                .filter_map(Value::as_str)
                .all(|verb| ["get", "list", "watch"].contains(&verb))
        };
        ensure!(
            object["rules"].as_array().into_iter().flatten().all(reads),
            "{key} writes: {object}"
        );
        // Selectors of the installation beside it find none of these pods.
        if key.starts_with("Deployment") {
            let app = object["spec"]["template"]["metadata"]["labels"]["app"]
                .as_str()
                .unwrap_or_default();
            ensure!(
                app.ends_with("-trial") && object["spec"]["selector"]["matchLabels"]["app"] == app,
                "{key}: {app}"
            );
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            ensure!(
                command(&trial, name)?
                    .last()
                    .is_some_and(|word| word == "--dry-run"),
                "{key} does not look on only"
            );
        }
        if key.starts_with("NetworkPolicy") {
            let app = object["spec"]["podSelector"]["matchLabels"]["app"]
                .as_str()
                .unwrap_or_default();
            ensure!(app.ends_with("-trial"), "{key}: {app}");
        }
    }
    Ok(())
}

#[test]
fn the_status_page_is_open_to_whom_the_values_name() -> Result<()> {
    let from = json!([{"ipBlock": {"cidr": "192.0.2.0/24"}}]);
    let open = format!("--set-json=networkPolicy.statusFrom={from}");
    for (args, expected) in [(vec![], 0), (vec![open.as_str()], 1)] {
        let objects = chart(&args)?;
        for agent in ["prober", "weeder"] {
            let key = format!("NetworkPolicy garden/dependency-watchdog-{agent}");
            let ingress = get(&objects, &key)?["spec"]["ingress"].clone();
            let rules = ingress.as_array().into_iter().flatten();
            let rules: Vec<_> = rules
                .filter(|rule| rule["ports"][0]["port"] == 9644)
                .collect();
            ensure!(rules.len() == expected, "{key}: {ingress}");
            ensure!(
                rules.iter().all(|rule| rule["from"] == from),
                "{key}: {ingress}"
            );
        }
    }
    Ok(())
}

#[test]
fn an_agent_that_is_not_wanted_leaves_nothing_behind() -> Result<()> {
    for (agent, other) in [("prober", "weeder"), ("weeder", "prober")] {
        let off = format!("--set={agent}.enabled=false");
        let objects = chart(&[&[off.as_str()][..], &EVERYTHING].concat())?;
        let of = |agent: &str| {
            objects
                .keys()
                .filter(|key| key.contains(&format!("dependency-watchdog-{agent}")))
                .count()
        };
        ensure!(of(agent) == 0 && of(other) > 5, "{:#?}", objects.keys());
        let alerts = get(&objects, "PrometheusRule garden/dependency-watchdog")?.to_string();
        ensure!(
            !alerts.contains(&format!("job=\\\"dependency-watchdog-{agent}\\\"")),
            "an alert waits for it"
        );
        ensure!(
            alerts.contains(&format!("job=\\\"dependency-watchdog-{other}\\\"")),
            "no alert waits for the other"
        );
    }
    Ok(())
}

#[test]
fn monitoring_alone_is_what_monitoring_adds() -> Result<()> {
    let (alone, plain, with) = (
        overlay("monitoring-alone")?,
        overlay("plain")?,
        overlay("monitoring")?,
    );
    let added: Manifests = with
        .into_iter()
        .filter(|(key, _)| !plain.contains_key(key))
        .collect();
    same(&added, &alone)?;
    // Its Services find the pods by what Gardener's pods carry, too.
    for agent in ["prober", "weeder"] {
        let service = get(
            &alone,
            &format!("Service garden/dependency-watchdog-{agent}"),
        )?;
        assert_eq!(
            service["spec"]["selector"],
            json!({"app": format!("dependency-watchdog-{agent}")})
        );
        assert_eq!(service["spec"]["ports"][0]["targetPort"], "metrics");
    }
    Ok(())
}
