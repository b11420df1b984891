//! That files mean what they mean to the Go original, that ranges are kept and that what is shown
//! means the same, random files show (`kind-tests/readers`).

use std::time::Duration;

use common::document::FieldError;
use prober_core::config::{OnLoss, ScaleInfo};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
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
    let durations = [
        config.probe_interval,
        config.initial_delay,
        config.probe_timeout,
    ];
    assert_eq!(durations, [10 * SECOND, 30 * SECOND, 30 * SECOND]);
    let grace = [config.node_monitor_grace, config.scale_up_stabilization];
    assert_eq!(grace, [40 * SECOND, Duration::ZERO]);
    let shares = [
        config.backoff_jitter_factor,
        config.node_lease_failure_fraction,
    ];
    assert_eq!(shares, [0.2, 0.6]);
    assert!(!config.restore_only_held_down && config.standby_protects);
    let scale = |level| ScaleInfo {
        level,
        initial_delay: Duration::ZERO,
        timeout: 30 * SECOND,
    };
    let [kcm] = &config.dependents[..] else {
        panic!("{config:?}")
    };
    assert!(!kcm.optional);
    assert_eq!((&kcm.scale_up, &kcm.scale_down), (&scale(0), &scale(1)));
    assert_eq!(config.owner_check, None);
}

#[test]
fn examples_of_the_original_load() {
    let text = "kubeConfigSecretName: \"dwd-api-server-probe-secret\"\nprobeInterval: 30s\ninitialDelay: 5s\n\
                backOffJitterFactor: 0.3\nkcmNodeMonitorGraceDuration: 2m\ndependentResourceInfos:\n  \
                - ref:\n      kind: \"Deployment\"\n      name: \"kube-controller-manager\"\n      apiVersion: \"apps/v1\"\n    \
                optional: true\n    scaleUp:\n      level: 010\n      initialDelay: 10s\n      timeout: 60s\n      replicas: 1\n    \
                scaleDown:\n      level: -1\n      replicas: 0\n";
    let Loaded { config, warnings } = super::parse(text).expect("an example");
    let durations = [
        config.probe_interval,
        config.initial_delay,
        config.node_monitor_grace,
    ];
    assert_eq!(durations, [30 * SECOND, 5 * SECOND, 120 * SECOND]);
    assert_eq!(config.backoff_jitter_factor, 0.3);
    let up = ScaleInfo {
        level: 8,
        initial_delay: 10 * SECOND,
        timeout: 60 * SECOND,
    };
    let kcm = &config.dependents[0];
    assert_eq!(
        (kcm.optional, &kcm.scale_up, kcm.scale_down.level),
        (true, &up, -1)
    );
    assert_eq!(
        warnings,
        [
            "dependentResourceInfos[0].scaleDown.replicas: unknown key, ignored (line 19, column 17)",
            "dependentResourceInfos[0].scaleUp.replicas: unknown key, ignored (line 16, column 17)",
        ]
    );
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
    assert_eq!(parse(&minimal(edges)).probe_interval, SECOND);
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
    let secret = "shoot-access-dependency-watchdog-probe";
    assert_eq!(config.kubeconfig_secret_name, secret);
    let durations = [config.probe_interval, config.node_monitor_grace];
    assert_eq!(durations, [30 * SECOND, 40 * SECOND]);
    let read = config.dependents.iter().map(|dependent| {
        assert_eq!(dependent.resource.api_version, "apps/v1");
        let (up, down) = (&dependent.scale_up, &dependent.scale_down);
        let delays = [up.initial_delay.as_secs(), down.initial_delay.as_secs()];
        (
            dependent.resource.to_string(),
            dependent.optional,
            [up.level, down.level],
            delays,
        )
    });
    let expected = [
        ("kube-controller-manager", false, [0, 1], [0, 0]),
        ("machine-controller-manager", false, [1, 0], [30, 0]),
        ("cluster-autoscaler", true, [2, 0], [0, 0]),
    ];
    let expected = expected.map(|(name, optional, levels, delays)| {
        (format!("Deployment/{name}"), optional, levels, delays)
    });
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

#[test]
fn with_its_section_an_owner_record_is_checked_and_the_rest_has_defaults() {
    let check = |words: &str| {
        let check =
            format!("ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}'{words}}}");
        parse(&minimal(&check)).owner_check.expect("a check")
    };
    let left_out = check("");
    assert_eq!(left_out.name.to_string(), "owner.{{domain}}");
    assert_eq!(left_out.value.to_string(), "{{seed}}");
    let durations = [left_out.interval, left_out.timeout, left_out.tolerance];
    assert_eq!(durations, [30 * SECOND, 2 * SECOND, 300 * SECOND]);
    assert_eq!(
        (left_out.servers, left_out.on_loss),
        (vec![], OnLoss::StandDown)
    );
    let servers = ", servers: ['10.0.0.10:5353', 10.0.0.11, '[::1]:53']";
    let set = check(&format!(
        "{servers}, interval: 1s, timeout: 500ms, tolerance: 1s, onLoss: passivate"
    ));
    let servers: Vec<_> = set
        .servers
        .iter()
        .map(|server| server.0.to_string())
        .collect();
    assert_eq!(servers, ["10.0.0.10:5353", "10.0.0.11:53", "[::1]:53"]);
    assert_eq!(set.on_loss, OnLoss::Passivate);
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
