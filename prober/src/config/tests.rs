use std::time::Duration;

use super::*;
use common::document::FieldError;
use prober_core::config::{OnLoss, ScaleInfo};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// A config in which everything optional is left out, with these lines added at the top level.
fn minimal(lines: &str) -> String {
    format!(
        "kubeConfigSecretName: probe\n{lines}\ndependentResourceInfos:\n{}",
        entry("kcm", "")
    )
}

/// An entry of the list of dependents, with these words added to its scaleUp.
fn entry(name: &str, scale_up: &str) -> String {
    format!(
        "- ref: {{kind: Deployment, name: {name}, apiVersion: apps/v1}}\n  \
         scaleUp: {{level: 0{scale_up}}}\n  scaleDown: {{level: 1}}\n"
    )
}

fn parse(text: &str) -> Config {
    super::parse(text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .config
}

fn errors(text: &str) -> Vec<String> {
    let error = super::parse(text).expect_err(text);
    assert!(!error.fields().is_empty(), "{error}");
    error.fields().iter().map(FieldError::to_string).collect()
}

fn field_names(text: &str) -> Vec<String> {
    let error = super::parse(text).expect_err(text);
    error
        .fields()
        .iter()
        .map(|error| error.field.clone())
        .collect()
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_reference() {
    let text = "kubeConfigSecretName: probe\ndependentResourceInfos:\n".to_owned()
        + &entry("kube-controller-manager", "")
        + &entry("machine-controller-manager", "")
        + &entry("cluster-autoscaler", "");
    let config = parse(&text);
    assert_eq!(config.probe_interval, 10 * SECOND);
    assert_eq!(config.initial_delay, 30 * SECOND);
    assert_eq!(config.probe_timeout, 30 * SECOND);
    assert_eq!(config.backoff_jitter_factor, 0.2);
    assert_eq!(config.node_lease_failure_fraction, 0.6);
    assert_eq!(config.node_monitor_grace, 40 * SECOND);
    assert_eq!(config.scale_up_stabilization, Duration::ZERO);
    assert!(!config.restore_only_held_down);
    assert!(config.standby_protects);
    assert_eq!(config.dependents.len(), 3);
    for dependent in &config.dependents {
        assert!(!dependent.optional);
        assert_eq!(
            dependent.scale_up,
            ScaleInfo {
                level: 0,
                initial_delay: Duration::ZERO,
                timeout: 30 * SECOND
            }
        );
        assert_eq!(dependent.scale_down.level, 1);
    }
}

#[test]
fn five_faults_are_five_errors_in_one_go() {
    let text = "
kubeConfigSecretName: ''
dependentResourceInfos:
- ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v/1}
- ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}
  scaleUp: {level: 1, initialDelay: 10s, timeout: 60s}
  scaleDown: {level: 0, initialDelay: 15s, timeout: 45s}
- ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}
  scaleUp: {level: 0, initialDelay: 10s, timeout: 60s}
";
    let error = super::parse(text).expect_err("five errors").to_string();
    assert_eq!(
        error,
        "config: 5 errors\n  \
         kubeConfigSecretName: \"\": expected the name of a Secret (line 2, column 23)\n  \
         dependentResourceInfos[0].ref.apiVersion: \"apps/v/1\": expected an apiVersion, as apps/v1 (line 4, column 70)\n  \
         dependentResourceInfos[0].scaleUp: missing: expected an object, as {level: 0}\n  \
         dependentResourceInfos[0].scaleDown: missing: expected an object, as {level: 0}\n  \
         dependentResourceInfos[2].scaleDown: missing: expected an object, as {level: 0}"
    );
}

#[test]
fn a_null_grace_is_no_error_but_a_null_secret_and_no_dependents_are() {
    let text = "kubeConfigSecretName:\nprobeInterval: 20s\nkcmNodeMonitorGraceDuration:\n";
    assert_eq!(
        field_names(text),
        ["kubeConfigSecretName", "dependentResourceInfos"]
    );
    assert_eq!(
        field_names(""),
        ["kubeConfigSecretName", "dependentResourceInfos"]
    );
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    let error = load(Path::new("/no/such/file.yaml"))
        .expect_err("no file")
        .to_string();
    assert!(
        error.starts_with("/no/such/file.yaml: No such file"),
        "{error}"
    );
}

#[test]
fn a_file_is_named_in_its_errors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let error = load(&path).expect_err("no config").to_string();
    assert!(
        error.starts_with(&format!("{}: ", path.display())),
        "{error}"
    );
}

