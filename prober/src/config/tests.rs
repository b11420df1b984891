//! That files mean what they mean to the Go original, that ranges are kept and that what is shown
//! means the same, random files show (`kind-tests/readers`).

use std::path::Path;
use std::time::Duration;

use common::document::load;
use serde_json::Value;

use super::*;

const KCM: &str = "- {ref: {kind: Deployment, name: kcm, apiVersion: apps/v1}, scaleUp: {level: 0}, scaleDown: {level: 1}}\n";

/// A config in which everything optional is left out, with these lines added at the top level.
fn minimal(lines: &str) -> String {
    format!("kubeConfigSecretName: probe\n{lines}\ndependentResourceInfos:\n{KCM}")
}

fn parse(text: &str) -> Config {
    super::parse(text).expect(text).config
}

fn warnings(text: &str) -> String {
    super::parse(text).expect(text).warnings.join("\n")
}

/// The fields that are wrong.
fn wrong(text: &str) -> String {
    let problems = super::parse(text).expect_err(text);
    let fields = problems
        .iter()
        .filter_map(|problem| problem.split(": ").next());
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_reference() {
    let config = parse(&minimal(""));
    let shown: Value = serde_json::from_str(
        r#"{
            "kubeConfigSecretName": "probe", "probeInterval": "10s", "initialDelay": "30s", "probeTimeout": "30s",
            "backoffJitterFactor": 0.2, "kcmNodeMonitorGraceDuration": "40s", "nodeLeaseFailureFraction": 0.6,
            "scaleUpStabilization": "0s", "restoreOnlyHeldDown": false, "standbyProtects": true, "ownerCheck": null,
            "dependentResourceInfos": [{
                "ref": {"kind": "Deployment", "name": "kcm", "apiVersion": "apps/v1"}, "optional": false,
                "scaleUp": {"level": 0, "initialDelay": "0s", "timeout": "30s"},
                "scaleDown": {"level": 1, "initialDelay": "0s", "timeout": "30s"}
            }]
        }"#,
    )
    .expect("JSON");
    assert_eq!(to_json(&config), shown);
}

#[test]
fn examples_of_the_original_load() {
    let text = r#"
kubeConfigSecretName: "dwd-api-server-probe-secret"
probeInterval: 30s
initialDelay: 5s
backOffJitterFactor: 0.3
kcmNodeMonitorGraceDuration: 2m
dependentResourceInfos:
  - ref:
      kind: "Deployment"
      name: "kube-controller-manager"
      apiVersion: "apps/v1"
    optional: true
    scaleUp:
      level: 010
      initialDelay: 10s
      timeout: 60s
      replicas: 1
    scaleDown:
      level: -1
      replicas: 0
"#;
    let same = "
kubeConfigSecretName: dwd-api-server-probe-secret
probeInterval: 30s
initialDelay: 5s
backoffJitterFactor: 0.3
kcmNodeMonitorGraceDuration: 120s
dependentResourceInfos:
- {ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}, optional: true, scaleUp: {level: 8, initialDelay: 10s, timeout: 1m}, scaleDown: {level: -1}}
";
    assert_eq!(parse(text), parse(same));
    let unknown = ["Up", "Down"]
        .map(|part| format!("dependentResourceInfos.0.scale{part}.replicas: unknown key, ignored"));
    assert_eq!(warnings(text), unknown.join("\n"));
    // The other spelling of an older example; no other key has one.
    let older = minimal("kCMNodeMonitorGraceDuration: 2m\nPROBEINTERVAL: 5s");
    let (grace, interval) = (Duration::from_secs(120), Duration::from_secs(10));
    let read = parse(&older);
    assert_eq!(
        (read.node_monitor_grace, read.probe_interval),
        (grace, interval)
    );
    assert_eq!(warnings(&older), "PROBEINTERVAL: unknown key, ignored");
}

#[test]
fn null_is_the_default() {
    let keys = "probeInterval initialDelay probeTimeout backoffJitterFactor kcmNodeMonitorGraceDuration \
                nodeLeaseFailureFraction scaleUpStabilization restoreOnlyHeldDown standbyProtects ownerCheck";
    let nulls: Vec<_> = keys.split(' ').map(|key| format!("{key}: null")).collect();
    let entry = KCM.replace("level: 0", "level: ~, initialDelay: ~, timeout: ~");
    let text = minimal(&nulls.join("\n")).replace(KCM, &entry);
    assert_eq!(
        parse(&text.replace("apps/v1}", "apps/v1}, optional: null")),
        parse(&minimal(""))
    );
}

#[test]
fn numbers_out_of_range_are_refused_with_their_value() {
    for line in [
        "nodeLeaseFailureFraction: 0.0",
        "nodeLeaseFailureFraction: 1.01",
        "nodeLeaseFailureFraction: .nan",
        "backoffJitterFactor: -0.1",
        "backoffJitterFactor: .inf",
        "probeInterval: 999ms",
        "probeInterval: 30",
        "initialDelay: -1s",
        "probeTimeout: 0s",
        "kcmNodeMonitorGraceDuration: 0s",
        "restoreOnlyHeldDown: 1",
    ] {
        let (name, value) = line.split_once(": ").expect("a value");
        let problems = super::parse(&minimal(line)).expect_err(line);
        assert_eq!(wrong(&minimal(line)), name);
        // JSON has no word for what is no number.
        let value = if value.starts_with('.') {
            "null"
        } else {
            value
        };
        assert!(problems[0].contains(value), "{problems:?}");
    }
    let edges = "nodeLeaseFailureFraction: 1\nbackoffJitterFactor: 0\nprobeInterval: 1s\ninitialDelay: 0s\nprobeTimeout: 1ns";
    parse(&minimal(edges));
    for nothing in [
        "",
        "kubeConfigSecretName:\n",
        "kubeConfigSecretName: '  '\n",
    ] {
        assert_eq!(
            wrong(nothing),
            "kubeConfigSecretName dependentResourceInfos"
        );
    }
}

