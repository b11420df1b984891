//! Chart and overlays render the same objects, and these hold what they should.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::{command, config};
use testbed::objects::{self, Manifests, get, metadata, name};

use crate::gardeners::unsaid;
use crate::prometheus::alerts;
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

/// An object as Flux applies it where a Kustomization substitutes variables, none of which is ours.
fn substituted_by_flux(object: &Value) -> Result<Value> {
    let annotations = &object["metadata"]["annotations"];
    if annotations["kustomize.toolkit.fluxcd.io/substitute"] == "disabled" {
        return Ok(object.clone());
    }
    let text = object.to_string();
    let mut parts = text.split("${");
    let mut substituted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once('}').map_or("", |(_, rest)| rest);
        substituted.push_str(rest);
    }
    Ok(serde_json::from_str(&substituted)?)
}

#[test]
fn flux_substitutes_nothing() -> Result<()> {
    let mut rendered = vec![chart(EVERYTHING)?];
    for overlay_name in overlays()? {
        rendered.push(overlay(&overlay_name)?);
    }
    for (key, object) in rendered.iter().flatten() {
        ensure!(substituted_by_flux(object)? == *object, "{key}");
    }
    Ok(())
}

/// What an agent's Deployment says. Every failure of a probe, at the start too, is an Event of kind
/// Warning.
const AGENT: &str = "
spec:
  replicas: REPLICAS
  template:
    spec:
      containers:
      - image: dependency-watchdog:VERSION
        securityContext: {readOnlyRootFilesystem: true}
        startupProbe: {httpGet: {path: /healthz}, initialDelaySeconds: 5}
        livenessProbe: {httpGet: {path: /healthz}}
        readinessProbe: {httpGet: {path: /readyz}}
";

#[test]
fn overlays_run_one_restricted_container() -> Result<()> {
    for overlay_name in overlays()? {
        let objects = overlay(&overlay_name)?;
        let (agents, replicas) = match &*overlay_name {
            "monitoring-alone" => (0, "0"),
            "trial" => (2, "1"),
            _ => (2, "2"),
        };
        let agent = AGENT.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let agent = serde_saphyr::from_str(&agent.replace("REPLICAS", replicas))?;
        assert_eq!(
            of_kind(&objects, "Deployment").count(),
            agents,
            "{overlay_name}"
        );
        for deployment in of_kind(&objects, "Deployment") {
            let unsaid = unsaid(&agent, deployment);
            ensure!(
                unsaid.is_empty(),
                "{overlay_name}: {} at {unsaid:?}",
                name(deployment)
            );
        }
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
        let mut services = of_kind(objects, "Service");
        let service = services.find(has).context("no Service")?;
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
        "namePrefix: ''",
        "namePrefix: my-",
        "nameSuffix: -blue",
        "namePrefix: a-\nnameSuffix: -b\nnamespace: watch",
    ] {
        let objects = customized(&format!("resources: [OURS/overlays/everything]\n{names}"))?;
        assert_eq!(jobs(&objects)?, AGENTS, "{names}");
        let autoscalers: Vec<_> = of_kind(&objects, "VerticalPodAutoscaler").collect();
        assert_eq!(autoscalers.len(), 2, "{names}");
        for autoscaler in autoscalers {
            let aim = autoscaler["spec"]["targetRef"]["name"].as_str();
            let namespace = metadata(autoscaler, "namespace");
            get(
                &objects,
                &format!("Deployment {namespace}/{}", aim.unwrap_or_default()),
            )?;
        }
    }
    // The jobs that alerts name.
    let everything = chart(EVERYTHING)?;
    let alerts = alerts(&everything)?.into_iter();
    let named: Vec<_> = alerts
        .filter_map(|alert| alert["labels"]["job"].as_str())
        .collect();
    assert_eq!(
        (jobs(&everything)?, &*named),
        (AGENTS.to_vec(), &AGENTS[..])
    );
    Ok(())
}