#[test]
fn a_word_where_an_object_is_due_is_one_error_at_its_place() {
    let text = minimal("").replace("scaleUp: {level: 0}", "scaleUp: level:0");
    assert_eq!(
        errors(&text),
        ["dependentResourceInfos[0].scaleUp: \"level:0\": expected an object"]
    );
}

#[test]
fn unknown_keys_are_ignored_with_a_warning_wherever_they_stand() {
    let text = minimal("successThreshold: 1").replace(
        "scaleUp: {level: 0",
        "replicas: 2\n  scaleUp: {level: 3, replicas: 1",
    );
    let loaded = super::parse(&text).expect("ignored");
    assert_eq!(loaded.config.dependents[0].scale_up.level, 3);
    assert_eq!(
        loaded.warnings,
        [
            "dependentResourceInfos[0].replicas: unknown key, ignored (line 5, column 13)",
            "dependentResourceInfos[0].scaleUp.replicas: unknown key, ignored (line 6, column 33)",
            "successThreshold: unknown key, ignored (line 2, column 19)",
        ]
    );
}

#[test]
fn examples_of_the_original_load() {
    let dependent = |name: &str, optional: bool, up: &str, down: &str| {
        format!(
            "  - ref:\n      kind: \"Deployment\"\n      name: \"{name}\"\n      apiVersion: \"apps/v1\"\n    \
             optional: {optional}\n    scaleUp:\n{up}    scaleDown:\n{down}"
        )
    };
    let head = "kubeConfigSecretName: \"dwd-api-server-probe-secret\"\nprobeInterval: 30s\ninitialDelay: 5s\n\
                backOffJitterFactor: 0.3\nkcmNodeMonitorGraceDuration: 2m\ndependentResourceInfos:\n";
    let text = head.to_owned()
        + &dependent(
            "kube-controller-manager",
            false,
            "      level: 0\n      initialDelay: 10s\n      timeout: 60s\n      replicas: 1\n",
            "      level: 1\n      replicas: 0\n",
        )
        + &dependent(
            "cluster-autoscaler",
            true,
            "      level: 2\n",
            "      level: 0\n",
        );
    let Loaded { config, warnings } = super::parse(&text).expect("an example");
    assert_eq!(
        (config.probe_interval, config.initial_delay),
        (30 * SECOND, 5 * SECOND)
    );
    assert_eq!(
        (config.backoff_jitter_factor, config.node_monitor_grace),
        (0.3, 120 * SECOND)
    );
    let [kcm, autoscaler] = &config.dependents[..] else {
        panic!("{config:?}");
    };
    let up = ScaleInfo {
        level: 0,
        initial_delay: 10 * SECOND,
        timeout: 60 * SECOND,
    };
    assert_eq!((&kcm.scale_up, kcm.scale_down.level), (&up, 1));
    assert!(autoscaler.optional && autoscaler.scale_up.level == 2);
    assert_eq!(warnings.len(), 2, "replicas: {warnings:?}");
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
fn keys_in_another_case_are_taken() {
    let config = parse(&minimal("backOffJitterFactor: 0.5\nPROBEINTERVAL: 15s"));
    assert_eq!(
        (config.backoff_jitter_factor, config.probe_interval),
        (0.5, 15 * SECOND)
    );
}

#[test]
fn our_own_settings_are_read() {
    let config = parse(&minimal(
        "scaleUpStabilization: 90s\nrestoreOnlyHeldDown: yes",
    ));
    assert_eq!(config.scale_up_stabilization, 90 * SECOND);
    assert!(config.restore_only_held_down);
}

#[test]
fn a_misspelt_kind_loads_with_a_warning() {
    let loaded =
        super::parse(&minimal("").replace("kind: Deployment", "kind: Depoyment")).expect("loads");
    assert_eq!(loaded.warnings.len(), 1);
    let warning = &loaded.warnings[0];
    assert!(
        warning
            .starts_with("dependentResourceInfos[0].ref.kind: apps/v1 has no kind \"Depoyment\""),
        "{warning}"
    );
}

#[test]
fn kinds_of_groups_unknown_here_load_in_silence() {
    for (kind, api_version) in [
        ("Etcd", "druid.gardener.cloud/v1alpha1"),
        ("StatefulSet", "apps/v1"),
        ("ReplicationController", "v1"),
    ] {
        let text = minimal("").replace("kind: Deployment", &format!("kind: {kind}"));
        let text = text.replace("apiVersion: apps/v1", &format!("apiVersion: {api_version}"));
        assert_eq!(
            super::parse(&text).map(|loaded| loaded.warnings).ok(),
            Some(vec![]),
            "{kind}"
        );
    }
}

#[test]
fn an_entry_without_a_ref_is_an_error_that_names_it() {
    let text = minimal("") + "- scaleUp: {level: 0}\n  scaleDown: {level: 0}\n- {}\n";
    assert_eq!(
        field_names(&text),
        [
            "dependentResourceInfos[1].ref",
            "dependentResourceInfos[2].ref",
            "dependentResourceInfos[2].scaleUp",
            "dependentResourceInfos[2].scaleDown"
        ]
    );
    let text = minimal("") + "- ~\n";
    let said = "dependentResourceInfos[1]: null: expected an object";
    assert_eq!(errors(&text), [said]);
}

#[test]
fn refs_need_all_their_parts_in_shape() {
    for (part, field) in [
        ("kind: ''", "kind"),
        ("kind: '  '", "kind"),
        ("name: ''", "name"),
        ("apiVersion: a/b/c", "apiVersion"),
        ("apiVersion: ''", "apiVersion"),
        ("apiVersion: /v1", "apiVersion"),
        ("apiVersion: apps/", "apiVersion"),
        ("apiVersion: ~", "apiVersion"),
    ] {
        let mut parts = vec!["kind: Deployment", "name: kcm", "apiVersion: apps/v1"];
        parts.retain(|known| !known.starts_with(field));
        parts.push(part);
        let text = minimal("").replace(
            "kind: Deployment, name: kcm, apiVersion: apps/v1",
            &parts.join(", "),
        );
        assert_eq!(
            field_names(&text),
            [format!("dependentResourceInfos[0].ref.{field}")],
            "{part}"
        );
    }
}

#[test]
fn the_same_resource_twice_is_refused() {
    let text = minimal("") + &entry("mcm", "") + &entry("kcm", "");
    let errors = errors(&text);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("dependentResourceInfos[2]") && errors[0].contains("Deployment/kcm"),
        "{errors:?}"
    );
}

