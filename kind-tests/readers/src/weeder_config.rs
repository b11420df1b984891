//! The weeder's file by `sigs.k8s.io/yaml` and apimachinery's label selectors (rule 26).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Error, Result, bail, ensure};
use common::document::ConfigError;
use serde_json::{Value, json};
use weeder::config::parse;
use weeder_core::config::Config;
use weeder_core::selector::{Selector, is_label_value};

use crate::config::{agree, read};
use crate::durations::nanos;
use crate::yaml::{File, template};
use crate::{Choices, GoProgram, ReaderInput};

/// A file.
#[derive(Debug)]
pub struct WeederFile(File);

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/weeder_config.yaml")));

static SELECTORS: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/selectors.yaml")));

/// The labels of a pod.
type PodLabels = BTreeMap<String, String>;

impl ReaderInput for WeederFile {
    fn make(source: &mut Choices<'_>) -> Self {
        let mut file = File::make(source, &TEMPLATE);
        if !file.is_spilt && source.percent(25) {
            file.text = source.filled(&SELECTORS).to_string();
        }
        Self(file)
    }

    /// As for the prober; and what all selectors have in common misses nothing that one of them
    /// selects.
    fn check(&self) -> Result<()> {
        let Some(config) = read(|| parse(&self.0.text), &TEMPLATE)? else {
            return Ok(());
        };
        let common = config.common_selector();
        let is_nothing = selectors_of(&config).all(Selector::is_nothing);
        ensure!(common.is_nothing() == is_nothing, "{common} in common");
        for pod in pods() {
            let is_selected = selectors_of(&config).any(|selector| selector.matches(&pod));
            ensure!(
                !is_selected || common.matches(&pod),
                "{common} misses {pod:?}"
            );
        }
        Ok(())
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let pods = pods();
        let answer = go.ask("weeder", json!({"text": self.0.text, "pods": pods}))?;
        let ours = parse(&self.0.text);
        let unknown = ours.as_ref().err().map(unknown_keys).unwrap_or_default();
        let surprises = |go: &Value| [surprises(go), unknown.clone()].concat();
        agree(&self.0, answer, ours, surprises, |config| {
            is_asked_for(config, &pods, go)?;
            let watched = go.ask("duration", json!(format!("{:?}", config.watch_duration)))?;
            let watched = watched.map_err(Error::msg)?;
            Ok(shown(config, &watched["written"], &pods))
        })
    }
}

/// The refused fields that are no keys of a selector (D-83): Go ignores them.
fn unknown_keys(refusal: &ConfigError) -> Vec<String> {
    let is_unknown = |field: &&String| {
        let key = field.rsplit_once('.').map_or("", |(_, key)| key);
        let keys = match field.contains("].matchExpressions[") {
            true => &["key", "operator", "values"][..],
            false => &["matchLabels", "matchExpressions"],
        };
        let is_known = keys.iter().any(|known| known.eq_ignore_ascii_case(key));
        field.contains(".podSelectors[") && !is_known
    };
    let fields = refusal.fields().iter().map(|error| &error.field);
    fields.filter(is_unknown).cloned().collect()
}

/// Pods with every combination of some labels.
fn pods() -> Vec<PodLabels> {
    let mut pods = vec![PodLabels::new()];
    for key in ["app", "role", "example.org/app"] {
        let with = |pod: PodLabels| {
            [None, Some("api"), Some("etcd"), Some("main"), Some("")].map(|value| {
                let label = value.map(|value: &str| (key.to_owned(), value.to_owned()));
                pod.clone().into_iter().chain(label).collect()
            })
        };
        pods = pods.into_iter().flat_map(with).collect();
    }
    pods
}

/// Those of all Services.
fn selectors_of(config: &Config) -> impl Iterator<Item = &Selector> {
    let services = config.services.iter();
    services.flat_map(|service| &service.selectors)
}

/// Whether requests ask for what each selector matches, and for what all have in common.
fn is_asked_for(config: &Config, pods: &[PodLabels], go: &mut GoProgram) -> Result<()> {
    // Which pods an API server lists when it is asked for this selector.
    let mut listed = |selector: &Selector| {
        if selector.is_nothing() {
            return Ok("0".repeat(pods.len()));
        }
        let asked = json!({"text": selector.to_string(), "pods": pods});
        match go.ask("query", asked)? {
            Ok(Value::String(listed)) => Ok(listed),
            other => bail!("{selector} is refused: {other:?}"),
        }
    };
    let common = config.common_selector();
    for selector in selectors_of(config).chain([&common]) {
        let (matched, listed) = (selected(selector, pods), listed(selector)?);
        ensure!(
            listed == matched,
            "{selector} lists {listed}, not {matched}"
        );
    }
    Ok(())
}

/// A 1 for each pod that is selected and a 0 for each other, as the Go program answers.
fn selected(selector: &Selector, pods: &[PodLabels]) -> String {
    let pods = pods.iter().map(|pod| selector.matches(pod));
    pods.map(|matches| if matches { '1' } else { '0' })
        .collect()
}

/// The fields of a config that the Go original takes and that are refused here on purpose (D-41,
/// D-46, and names no Service can have).
fn surprises(go: &Value) -> Vec<String> {
    let is_limit = |limit: &Value| {
        let limit = limit.as_i64();
        limit.is_some_and(|limit| (1..=i64::from(i32::MAX)).contains(&limit))
    };
    let limit = &go["maxDeletionsPerOwner"];
    let services = go["services"].as_object().into_iter().flatten();
    let fields = [
        ("watchDuration", nanos(&go["watchDuration"]) <= 0),
        ("maxDeletionsPerOwner", !limit.is_null() && !is_limit(limit)),
    ];
    let fields = fields.into_iter().filter(|(_, surprises)| *surprises);
    let nameless = services
        .map(|(name, _)| name)
        .filter(|name| name.is_empty() || !is_label_value(name))
        .map(|name| format!("servicesAndDependantSelectors.{name}"));
    fields
        .map(|(field, _)| field.to_owned())
        .chain(nameless)
        .collect()
}

/// What we read, in the words of the Go program, as its `watchDuration`.
fn shown(config: &Config, watch_duration: &Value, pods: &[PodLabels]) -> Value {
    let services = config.services.iter().map(|service| {
        let selectors = service.selectors.iter();
        let selected = selectors.map(|selector| selected(selector, pods));
        (service.name.to_string(), selected.collect::<Value>())
    });
    json!({
        "watchDuration": watch_duration,
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
        "services": services.collect::<Value>(),
    })
}
