//! That files mean what they mean to the Go original, that ranges are kept and that what is shown
//! means the same, random files show (`kind-tests/readers`).

use common::document::FieldError;
use serde_json::Value;

use super::*;

const KCM: &str = "- ref: {kind: Deployment, name: kcm, apiVersion: apps/v1}\n  \
                   scaleUp: {level: 0}\n  scaleDown: {level: 1}\n";

/// A config in which everything optional is left out, with these lines added at the top level.
fn minimal(lines: &str) -> String {
    format!("kubeConfigSecretName: probe\n{lines}\ndependentResourceInfos:\n{KCM}")
}

fn parse(text: &str) -> Config {
    let loaded = super::parse(text);
    loaded
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .config
}

fn warnings(text: &str) -> Vec<String> {
    super::parse(text).expect("it loads").warnings
}

/// The fields that are wrong.
fn wrong(text: &str) -> Vec<String> {
    let error = super::parse(text).expect_err(text);
    let name = |error: &FieldError| error.field.clone();
    error.fields().iter().map(name).collect()
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
    let text = "kubeConfigSecretName: \"dwd-api-server-probe-secret\"\nprobeInterval: 30s\ninitialDelay: 5s\n\
                backOffJitterFactor: 0.3\nkcmNodeMonitorGraceDuration: 2m\ndependentResourceInfos:\n  \
                - ref:\n      kind: \"Deployment\"\n      name: \"kube-controller-manager\"\n      apiVersion: \"apps/v1\"\n    \
                optional: true\n    scaleUp:\n      level: 010\n      initialDelay: 10s\n      timeout: 60s\n      replicas: 1\n    \
                scaleDown:\n      level: -1\n      replicas: 0\n";
    let Loaded { config, warnings } = super::parse(text).expect("an example");
    let same = "kubeConfigSecretName: dwd-api-server-probe-secret\nprobeInterval: 30s\ninitialDelay: 5s\n\
                backoffJitterFactor: 0.3\nkcmNodeMonitorGraceDuration: 120s\ndependentResourceInfos:\n\
                - {ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}, optional: true, \
                scaleUp: {level: 8, initialDelay: 10s, timeout: 1m}, scaleDown: {level: -1}}\n";
    assert_eq!(config, parse(same));
    let unknown = [
        "dependentResourceInfos[0].scaleDown.replicas: unknown key, ignored (line 19, column 17)",
        "dependentResourceInfos[0].scaleUp.replicas: unknown key, ignored (line 16, column 17)",
    ];
    assert_eq!(warnings, unknown);
}

#[test]
fn former_keys_of_the_prober_are_named() {
    for (key, version) in [
        ("probes: [{name: shoot-kube-apiserver}]", "1.0"),
        ("internalKubeConfigSecretName: a", "1.2"),
        ("externalKubeConfigSecretName: b", "1.2"),
    ] {
        let name = key.split(':').next().expect("a name");
        let error = super::parse(key).expect_err("not today's");
        let said =
            format!("{name}: a key of versions before {version}, which kubeConfigSecretName");
        assert!(error.warnings()[0].starts_with(&said), "{error:?}");
        assert_eq!(error.fields()[0].field, "kubeConfigSecretName");
    }
}

#[test]
fn numbers_out_of_range_are_refused_with_their_value() {
    for line in [
        "nodeLeaseFailureFraction: 0",
        "nodeLeaseFailureFraction: 1.01",
        "nodeLeaseFailureFraction: .nan",
        "nodeLeaseFailureFraction: '0.6'",
        "backoffJitterFactor: -0.1",
        "backoffJitterFactor: .inf",
        "probeInterval: 999ms",
        "probeInterval: -10s",
        "probeInterval: 30",
        "probeInterval: 1d",
        "initialDelay: -1s",
        "probeTimeout: 0s",
        "kcmNodeMonitorGraceDuration: 0s",
        "scaleUpStabilization: -1s",
        "restoreOnlyHeldDown: 1",
        "ownerCheck: 5",
    ] {
        let (name, value) = line.split_once(": ").expect("a value");
        let error = super::parse(&minimal(line)).expect_err(line).to_string();
        assert_eq!(wrong(&minimal(line)), [name], "{line}");
        assert!(error.contains(&value.replace('\'', "")), "{error}");
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
            ["kubeConfigSecretName", "dependentResourceInfos"]
        );
    }
}

#[test]
fn what_is_wrong_with_an_entry_is_named() {
    let other = KCM.replace("kcm", "mcm");
    for (given, taken, fields) in [
        (
            "ref: {kind: Deployment, name: kcm, apiVersion: apps/v1}",
            "x: 1",
            &["ref"][..],
        ),
        (KCM, "- {}", &["ref", "scaleUp", "scaleDown"]),
        ("kind: Deployment", "kind: '  '", &["ref.kind"]),
        ("name: kcm", "name: ''", &["ref.name"]),
        ("apps/v1", "a/b/c", &["ref.apiVersion"]),
        ("apps/v1", "''", &["ref.apiVersion"]),
        ("apps/v1", "/v1", &["ref.apiVersion"]),
        ("apps/v1", "apps/", &["ref.apiVersion"]),
        ("apps/v1", "~", &["ref.apiVersion"]),
        ("{level: 0}", "level:0", &["scaleUp"]),
        ("level: 0", "timeout: 0s", &["scaleUp.timeout"]),
        ("level: 0", "timeout: -1s", &["scaleUp.timeout"]),
        ("level: 0", "initialDelay: -1s", &["scaleUp.initialDelay"]),
        ("level: 0", "level: 1.5", &["scaleUp.level"]),
        ("level: 0", "level: '1'", &["scaleUp.level"]),
    ] {
        let entry = KCM.replacen(given, taken, 1);
        let fields: Vec<_> = fields
            .iter()
            .map(|field| format!("dependentResourceInfos[1].{field}"))
            .collect();
        let text = minimal("").replace(KCM, &format!("{other}{entry}\n"));
        assert_eq!(wrong(&text), fields, "{entry}");
    }
    for (more, place) in [(format!("{other}{KCM}"), 2), ("- ~\n".to_owned(), 1)] {
        let expected = format!("dependentResourceInfos[{place}]");
        assert_eq!(wrong(&(minimal("") + &more)), [expected]);
    }
}