#[test]
fn a_blank_secret_name_is_refused_and_a_bare_number_is_a_name() {
    assert_eq!(
        field_names(&minimal("").replace("Name: probe", "Name: '   '")),
        ["kubeConfigSecretName"]
    );
    assert_eq!(
        parse(&minimal("").replace("Name: probe", "Name: 123")).kubeconfig_secret_name,
        "123"
    );
}

#[test]
fn numbers_out_of_range_are_refused_with_their_value() {
    for line in [
        "nodeLeaseFailureFraction: 0",
        "nodeLeaseFailureFraction: -0.1",
        "nodeLeaseFailureFraction: 1.01",
        "nodeLeaseFailureFraction: .nan",
        "nodeLeaseFailureFraction: .inf",
        "nodeLeaseFailureFraction: '0.6'",
        "backoffJitterFactor: -0.1",
        "backoffJitterFactor: .inf",
        "backoffJitterFactor: .nan",
        "probeInterval: 0s",
        "probeInterval: 999ms",
        "probeInterval: -10s",
        "probeInterval: 30",
        "probeInterval: \"30\"",
        "probeInterval: 1d",
        "initialDelay: -1s",
        "probeTimeout: 0s",
        "kcmNodeMonitorGraceDuration: 0s",
        "kcmNodeMonitorGraceDuration: -40s",
        "scaleUpStabilization: -1s",
        "restoreOnlyHeldDown: 1",
    ] {
        let name = line.split(':').next().expect("a name");
        let errors = errors(&minimal(line));
        assert_eq!(errors.len(), 1, "{line}: {errors:?}");
        assert!(
            errors[0].starts_with(&format!("{name}: ")) && errors[0].contains("expected"),
            "{line}: {errors:?}"
        );
    }
    for words in [
        ", timeout: 0s",
        ", timeout: -1s",
        ", initialDelay: -1s",
        ", level: 1.0",
        ", level: 1.5",
        ", level: '1'",
    ] {
        let text = minimal("").replace("scaleUp: {level: 0", &format!("scaleUp: {{x: 0{words}"));
        assert_eq!(field_names(&text).len(), 1, "{words}");
    }
}