#[test]
fn what_is_wrong_with_an_entry_is_named() {
    for (given, taken, fields) in [
        (
            "ref: {kind: Deployment, name: kcm, apiVersion: apps/v1}",
            "x: 1",
            "[0].ref .0.x",
        ),
        (KCM, "- {}\n", "[0].ref [0].scaleUp [0].scaleDown"),
        (KCM, "- ~\n", "[0]"),
        ("kind: Deployment", "kind: '  '", "[0].ref"),
        ("apps/v1", "a/b/c", "[0].ref"),
        ("apps/v1", "/v1", "[0].ref"),
        ("apps/v1", "~", "[0].ref"),
        ("level: 0", "timeout: 0s", "[0].scaleUp"),
        ("level: 0", "initialDelay: -1s", "[0].scaleUp.initialDelay"),
        // Twice the same.
        (
            KCM,
            &format!("{}{KCM}{KCM}", KCM.replace("kcm", "mcm")),
            "[2].ref",
        ),
    ] {
        let found = wrong(&minimal("").replacen(given, taken, 1));
        assert_eq!(
            found.replace("dependentResourceInfos", ""),
            fields,
            "{taken}"
        );
    }
}

#[test]
fn what_will_surprise_its_author_loads_with_a_warning() {
    for (given, taken, begin, end) in [
        ("", "", "", ""),
        (
            "Deployment",
            "Depoyment",
            "dependentResourceInfos[0].ref.kind: \"Depoyment\" is none of",
            "protected",
        ),
        ("Deployment", "StatefulSet", "", ""),
        ("apps/v1", "druid.gardener.cloud/v1alpha1", "", ""),
        (
            "level: 1",
            "initialDelay: 10s",
            "dependentResourceInfos[0].scaleDown.initialDelay: protection comes 10s later",
            "Unknown",
        ),
        // Shorter than two renewals.
        (
            "probe\n",
            "probe\nkcmNodeMonitorGraceDuration: 19s\n",
            "kcmNodeMonitorGraceDuration: 19s is so short",
            "",
        ),
        (
            "probe\n",
            "probe\nkcmNodeMonitorGraceDuration: 20s\n",
            "",
            "",
        ),
    ] {
        let shown = warnings(&minimal("").replacen(given, taken, 1));
        assert_eq!(shown.is_empty(), begin.is_empty(), "{taken}: {shown}");
        assert!(shown.starts_with(begin) && shown.ends_with(end), "{shown}");
    }
}

#[test]
fn the_file_gardener_renders_loads_as_rendered_and_without_a_warning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prober.yaml");
    let Loaded { config, warnings } = load(&path, super::parse).expect("Gardener's own file");
    assert_eq!(warnings, [""; 0]);
    let same = "
kubeConfigSecretName: shoot-access-dependency-watchdog-probe
probeInterval: 30s
kcmNodeMonitorGraceDuration: 40s
dependentResourceInfos:
- {ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}, scaleUp: {level: 0}, scaleDown: {level: 1}}
- {ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}, scaleUp: {level: 1, initialDelay: 30s}, scaleDown: {level: 0}}
- {ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}, optional: true, scaleUp: {level: 2}, scaleDown: {level: 0}}
";
    assert_eq!(config, parse(same));
}

#[test]
fn a_section_for_owner_records_has_defaults_and_is_checked() {
    for (more, rest) in [
        (
            "",
            r#""servers": [], "interval": "30s", "timeout": "2s", "tolerance": "300s", "onLoss": "standDown""#,
        ),
        (
            ", servers: ['10.0.0.10:5353', 10.0.0.11, '[::1]:53'], interval: 1s, timeout: 500ms, tolerance: 1s, onLoss: passivate",
            r#""servers": ["10.0.0.10:5353", "10.0.0.11:53", "[::1]:53"], "interval": "1s", "timeout": "500ms", "tolerance": "1s", "onLoss": "passivate""#,
        ),
    ] {
        let check =
            format!("ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}'{more}}}");
        let shown =
            format!(r#"{{"name": "owner.{{{{domain}}}}", "value": "{{{{seed}}}}", {rest}}}"#);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(to_json(&parse(&minimal(&check)))["ownerCheck"], shown);
    }
    for (section, fields) in [
        ("{name: o, value: ''}", "value"),
        ("{name: 'owner.{{dom}}', value: v}", "name"),
        ("{name: o, value: '{{seeds}}'}", "value"),
        (
            "{name: o, value: v, interval: 999ms, timeout: 1ms}",
            "interval",
        ),
        ("{name: o, value: v, timeout: 0s}", "timeout"),
        ("{name: o, value: v, interval: 2s}", "timeout"),
        ("{name: o, value: v, tolerance: 29s}", "tolerance"),
        (
            "{name: o, value: v, servers: [dns.example.org]}",
            "servers[0]",
        ),
        ("{name: o, value: v, onLoss: delete}", "onLoss"),
    ] {
        let found = wrong(&minimal(&format!("ownerCheck: {section}")));
        assert_eq!(found.replace("ownerCheck.", ""), fields, "{section}");
    }
}
