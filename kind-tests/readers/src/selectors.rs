//! apimachinery's label selectors, read from a file and written into a request (rule 26, D-48).

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use common::document::Loaded;
use serde_json::{Value, json};
use weeder::config::Config;
use weeder::core::selector::Selector;

use crate::weeder_config::Weeder;
use crate::yaml::File;
use crate::{Go, Input, Source};

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
pub fn selected(selector: &Selector, pods: &[Pod]) -> String {
    pods.iter().map(|pod| if selector.matches(pod) { '1' } else { '0' }).collect()
}

/// Now and then a key or a value is none.
const ODD: (usize, &str) = (
    1,
    "([a-zA-Z0-9._/-]{0,12}|[a-z]{60,66}|([a-z]{1,3}\\.){0,3}[a-z-]{1,3}/[a-zA-Z._-]{0,4}|[a-z.]{245,256}/[a-z]{1,2}|\\PC{0,3})",
);

fn key(source: &mut Source<'_>) -> String {
    source.weighted(&[(20, "(app|role|example\\.org/app)"), ODD])
}

fn value(source: &mut Source<'_>) -> String {
    source.weighted(&[(20, "(api|etcd|main|)"), ODD])
}

fn expression(source: &mut Source<'_>) -> Value {
    let (some, none) = (("(In|NotIn)", 1, 3), ("(Exists|DoesNotExist)", 0, 1));
    let odd = ("(In|NotIn|Exists|DoesNotExist|in|Equals|)", 0, 2);
    let (operators, least, most) = source.pick(&[some, some, some, some, none, none, odd]);
    let values: Vec<String> = (0..least + source.below(most)).map(|_| value(source)).collect();
    json!({"key": key(source), "operator": source.text(operators), "values": values})
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
    fn file(&self) -> Weeder {
        let text = json!({"servicesAndDependantSelectors": {"service": {"podSelectors": self.0}}}).to_string();
        Weeder(File { text, is_spilt: false })
    }
}

impl Input for Selectors {
    fn make(source: &mut Source<'_>) -> Self {
        Self((0..1 + source.below(3)).map(|_| selector(source)).collect())
    }

    /// A selector matches what each of its requirements allows, and the form that goes into a request says the same.
    fn check(&self) -> Result<()> {
        let file = self.file();
        file.check()?;
        let Ok(Loaded { config, .. }) = Config::parse(&file.0.text) else { return Ok(()) };
        let read = selectors(&config);
        ensure!(read.len() == self.0.len());
        for (selector, asked) in read.iter().zip(&self.0) {
            for pod in &pods() {
                ensure!(selector.matches(pod) == allows(asked, pod), "{asked} on {pod:?}");
                let agrees = selector.is_nothing() || says(&selector.to_string(), pod) == selector.matches(pod);
                ensure!(agrees, "{selector} on {pod:?}");
            }
        }
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        self.file().compare(go)
    }
}

/// Those of all Services.
pub fn selectors(config: &Config) -> Vec<&Selector> {
    config.services.iter().flat_map(|service| &service.selectors).collect()
}

/// Whether requests ask for what each selector matches, and for no less by what several have in common.
pub fn is_asked_for(config: &Config, pods: &[Pod], go: &mut Go) -> Result<()> {
    let common = config.common_selector();
    let in_common = if common.is_nothing() { String::new() } else { listed(go, &common, pods)? };
    for selector in selectors(config).into_iter().filter(|selector| !selector.is_nothing()) {
        let matched = selected(selector, pods);
        let listed = listed(go, selector, pods)?;
        ensure!(listed == matched, "{selector} lists {listed}, not {matched}");
        let misses = matched.bytes().zip(in_common.bytes()).any(|both| both == (b'1', b'0'));
        ensure!(!misses, "{common} lists {in_common} and misses some of {matched}");
    }
    Ok(())
}

/// Which pods an API server lists when it is asked for this selector.
fn listed(go: &mut Go, selector: &Selector, pods: &[Pod]) -> Result<String> {
    match go.ask("query", json!({"text": selector.to_string(), "pods": pods}))? {
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
            let [key, operator] = ["key", "operator"].map(|field| expression[field].as_str().unwrap_or_default());
            let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
            fulfils(pod.get(key), operator, values)
        })
}

/// What an API server would make of `key in (a,b),key notin (c),key,!key`, as far as it is written here.
pub fn says(query: &str, pod: &Pod) -> bool {
    let mut depth = 0;
    let mut requirements = query.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    query.is_empty()
        || requirements.all(|requirement| {
            if let Some(key) = requirement.strip_prefix('!') {
                fulfils(pod.get(key), "DoesNotExist", [])
            } else if let Some((key, list)) = requirement.split_once(" in (") {
                fulfils(pod.get(key), "In", list.trim_end_matches(')').split(','))
            } else if let Some((key, list)) = requirement.split_once(" notin (") {
                fulfils(pod.get(key), "NotIn", list.trim_end_matches(')').split(','))
            } else {
                fulfils(pod.get(requirement), "Exists", [])
            }
        })
}

fn fulfils<'a>(label: Option<&String>, operator: &str, values: impl IntoIterator<Item = &'a str>) -> bool {
    let is_listed = label.is_some_and(|label| values.into_iter().any(|value| value == label));
    match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        _ => label.is_none(),
    }
}
