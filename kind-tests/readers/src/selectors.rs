//! apimachinery's label selectors, read from a file and written into a request (rule 26, D-48).

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use weeder::config::Config;
use weeder::core::selector::Selector;

use crate::{Go, Input, Source, is_one_line};

/// The labels of a pod.
pub type Pod = BTreeMap<String, String>;

/// The selectors of a Service.
#[derive(Debug)]
pub struct Selectors(Vec<Value>);

const KEYS: [&str; 3] = ["app", "role", "example.org/app"];
const VALUES: [&str; 4] = ["api", "etcd", "main", ""];

/// Pods with every combination of some labels.
pub fn pods() -> Vec<Pod> {
    let choices = VALUES.len() + 1;
    let pod = |number: usize| {
        let chosen = |index: usize| VALUES.get(number / choices.pow(index as u32) % choices);
        KEYS.iter().enumerate().filter_map(|(index, key)| Some((key.to_string(), chosen(index)?.to_string()))).collect()
    };
    (0..choices.pow(KEYS.len() as u32)).map(pod).collect()
}

/// A 1 for each pod that is selected and a 0 for each other, as the Go program answers.
pub fn selected(pods: &[Pod], is_selected: impl Fn(&Pod) -> bool) -> String {
    pods.iter().map(|pod| if is_selected(pod) { '1' } else { '0' }).collect()
}

/// Whether what selectors have in common selects, and asks for, every pod that one of them selects.
pub fn misses_nothing(common: &Selector, selectors: &[&Selector], pods: &[Pod]) -> Result<()> {
    ensure!(common.is_nothing() == selectors.iter().all(|selector| selector.is_nothing()), "{common} in common");
    for pod in pods.iter().filter(|pod| selectors.iter().any(|selector| selector.matches(pod))) {
        ensure!(common.matches(pod), "{common} misses {pod:?}");
        ensure!(says(&common.to_string(), pod), "{common} does not ask for {pod:?}");
    }
    Ok(())
}

fn label(source: &mut Source<'_>, usual: &[&str]) -> String {
    if source.below(21) < 20 {
        return source.pick(usual).to_owned();
    }
    let pattern = source.pick(&[
        "[a-zA-Z0-9._/-]{0,12}",
        "[a-z]{60,66}",
        "([a-z]{1,3}\\.){0,3}[a-z-]{1,3}/[a-zA-Z._-]{0,4}",
        "[a-z.]{245,256}/[a-z]{1,2}",
        "\\PC{0,3}",
    ]);
    source.text(pattern)
}

fn key(source: &mut Source<'_>) -> String {
    label(source, &KEYS)
}

fn value(source: &mut Source<'_>) -> String {
    label(source, &VALUES)
}

fn expression(source: &mut Source<'_>) -> Value {
    let key = key(source);
    match source.below(7) {
        0..4 => {
            let values: Vec<String> = (0..1 + source.below(3)).map(|_| value(source)).collect();
            json!({"key": key, "operator": source.text("(In|NotIn)"), "values": values})
        }
        4..6 => json!({"key": key, "operator": source.text("(Exists|DoesNotExist)")}),
        _ => {
            let operator = source.text("(In|NotIn|Exists|DoesNotExist|in|Equals|)");
            json!({"key": key, "operator": operator, "values": source.list(2, value)})
        }
    }
}

fn selector(source: &mut Source<'_>) -> Value {
    match source.below(12) {
        0..10 => {
            let labels: Pod = source.list(3, |source| (key(source), value(source))).into_iter().collect();
            json!({"matchLabels": labels, "matchExpressions": source.list(4, expression)})
        }
        10 => json!({}),
        _ => Value::Null,
    }
}

impl Selectors {
    fn text(&self) -> String {
        json!({"servicesAndDependantSelectors": {"service": {"podSelectors": self.0}}}).to_string()
    }
}

impl Input for Selectors {
    fn make(source: &mut Source<'_>) -> Self {
        Self((0..1 + source.below(3)).map(|_| selector(source)).collect())
    }