#[test]
fn what_will_surprise_its_author_loads_with_a_warning() {
    let kcm = "dependentResourceInfos[0]";
    let too_late = "it comes too late";
    for (given, taken, begin, end) in [
        ("", "", "", ""),
        (
            "Deployment",
            "Depoyment",
            "ref.kind: apps/v1 has no kind \"Depoyment\"",
            "protected",
        ),
        ("Deployment", "StatefulSet", "", ""),
        ("apps/v1", "druid.gardener.cloud/v1alpha1", "", ""),
        (
            "level: 1",
            "initialDelay: 5s",
            "scaleDown.initialDelay: 5s of the 10s",
            "that much later",
        ),
        (
            "level: 1",
            "initialDelay: 10s",
            "scaleDown.initialDelay: 10s of the 10s",
            too_late,
        ),
        ("level: 0", "initialDelay: 30s", "", ""),
    ] {
        let shown = warnings(&minimal("").replacen(given, taken, 1)).join("\n");
        let begin = if begin.is_empty() {
            String::new()
        } else {
            format!("{kcm}.{begin}")
        };
        assert_eq!(shown.is_empty(), begin.is_empty(), "{taken}: {shown}");
        assert!(shown.starts_with(&begin) && shown.ends_with(end), "{shown}");
    }
}

#[test]
fn a_grace_shorter_than_two_renewals_loads_with_a_warning() {
    let warnings =
        |grace: &str| warnings(&minimal(&format!("kcmNodeMonitorGraceDuration: {grace}")));
    assert_eq!(warnings("20s"), [""; 0]);
    let short = warnings("19s").join("\n");
    let expected = "kcmNodeMonitorGraceDuration: 19s is so short";
    assert!(short.starts_with(expected), "{short}");
}

#[test]
fn the_file_gardener_renders_loads_as_rendered_and_without_a_warning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prober.yaml");
    let Loaded { config, warnings } = load(&path).expect("Gardener's own file");
    assert_eq!(warnings, [""; 0]);
    let same = "kubeConfigSecretName: shoot-access-dependency-watchdog-probe\nprobeInterval: 30s\n\
                kcmNodeMonitorGraceDuration: 40s\ndependentResourceInfos:\n\
                - {ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}, \
                scaleUp: {level: 0}, scaleDown: {level: 1}}\n\
                - {ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}, \
                scaleUp: {level: 1, initialDelay: 30s}, scaleDown: {level: 0}}\n\
                - {ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}, optional: true, \
                scaleUp: {level: 2}, scaleDown: {level: 0}}\n";
    assert_eq!(config, parse(same));
}

#[test]
fn with_its_section_an_owner_record_is_checked_and_the_rest_has_defaults() {
    for (more, shown) in [
        (
            "",
            r#""servers": [], "interval": "30s", "timeout": "2s", "tolerance": "5m0s", "onLoss": "standDown""#,
        ),
        (
            ", servers: ['10.0.0.10:5353', 10.0.0.11, '[::1]:53'], interval: 1s, timeout: 500ms, tolerance: 1s, onLoss: passivate",
            r#""servers": ["10.0.0.10:5353", "10.0.0.11:53", "[::1]:53"], "interval": "1s", "timeout": "500ms", "tolerance": "1s", "onLoss": "passivate""#,
        ),
    ] {
        let check =
            format!("ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}'{more}}}");
        let shown =
            format!(r#"{{"name": "owner.{{{{domain}}}}", "value": "{{{{seed}}}}", {shown}}}"#);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(to_json(&parse(&minimal(&check)))["ownerCheck"], shown);
    }
}

#[test]
fn an_owner_check_that_makes_no_sense_is_refused_with_its_field() {
    let good = "name: 'owner.{{domain}}', value: '{{seed}}'";
    for (words, fields) in [
        ("", &["name", "value"][..]),
        ("name: o, value: ''", &["value"]),
        ("name: '', value: v", &["name"]),
        ("name: 'owner.{{dom}}', value: v", &["name"]),
        ("name: 'owner. {{domain}}', value: v", &["name"]),
        ("name: o, value: '{{seeds}}'", &["value"]),
        (
            &format!("{good}, interval: 999ms, timeout: 1ms"),
            &["interval"],
        ),
        (&format!("{good}, timeout: 0s"), &["timeout"]),
        (&format!("{good}, interval: 2s"), &["timeout"]),
        (&format!("{good}, tolerance: 29s"), &["tolerance"]),
        (
            &format!("{good}, servers: [dns.example.org]"),
            &["servers[0]"],
        ),
        (&format!("{good}, onLoss: delete"), &["onLoss"]),
    ] {
        let fields: Vec<_> = fields
            .iter()
            .map(|field| format!("ownerCheck.{field}"))
            .collect();
        let text = minimal(&format!("ownerCheck: {{{words}}}"));
        assert_eq!(wrong(&text), fields, "{words}");
    }
}