#[test]
fn the_edges_of_the_ranges_are_in() {
    let config = parse(&minimal(
        "nodeLeaseFailureFraction: 1\nbackoffJitterFactor: 0\nprobeInterval: 1s\ninitialDelay: 0s\nprobeTimeout: 1ns",
    ));
    assert_eq!(
        (
            config.node_lease_failure_fraction,
            config.backoff_jitter_factor
        ),
        (1.0, 0.0)
    );
    assert_eq!(
        (config.probe_interval, config.initial_delay),
        (SECOND, Duration::ZERO)
    );
}

#[test]
fn levels_may_be_negative_or_missing() {
    for (level, expected) in [
        ("level: -3", -3),
        ("level: ~", 0),
        ("other: 1", 0),
        ("level: 010", 8),
    ] {
        let config =
            parse(&minimal("").replace("scaleUp: {level: 0", &format!("scaleUp: {{{level}")));
        assert_eq!(config.dependents[0].scale_up.level, expected, "{level}");
    }
}

#[test]
fn a_delayed_scale_down_loads_with_a_warning_that_says_what_it_costs() {
    let warning = |delay: &str| {
        let text = minimal("").replace(
            "scaleDown: {level: 1",
            &format!("scaleDown: {{initialDelay: {delay}, level: 1"),
        );
        super::parse(&text).expect("loads").warnings.join("\n")
    };
    assert_eq!(warning("0s"), "");
    let later = warning("5s");
    assert!(
        later.starts_with("dependentResourceInfos[0].scaleDown.initialDelay: 5s of the 10s"),
        "{later}"
    );
    assert!(
        later.ends_with("protection comes that much later"),
        "{later}"
    );
    assert!(warning("15s").ends_with("it comes too late"));
}

#[test]
fn a_delayed_scale_up_is_nothing_to_warn_of() {
    let text = minimal("").replace(
        "scaleUp: {level: 0",
        "scaleUp: {initialDelay: 30s, level: 0",
    );
    assert_eq!(
        super::parse(&text).map(|loaded| loaded.warnings).ok(),
        Some(vec![])
    );
}

#[test]
fn a_grace_shorter_than_two_renewals_loads_with_a_warning() {
    let warnings = |grace: &str| {
        let text = minimal(&format!("kcmNodeMonitorGraceDuration: {grace}"));
        super::parse(&text).expect("loads").warnings
    };
    assert_eq!(warnings("40s"), [""; 0]);
    assert_eq!(warnings("20s"), [""; 0]);
    let short = warnings("19s").join("\n");
    assert!(
        short.starts_with("kcmNodeMonitorGraceDuration: 19s is so short"),
        "{short}"
    );
}

#[test]
fn the_file_gardener_renders_loads_as_rendered_and_without_a_warning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prober.yaml");
    let Loaded { config, warnings } = load(&path).expect("Gardener's own file");
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        config.kubeconfig_secret_name,
        "shoot-access-dependency-watchdog-probe"
    );
    assert_eq!(
        (config.probe_interval, config.node_monitor_grace),
        (30 * SECOND, 40 * SECOND)
    );
    let read: Vec<_> = config
        .dependents
        .iter()
        .map(|d| {
            (
                d.resource.to_string(),
                d.optional,
                d.scale_up.level,
                d.scale_up.initial_delay,
                d.scale_down.level,
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            (
                "Deployment/kube-controller-manager".to_owned(),
                false,
                0,
                Duration::ZERO,
                1
            ),
            (
                "Deployment/machine-controller-manager".to_owned(),
                false,
                1,
                30 * SECOND,
                0
            ),
            (
                "Deployment/cluster-autoscaler".to_owned(),
                true,
                2,
                Duration::ZERO,
                0
            ),
        ]
    );
    assert!(
        config
            .dependents
            .iter()
            .all(|d| d.resource.api_version == "apps/v1" && d.scale_down.initial_delay.is_zero())
    );
}

proptest! {
    #[test]
    fn a_fraction_loads_exactly_when_it_is_above_0_and_at_most_1(fraction in -2.0f64..3.0) {
        let loaded = super::parse(&minimal(&format!("nodeLeaseFailureFraction: {fraction}")));
        prop_assert_eq!(loaded.is_ok(), fraction > 0.0 && fraction <= 1.0);
    }

    #[test]
    fn no_value_of_a_field_makes_it_panic(value in "[-+0-9a-z.'\"\\[\\]{}: ~]{0,20}") {
        for field in ["probeInterval", "nodeLeaseFailureFraction", "dependentResourceInfos", "restoreOnlyHeldDown"] {
            let _ = super::parse(&format!("kubeConfigSecretName: probe\n{field}: {value}\n"));
        }
    }
}

