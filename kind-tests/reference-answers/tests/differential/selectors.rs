//! apimachinery's label selectors, read from a file and written into a request (rule 26, D-48).

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use proptest::prelude::*;
use reference_answers::campaign_of_talks;
use serde_json::{Value, json};
use weeder::config::Config;
use weeder::core::selector::Selector;

const KEYS: [&str; 3] = ["app", "role", "example.org/app"];
const VALUES: [&str; 4] = ["api", "etcd", "main", ""];

/// Pods with every combination of some labels.
pub fn pods() -> Vec<BTreeMap<String, String>> {
    let choices = VALUES.len() + 1;
    let pod = |number: usize| {
        let chosen = |index: usize| VALUES.get(number / choices.pow(index as u32) % choices);
        KEYS.iter().enumerate().filter_map(|(index, key)| Some((key.to_string(), chosen(index)?.to_string()))).collect()
    };
    (0..choices.pow(KEYS.len() as u32)).map(pod).collect()
}

/// A 1 for each pod that is selected and a 0 for each other, as the Go program answers.
pub fn selected(pods: &[BTreeMap<String, String>], is_selected: impl Fn(&BTreeMap<String, String>) -> bool) -> String {
    pods.iter().map(|pod| if is_selected(pod) { '1' } else { '0' }).collect()
}

fn selectors() -> impl Strategy<Value = Vec<Value>> {
    let odd_name = prop_oneof![
        "[a-zA-Z0-9._/-]{0,12}",
        "[a-z]{60,66}",
        "([a-z]{1,3}\\.){0,3}[a-z-]{1,3}/[a-zA-Z._-]{0,4}",
        "[a-z.]{245,256}/[a-z]{1,2}",
        "\\PC{0,3}",
    ];
    let key = || prop_oneof![20 => prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), 1 => odd_name.clone()];
    let value = || prop_oneof![20 => prop::sample::select(VALUES.to_vec()).prop_map(str::to_owned), 1 => odd_name.clone()];
    let values = || prop::collection::vec(value(), 1..4);
    let expression = prop_oneof![
        4 => (key(), "(In|NotIn)", values()).prop_map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values})),
        2 => (key(), "(Exists|DoesNotExist)").prop_map(|(key, operator)| json!({"key": key, "operator": operator})),
        1 => (key(), "(In|NotIn|Exists|DoesNotExist|in|Equals|)", prop::collection::vec(value(), 0..2))
            .prop_map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values})),
    ];
    let labels = prop::collection::btree_map(key(), value(), 0..3);
    let selector = prop_oneof![
        10 => (labels, prop::collection::vec(expression, 0..4))
            .prop_map(|(labels, expressions)| json!({"matchLabels": labels, "matchExpressions": expressions})),
        1 => Just(json!({})),
        1 => Just(Value::Null),
    ];
    prop::collection::vec(selector, 1..4)
}

#[test]
fn selectors_match_the_pods_that_they_match_for_the_reference_and_requests_ask_for_no_fewer() -> Result<()> {
    let pods = pods();
    campaign_of_talks(300, selectors(), |reference, selectors| {
        let text = json!({"servicesAndDependantSelectors": {"service": {"podSelectors": selectors}}}).to_string();
        let go = reference.ask(&json!({"weeder": {"text": text, "pods": pods}}))?;
        let (go, config) = match (go, Config::parse(&text)) {
            (Ok(go), Ok(ours)) => (go, ours.config),
            (Err(_), Err(_)) => return Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        };
        let ours: Vec<&Selector> = config.services.iter().flat_map(|service| &service.selectors).collect();
        let mut matched: Vec<String> = ours.iter().map(|selector| selected(&pods, |pod| selector.matches(pod))).collect();
        ensure!(go["services"]["service"] == json!(matched), "Go: {}, we: {matched:?}", go["services"]["service"]);

        // What one selector says alone is asked for exactly.
        for (selector, matched) in ours.iter().zip(&matched).filter(|(selector, _)| !selector.is_nothing()) {
            let listed = listed(reference, selector, &pods)?;
            ensure!(listed == *matched, "{selector} lists {listed}, not {matched}");
        }
        // What several have in common is asked for with no pod missing.
        let common = config.common_selector();
        if common.is_nothing() {
            ensure!(ours.iter().all(|selector| selector.is_nothing()), "nothing in common");
            return Ok(());
        }
        let listed = listed(reference, &common, &pods)?;
        matched.retain(|matched| matched.bytes().zip(listed.bytes()).any(|(matched, listed)| matched == b'1' && listed == b'0'));
        ensure!(matched.is_empty(), "{common} lists {listed} and misses some of {matched:?}");
        Ok(())
    })
}

/// Which pods an API server lists when it is asked for this selector.
fn listed(
    reference: &mut reference_answers::Reference,
    selector: &Selector,
    pods: &[BTreeMap<String, String>],
) -> Result<String> {
    let answer = reference.ask(&json!({"query": {"text": selector.to_string(), "pods": pods}}))?;
    match answer {
        Ok(Value::String(listed)) => Ok(listed),
        other => bail!("{selector} is refused: {other:?}"),
    }
}