    /// A selector matches what each of its requirements allows; what several have in common misses nothing; and the form that goes
    /// into a request says the same.
    fn check(&self) -> Result<()> {
        let config = match Config::parse(&self.text()) {
            Ok(loaded) => loaded.config,
            Err(refusal) => return refusal.to_string().lines().try_for_each(is_one_line),
        };
        let (read, pods) = (config.services.iter().flat_map(|service| &service.selectors).collect::<Vec<_>>(), pods());
        ensure!(read.len() == self.0.len());
        for (selector, asked) in read.iter().zip(&self.0) {
            for pod in &pods {
                ensure!(selector.matches(pod) == allows(asked, pod), "{asked} on {pod:?}");
                let agrees = selector.is_nothing() || says(&selector.to_string(), pod) == selector.matches(pod);
                ensure!(agrees, "{selector} on {pod:?}");
            }
        }
        misses_nothing(&config.common_selector(), &read, &pods)
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let (text, pods) = (self.text(), pods());
        let answer = go.ask(&json!({"weeder": {"text": text, "pods": pods}}))?;
        let (answer, config) = match (answer, Config::parse(&text)) {
            (Ok(answer), Ok(ours)) => (answer, ours.config),
            (Err(_), Err(_)) => return Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        };
        let ours: Vec<&Selector> = config.services.iter().flat_map(|service| &service.selectors).collect();
        let mut matched: Vec<String> = ours.iter().map(|selector| selected(&pods, |pod| selector.matches(pod))).collect();
        ensure!(answer["services"]["service"] == json!(matched), "Go: {}, we: {matched:?}", answer["services"]["service"]);

        // What one selector says alone is asked for exactly.
        for (selector, matched) in ours.iter().zip(&matched).filter(|(selector, _)| !selector.is_nothing()) {
            let listed = listed(go, selector, &pods)?;
            ensure!(listed == *matched, "{selector} lists {listed}, not {matched}");
        }
        // What several have in common is asked for with no pod missing.
        let common = config.common_selector();
        if common.is_nothing() {
            ensure!(ours.iter().all(|selector| selector.is_nothing()), "nothing in common");
            return Ok(());
        }
        let listed = listed(go, &common, &pods)?;
        matched.retain(|matched| matched.bytes().zip(listed.bytes()).any(|(matched, listed)| matched == b'1' && listed == b'0'));
        ensure!(matched.is_empty(), "{common} lists {listed} and misses some of {matched:?}");
        Ok(())
    }
}

/// Which pods an API server lists when it is asked for this selector.
fn listed(go: &mut Go, selector: &Selector, pods: &[Pod]) -> Result<String> {
    match go.ask(&json!({"query": {"text": selector.to_string(), "pods": pods}}))? {
        Ok(Value::String(listed)) => Ok(listed),
        other => bail!("{selector} is refused: {other:?}"),
    }
}

/// Whether each requirement of a label selector allows a pod. None selects nothing.
fn allows(selector: &Value, pod: &Pod) -> bool {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    !selector.is_null()
        && labels.into_iter().all(|(key, value)| pod.get(key).is_some_and(|label| value == label))
        && expressions.all(|expression| {
            let label = expression["key"].as_str().and_then(|key| pod.get(key));
            let mut values = expression["values"].as_array().into_iter().flatten();
            let listed = label.is_some_and(|label| values.any(|value| value == label));
            match expression["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => label.is_some(),
                _ => label.is_none(),
            }
        })
}

/// What an API server would make of `key in (a,b),key notin (c),key,!key`, as far as it is written here.
fn says(query: &str, pod: &Pod) -> bool {
    let mut rest = query;
    while !rest.is_empty() {
        let open = rest.find('(').unwrap_or(rest.len());
        let end = match rest.find(',') {
            Some(comma) if comma < open => comma,
            _ => rest.find(')').map_or(rest.len(), |close| close + 1),
        };
        let (requirement, after) = rest.split_at(end);
        rest = after.strip_prefix(',').unwrap_or(after);
        let fulfilled = if let Some(key) = requirement.strip_prefix('!') {
            !pod.contains_key(key)
        } else if let Some((key, values)) = requirement.split_once(" in ") {
            pod.get(key).is_some_and(|label| lists(values, label))
        } else if let Some((key, values)) = requirement.split_once(" notin ") {
            !pod.get(key).is_some_and(|label| lists(values, label))
        } else {
            pod.contains_key(requirement)
        };
        if !fulfilled {
            return false;
        }
    }
    true
}

fn lists(values: &str, label: &str) -> bool {
    values.trim_start_matches('(').trim_end_matches(')').split(',').any(|value| value == label)
}
