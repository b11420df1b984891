//! Values of the chart: what they make of the objects, and those that are refused before anything
//! is installed.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::objects::{self, Manifests, get};

use crate::repository;
use crate::tools::{CHART, everything, good, template};

const PROBER: &str = "Deployment garden/dependency-watchdog-prober";
const WEEDER: &str = "Deployment garden/dependency-watchdog-weeder";
const PROBERS_CONFIG: &str = "ConfigMap garden/dependency-watchdog-prober-config";
const WEEDERS_CONFIG: &str = "ConfigMap garden/dependency-watchdog-weeder-config";
const PROBERS_POLICY: &str = "NetworkPolicy garden/dependency-watchdog-prober";
const WEEDERS_POLICY: &str = "NetworkPolicy garden/dependency-watchdog-weeder";
const RULE: &str = "PrometheusRule garden/dependency-watchdog";
const DASHBOARD: &str = "ConfigMap garden/dependency-watchdog-dashboard";
const AUTOSCALER: &str = "VerticalPodAutoscaler garden/dependency-watchdog-prober";

/// An object's key, a place in it, and what is there. What is in a pod, its container or a config
/// file begins with that word.
type Found = (&'static str, &'static str, Value);

/// Values, as operators write them, and what they make.
fn taken_over() -> Vec<(&'static str, Vec<Found>)> {
    let open = json!([{"ipBlock": {"cidr": "192.0.2.0/24"}}]);
    vec![
        (
            "image: {repository: e/w, digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}",
            vec![(
                PROBER,
                "container/image",
                json!("e/w@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
            )],
        ),
        (
            "{image: {pullSecrets: [{name: s}]}, nodeSelector: {pool: p}, tolerations: [{operator: Exists}], priorityClassName: ''}",
            vec![
                (PROBER, "pod/imagePullSecrets", json!([{"name": "s"}])),
                (PROBER, "pod/nodeSelector", json!({"pool": "p"})),
                (WEEDER, "pod/tolerations", json!([{"operator": "Exists"}])),
                (WEEDER, "pod/priorityClassName", Value::Null),
            ],
        ),
        (
            "prober: {extraArgs: [--metrics-per-shoot], logLevel: debug}",
            vec![
                (PROBER, "container/command/5", json!("--zap-log-level=debug")),
                (PROBER, "container/command/7", json!("--metrics-per-shoot")),
            ],
        ),
        (
            "monitoring: {enabled: true, labels: {prometheus: ours}, runBooks: 'https://git.example.org/'}",
            vec![
                (RULE, "/metadata/labels/prometheus", json!("ours")),
                (
                    RULE,
                    "/spec/groups/0/rules/0/annotations/runbook_url",
                    json!("https://git.example.org/docs/run-books/DependencyWatchdogSeedWideOutage.md"),
                ),
            ],
        ),
        (
            "networkPolicy: {}",
            vec![
                (PROBERS_POLICY, "/spec/ingress/1", Value::Null),
                (WEEDERS_POLICY, "/spec/ingress/1", Value::Null),
            ],
        ),
        (
            "networkPolicy: {statusFrom: [{ipBlock: {cidr: 192.0.2.0/24}}]}",
            vec![
                (PROBERS_POLICY, "/spec/ingress/1/from", open.clone()),
                (PROBERS_POLICY, "/spec/ingress/1/ports/0/port", json!(9644)),
                (WEEDERS_POLICY, "/spec/ingress/1/from", open),
            ],
        ),
        // A config is merged into Gardener's.
        (
            "{prober: {config: {probeInterval: 20s}}, weeder: {config: {maxDeletionsPerOwner: 3}}}",
            vec![
                (PROBERS_CONFIG, "config/probeInterval", json!("20s")),
                (
                    PROBERS_CONFIG,
                    "config/dependentResourceInfos/1/scaleUp",
                    json!({"initialDelay": "30s", "level": 1}),
                ),
                (WEEDERS_CONFIG, "config/maxDeletionsPerOwner", json!(3)),
                (WEEDERS_CONFIG, "config/watchDuration", json!("5m0s")),
            ],
        ),
        // A text stays one, whatever else YAML might take it for.
        (
            "{verticalPodAutoscaler: {enabled: true, updateMode: 'Off'}, nodeSelector: {pool: 'off'}, priorityClassName: '1234'}",
            vec![
                (AUTOSCALER, "/spec/updatePolicy/updateMode", json!("Off")),
                (PROBER, "pod/nodeSelector/pool", json!("off")),
                (PROBER, "pod/priorityClassName", json!("1234")),
            ],
        ),
        (
            "{image: {tag: '1234'}, nodeSelector: {pool: 'null'}, priorityClassName: 'null'}",
            vec![
                (WEEDER, "container/image", json!("dependency-watchdog:1234")),
                (WEEDER, "pod/nodeSelector/pool", json!("null")),
                (WEEDER, "pod/priorityClassName", json!("null")),
            ],
        ),
        // A null takes a label or a request out, and in a list of a config it is left to the agent.
        (
            "{monitoring: {enabled: true, labels: {prometheus: null}, dashboardLabels: {grafana_dashboard: null}},
                prober: {resources: {requests: {cpu: null}}}, weeder: {resources: {requests: null}}}",
            vec![
                (RULE, "/metadata/labels", json!({"app": "dependency-watchdog"})),
                (DASHBOARD, "/metadata/labels/grafana_dashboard", Value::Null),
                (PROBER, "container/resources", json!({"requests": {"memory": "256Mi"}})),
                (WEEDER, "container/resources", Value::Null),
            ],
        ),
        (
            "prober: {config: {dependentResourceInfos: [{ref: {apiVersion: v1, kind: K, name: x}, optional: null,
                scaleUp: {level: null}, scaleDown: {timeout: null}}]}}",
            vec![(
                PROBERS_CONFIG,
                "config/dependentResourceInfos",
                json!([{"ref": {"apiVersion": "v1", "kind": "K", "name": "x"}, "optional": null, "scaleUp": {"level": null}, "scaleDown": {"timeout": null}}]),
            )],
        ),
    ]
}

