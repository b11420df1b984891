//! The weeder's file by `sigs.k8s.io/yaml` and apimachinery's label selectors (rule 26).

use std::collections::BTreeMap;

use anyhow::Result;
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::{Value, json};
use weeder::config::Config;
use weeder::core::selector::{Selector, is_label_value};

use super::agreement::agree;
use super::selectors::pods;
use super::yaml::{self, File, Yaml, map, mostly};

fn files() -> BoxedStrategy<File> {
    let label_key = || prop_oneof![6 => "(app|role|example\\.org/app)", 1 => "'[a-zA-Z0-9./_-]{0,6}'"].boxed();
    let label = || prop_oneof![6 => "(api|etcd|main|'')", 2 => yaml::scalar()].boxed();
    let labels = (prop::collection::vec((label_key(), mostly(label())), 0..3), yaml::style())
        .prop_map(|(entries, style)| Yaml::Map(yaml::without_merging(entries), style));
    let values =
        (prop::collection::vec(mostly(label()), 0..3), yaml::style()).prop_map(|(items, style)| Yaml::List(items, style));
    let operator = prop_oneof![8 => "(In|NotIn|Exists|DoesNotExist)", 1 => yaml::word()].boxed();
    let expression = map(vec![
        ("key", 95, mostly(label_key())),
        ("operator", 95, mostly(operator)),
        ("values", 60, prop_oneof![15 => values, 1 => yaml::any_yaml()].boxed()),
    ]);
    let expressions =
        (prop::collection::vec(expression, 0..3), yaml::style()).prop_map(|(items, style)| Yaml::List(items, style));
    let selector = prop_oneof![
        15 => map(vec![
            ("matchLabels", 50, prop_oneof![15 => labels, 1 => yaml::any_yaml()].boxed()),
            ("matchExpressions", 60, prop_oneof![15 => expressions, 1 => yaml::any_yaml()].boxed()),
        ]),
        1 => yaml::any_yaml(),
    ];
    let selectors = (prop::collection::vec(selector, 0..3), yaml::style()).prop_map(|(items, style)| Yaml::List(items, style));
    let service = prop_oneof![
        15 => map(vec![("podSelectors", 96, prop_oneof![15 => selectors, 1 => yaml::any_yaml()].boxed())]),
        1 => yaml::any_yaml(),
    ];
    let service_name = prop_oneof!["(etcd-main-client|kube-apiserver|a)", "(1|yes|''|010)"];
    let services = (prop::collection::vec((service_name, service), 0..3), yaml::style())
        .prop_map(|(entries, style)| Yaml::Map(entries, style));
    let limit = prop_oneof!["[1-9][0-9]?", yaml::integer()].boxed();
    yaml::document(map(vec![
        ("watchDuration", 50, mostly(yaml::duration())),
        ("servicesAndDependantSelectors", 97, prop_oneof![15 => services, 1 => yaml::any_yaml()].boxed()),
        ("maxDeletionsPerOwner", 20, mostly(limit)),
    ]))
}

#[test]
fn weeder_files_mean_what_they_mean_to_the_reference() -> Result<()> {
    let pods = pods();
    let question = |file: &File| json!({"weeder": {"text": file.text, "pods": pods}});
    campaign(1_500, files(), question, |file, go| {
        agree(file, go, Config::parse(&file.text), surprises, |ours| shown(ours, &pods))
    })
}

/// The fields of a config that the Go original takes and that are refused here on purpose (D-41, D-46, and names no Service can have).
fn surprises(go: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if go["watchDuration"].as_i64().is_none_or(|nanos| nanos <= 0) {
        found.push("watchDuration".to_owned());
    }
    let limit = &go["maxDeletionsPerOwner"];
    if !limit.is_null() && limit.as_i64().is_none_or(|limit| !(1..=i64::from(i32::MAX)).contains(&limit)) {
        found.push("maxDeletionsPerOwner".to_owned());
    }
    for name in go["services"].as_object().into_iter().flat_map(|services| services.keys()) {
        if name.is_empty() || !is_label_value(name) {
            found.push(format!("servicesAndDependantSelectors.{name}"));
        }
    }
    found
}

/// What we read, in the words of the Go program.
fn shown(config: &Config, pods: &[BTreeMap<String, String>]) -> Value {
    let selected = |selector: &Selector| super::selectors::selected(pods, |pod| selector.matches(pod));
    let services: serde_json::Map<String, Value> =
        config.services.iter().map(|service| (service.name.clone(), service.selectors.iter().map(selected).collect())).collect();
    json!({
        "watchDuration": config.watch_duration.as_nanos() as u64,
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
        "services": services,
    })
}