#[test]
fn what_is_shown_is_a_config_file_of_the_same_meaning() {
    let file = include_str!("../../../config/prober.yaml");
    let config = super::parse(file).expect("Gardener's own").config;
    let config = Config {
        scale_up_stabilization: Duration::from_secs(90),
        restore_only_held_down: true,
        standby_protects: false,
        ..config
    };
    let again = super::parse(&to_json(&config).to_string())
        .expect("JSON is YAML")
        .config;
    assert_eq!(again, config);
}

#[test]
fn without_its_section_no_owner_record_is_checked_and_with_it_the_rest_has_defaults() {
    assert_eq!(parse(&minimal("")).owner_check, None);
    assert_eq!(parse(&minimal("ownerCheck: null")).owner_check, None);
    let check = parse(&minimal(
        "ownerCheck: {name: 'owner.{{domain}}', value: '{{seed}}'}",
    ))
    .owner_check
    .expect("a check");
    assert_eq!(
        (
            check.name.to_string().as_str(),
            check.value.to_string().as_str()
        ),
        ("owner.{{domain}}", "{{seed}}")
    );
    assert_eq!(
        (check.interval, check.timeout, check.tolerance),
        (30 * SECOND, 2 * SECOND, 300 * SECOND)
    );
    assert_eq!((check.servers, check.on_loss), (vec![], OnLoss::StandDown));
    let words = "servers: ['10.0.0.10:5353', 10.0.0.11, '[::1]:53'], interval: 1s, timeout: 500ms, tolerance: 1s, onLoss: passivate";
    let config = parse(&minimal(&format!(
        "ownerCheck: {{name: '{{{{namespace}}}}.o.', value: v, {words}}}"
    )));
    let check = config.owner_check.as_ref().expect("a check");
    let servers: Vec<_> = check
        .servers
        .iter()
        .map(|server| server.0.to_string())
        .collect();
    assert_eq!(
        (servers, check.on_loss),
        (
            vec![
                "10.0.0.10:5353".into(),
                "10.0.0.11:53".into(),
                "[::1]:53".into()
            ],
            OnLoss::Passivate
        )
    );
    assert_eq!(parse(&to_json(&config).to_string()), config);
}

#[test]
fn an_owner_check_that_is_no_object_is_refused() {
    let said = "ownerCheck: 5: expected an object";
    assert_eq!(errors(&minimal("ownerCheck: 5")), [said]);
}

#[test]
fn an_owner_check_that_makes_no_sense_is_refused_with_its_field_and_value() {
    let check = |words: &str| {
        minimal(&format!(
            "ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}', {words}}}"
        ))
    };
    for (text, field, said) in [
        (minimal("ownerCheck: {}"), "ownerCheck.name", "missing"),
        (
            minimal("ownerCheck: {name: o, value: ''}"),
            "ownerCheck.value",
            "a text that is not blank",
        ),
        (
            minimal("ownerCheck: {name: '', value: v}"),
            "ownerCheck.name",
            "not blank",
        ),
        (
            minimal("ownerCheck: {name: 'owner.{{dom}}', value: v}"),
            "ownerCheck.name",
            "owner.{{dom}}",
        ),
        (
            minimal("ownerCheck: {name: 'owner. {{domain}}', value: v}"),
            "ownerCheck.name",
            "a DNS name",
        ),
        (
            minimal("ownerCheck: {name: o, value: '{{seeds}}'}"),
            "ownerCheck.value",
            "{{seedUID}}",
        ),
        (check("interval: 999ms"), "ownerCheck.interval", "999ms"),
        (check("timeout: 0s"), "ownerCheck.timeout", "0s"),
        (
            check("timeout: 30s"),
            "ownerCheck.timeout",
            "less than the interval of 30s",
        ),
        (
            check("interval: 2s"),
            "ownerCheck.timeout",
            "less than the interval of 2s, not 2s",
        ),
        (
            check("tolerance: 29s"),
            "ownerCheck.tolerance",
            "at least the interval of 30s",
        ),
        (
            check("servers: [dns.example.org]"),
            "ownerCheck.servers[0]",
            "dns.example.org",
        ),
        (
            check("onLoss: delete"),
            "ownerCheck.onLoss",
            "standDown or passivate",
        ),
    ] {
        let errors = errors(&text);
        assert!(
            errors
                .iter()
                .any(|error| error.starts_with(&format!("{field}: ")) && error.contains(said)),
            "{errors:?}"
        );
    }
}