/// Renders the chart, the config files read.
fn rendered(namespace: &str, values: &Value) -> Result<Manifests> {
    let output = template(&repository::path(CHART), namespace, values)?;
    let mut objects = objects::read(&good(output)?)?;
    for object in objects.values_mut() {
        if let Some(config) = object["data"]["dep-config.yaml"].as_str() {
            object["data"]["dep-config.yaml"] = serde_saphyr::from_str(config)?;
        }
    }
    Ok(objects)
}

#[test]
fn values_are_taken_over() -> Result<()> {
    for (values, expected) in taken_over() {
        let objects = rendered("garden", &serde_saphyr::from_str(values)?)?;
        for (key, place, value) in expected {
            let place = place
                .replace("container/", "pod/containers/0/")
                .replace("pod/", "/spec/template/spec/")
                .replace("config/", "/data/dep-config.yaml/");
            let found = get(&objects, key)?.pointer(&place);
            assert_eq!(
                found.unwrap_or(&Value::Null),
                &value,
                "{values}: {key} {place}"
            );
        }
    }
    Ok(())
}

#[test]
fn namespace_is_that_of_all() -> Result<()> {
    for namespace in ["watch", "1234", "null"] {
        let objects = rendered(namespace, &everything())?;
        for (key, object) in &objects {
            let own = &object["metadata"]["namespace"];
            ensure!(own == namespace || key.starts_with("ClusterRole"), "{key}");
            if key.starts_with("ClusterRoleBinding") {
                assert_eq!(object["subjects"][0]["namespace"], namespace, "{key}");
            }
            if key.starts_with("Deployment") {
                let command = object.pointer("/spec/template/spec/containers/0/command");
                let command = command.context("no command")?.to_string();
                let election = format!("--leader-election-namespace={namespace}");
                ensure!(command.contains(&election), "{command}");
            }
        }
    }
    Ok(())
}

/// Values that make no sense, and the word that says where.
const REFUSED: [(&str, &str); 26] = [
    ("replica: 2", "replica"),
    ("prober: {replicas: 2}", "prober"),
    ("replicas: two", "replicas"),
    ("replicas: -1", "replicas"),
    ("image: {digest: 'sha256:abc'}", "digest"),
    ("image: {repository: ''}", "repository"),
    ("image: {pullPolicy: Sometimes}", "pullPolicy"),
    ("prober: {logLevel: warn}", "logLevel"),
    ("weeder: {extraArgs: [zap-devel]}", "extraArgs"),
    (
        "prober: {config: {nodeLeaseFailureFraction: 1.5}}",
        "nodeLeaseFailureFraction",
    ),
    (
        "prober: {config: {nodeLeaseFailureFraction: 0}}",
        "nodeLeaseFailureFraction",
    ),
    ("prober: {config: {probeInterval: 30}}", "probeInterval"),
    ("prober: {config: {initialDelay: 1d}}", "initialDelay"),
    ("prober: {config: {probeIntervall: 30s}}", "probeIntervall"),
    (
        "prober: {config: {ownerCheck: {name: 'owner.{{domain}}'}}}",
        "value",
    ),
    (
        "prober: {config: {ownerCheck: {name: o, value: v, onLoss: end}}}",
        "onLoss",
    ),
    (
        "prober: {config: {dependentResourceInfos: []}}",
        "dependentResourceInfos",
    ),
    (
        "prober: {config: {dependentResourceInfos: [{ref: {apiVersion: apps/v1, kind: Deployment}, scaleUp: {}, scaleDown: {}}]}}",
        "name",
    ),
    (
        "prober: {config: {dependentResourceInfos: [{ref: {apiVersion: v1, kind: K, name: x}, scaleUp: {level: '0'}, scaleDown: {}}]}}",
        "level",
    ),
    (
        "weeder: {config: {servicesAndDependantSelectors: {etcd: {podSelectors: []}}}}",
        "podSelectors",
    ),
    (
        "weeder: {config: {servicesAndDependantSelectors: {etcd: {podSelectors: [{matchExpressions: [{key: k, operator: Is}]}]}}}}",
        "operator",
    ),
    ("networkPolicy: {apiServerPorts: [70000]}", "apiServerPorts"),
    ("networkPolicy: {metricsFrom: []}", "metricsFrom"),
    ("networkPolicy: {statusFrom: [prometheus]}", "statusFrom"),
    ("verticalPodAutoscaler: {updateMode: Always}", "updateMode"),
    ("monitoring: {scrapeInterval: '30'}", "scrapeInterval"),
];

#[test]
fn nonsense_is_refused_by_name() -> Result<()> {
    for (values, named) in REFUSED {
        let read: Value = serde_saphyr::from_str(values)?;
        let output = template(&repository::path(CHART), "garden", &read)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success(), "{values} is taken");
        ensure!(
            said.contains("schema") && said.contains(named),
            "{values}: {said}"
        );
    }
    Ok(())
}

#[test]
fn gardeners_config_is_no_nonsense() -> Result<()> {
    let read = |agent: &str| {
        anyhow::Ok(serde_saphyr::from_str::<Value>(&repository::text(
            &format!("config/{agent}.yaml"),
        )?)?)
    };
    let given =
        json!({"prober": {"config": read("prober")?}, "weeder": {"config": read("weeder")?}});
    let [ours, theirs] = [json!({}), given].map(|values| rendered("garden", &values));
    assert_eq!(ours?, theirs?);
    Ok(())
}
