//! Chart and overlays render the same objects, and these hold what they should.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::{command, config};
use testbed::objects::{self, Manifests, get, name};

use crate::tools::{EVERYTHING, chart, customized, overlay, overlays, shell};

const AGENTS: [&str; 2] = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];

/// Fails unless the one renders what the other does.
fn same(one: &Manifests, other: &Manifests) -> Result<()> {
    for (key, object) in one {
        assert_eq!(Some(object), other.get(key), "{key}");
    }
    ensure!(one.len() == other.len(), "more than {:#?}", one.keys());
    Ok(())
}

fn of_kind<'a>(objects: &'a Manifests, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let objects = objects.values();
    objects.filter(move |object| object["kind"] == kind)
}

#[test]
fn chart_renders_what_overlays_do() -> Result<()> {
    let with = |component: &str| {
        let component = format!("OURS/components/{component}");
        customized(&format!(
            "{{resources: [OURS/overlays/plain], components: [{component}]}}"
        ))
    };
    let no_ids = "podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}";
    for (values, overlay) in [
        ("", overlay("plain")),
        ("monitoring: {enabled: true}", overlay("monitoring")),
        (EVERYTHING, overlay("everything")),
        ("priorityClassName: ''", with("no-priority-class")),
        (no_ids, with("no-user-ids")),
    ] {
        same(&chart(values)?, &overlay?).context(values)?;
    }
    Ok(())
}

#[test]
fn package_renders_what_the_folder_does() -> Result<()> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    // Artifact Hub scans the image that the chart names.
    let script = "! deploy/release chart \"$WORK\" example.org/watchdog latest || exit 1
        deploy/release chart \"$WORK\" example.org/watchdog \"$DIGEST\" >&2
        package=$WORK/dependency-watchdog-$VERSION.tgz
        helm show chart \"$package\" | grep -F \"image: example.org/watchdog@$DIGEST\" >&2
        printf %s \"$VALUES\" | helm template dependency-watchdog \"$package\" --namespace garden --values -";
    let packaged = shell(script, &[("DIGEST", &digest), ("VALUES", EVERYTHING)])?;
    let values =
        format!("{EVERYTHING}image: {{repository: example.org/watchdog, digest: '{digest}'}}");
    same(&objects::read(&packaged)?, &chart(&values)?)
}

#[test]
fn flux_substitutes_nothing() -> Result<()> {
    let mut rendered = vec![chart(EVERYTHING)?];
    for overlay_name in overlays()? {
        rendered.push(overlay(&overlay_name)?);
    }
    for (key, object) in rendered.iter().flatten() {
        // What a Kustomization of Flux would take for a variable.
        let is_left = !object.to_string().contains("${")
            || object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"]
                == "disabled";
        ensure!(is_left, "{key}");
    }
    Ok(())
}

#[test]
fn trial_touches_nothing_beside_it() -> Result<()> {
    let (trial, plain) = (overlay("trial")?, overlay("plain")?);
    for key in trial.keys() {
        let of_others = key.starts_with("Role") || key.starts_with("PodDisruptionBudget");
        ensure!(!plain.contains_key(key) && !of_others, "{key}");
    }
    // It may read what the installation beside it may, and nothing else.
    for role in of_kind(&plain, "ClusterRole") {
        let mut rules = role["rules"].clone();
        for rule in rules.as_array_mut().into_iter().flatten() {
            let reads = |verb: &Value| ["get", "list", "watch"].iter().any(|reads| verb == reads);
            let verbs = rule["verbs"].as_array_mut().context("no verbs")?;
            verbs.retain(reads);
        }
        let trials = get(&trial, &format!("ClusterRole {}-trial", name(role)))?;
        assert_eq!(trials["rules"], rules);
    }
    // It runs the same, dry. Selectors of the installation beside it find none of these pods.
    for agent in AGENTS {
        let app = format!("{agent}-trial");
        let mut dry = command(&plain, agent)?;
        dry.push("--dry-run".to_owned());
        assert_eq!(command(&trial, &app)?, dry);
        assert_eq!(config(&trial, &app)?, config(&plain, agent)?);
        let spec = &get(&trial, &format!("Deployment garden/{app}"))?["spec"];
        let policy = &get(&trial, &format!("NetworkPolicy garden/{app}"))?["spec"];
        for labels in [
            &spec["template"]["metadata"]["labels"],
            &spec["selector"]["matchLabels"],
            &policy["podSelector"]["matchLabels"],
        ] {
            assert_eq!(labels["app"], *app);
        }
    }
    Ok(())
}

#[test]
fn unwanted_agent_leaves_nothing_behind() -> Result<()> {
    for (agent, other) in [("prober", "weeder"), ("weeder", "prober")] {
        let objects = chart(&format!("{EVERYTHING}{agent}: {{enabled: false}}"))?;
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

#[test]
fn prefix_leaves_alerts_their_aim() -> Result<()> {
    let names = "namePrefix: a-\nnameSuffix: -b\nnamespace: watch";
    let objects = customized(&format!("resources: [OURS/overlays/everything]\n{names}"))?;
    for agent in AGENTS {
        let renamed = |kind| get(&objects, &format!("{kind} watch/a-{agent}-b"));
        // What alerts know as the job.
        let label = renamed("ServiceMonitor")?["spec"]["jobLabel"].as_str();
        let label = label.context("no jobLabel")?;
        assert_eq!(renamed("Service")?["metadata"]["labels"][label], agent);
        let autoscaler = &renamed("VerticalPodAutoscaler")?["spec"];
        let deployment = renamed("Deployment")?;
        assert_eq!(
            autoscaler["targetRef"]["name"],
            deployment["metadata"]["name"]
        );
    }
    Ok(())
}
