//! apimachinery's label selectors as they stand in a file, and the pods that they are tried on
//! (rule 26, D-48).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Choices;

/// The labels of a pod.
pub type PodLabels = BTreeMap<String, String>;

const KEYS: [&str; 3] = ["app", "role", "example.org/app"];
const VALUES: [&str; 4] = ["api", "etcd", "main", ""];

/// Pods with every combination of some labels.
pub fn pods() -> Vec<PodLabels> {
    let choices = VALUES.len() + 1;
    let pod = |number: usize| {
        let chosen = |index: usize| VALUES.get(number / choices.pow(index as u32) % choices);
        KEYS.iter()
            .enumerate()
            .filter_map(|(index, key)| Some((key.to_string(), chosen(index)?.to_string())))
            .collect()
    };
    (0..choices.pow(KEYS.len() as u32)).map(pod).collect()
}

/// Now and then a key or a value is none.
const ODD: (usize, &str) = (
    1,
    "([a-zA-Z0-9._/-]{0,12}|[a-z]{60,66}|([a-z]{1,3}\\.){0,3}[a-z-]{1,3}/[a-zA-Z._-]{0,4}|[a-z.]{245,256}/[a-z]{1,2}|\\PC{0,3})",
);

fn key(source: &mut Choices<'_>) -> String {
    source.weighted(&[(20, "(app|role|example\\.org/app)"), ODD])
}

fn value(source: &mut Choices<'_>) -> String {
    source.weighted(&[(20, "(api|etcd|main|)"), ODD])
}

fn expression(source: &mut Choices<'_>) -> Value {
    let (some, none) = (("(In|NotIn)", 1, 3), ("(Exists|DoesNotExist)", 0, 1));
    let odd = ("(In|NotIn|Exists|DoesNotExist|in|Equals|)", 0, 2);
    let (operators, least, most) = source.pick(&[some, some, some, some, none, none, odd]);
    let values: Vec<String> = (0..least + source.below(most))
        .map(|_| value(source))
        .collect();
    json!({"key": key(source), "operator": source.text(operators), "values": values})
}

fn selector(source: &mut Choices<'_>) -> Value {
    match source.below(12) {
        0..10 => {
            let labels: PodLabels = source
                .list(3, |source| (key(source), value(source)))
                .into_iter()
                .collect();
            json!({"matchLabels": labels, "matchExpressions": source.list(4, expression)})
        }
        10 => json!({}),
        _ => Value::Null,
    }
}

/// A file with the selectors of one Service.
pub fn file(source: &mut Choices<'_>) -> String {
    let selectors: Vec<Value> = (0..1 + source.below(3)).map(|_| selector(source)).collect();
    json!({"servicesAndDependantSelectors": {"service": {"podSelectors": selectors}}}).to_string()
}
