//! The weeder's file by `sigs.k8s.io/yaml` and apimachinery's label selectors (rule 26).

use std::collections::HashSet;
use std::sync::LazyLock;

use anyhow::{Result, bail, ensure};
use common::document::ConfigError;
use go_compat::duration::GoDuration;
use serde_json::{Value, json};
use weeder::config::parse;
use weeder_core::config::Config;
use weeder_core::selector::{Selector, is_label_value};

use crate::config::{agree, read};
use crate::durations::nanos;
use crate::selectors::{self, PodLabels, pods};
use crate::yaml::{File, template};
use crate::{Choices, GoProgram, ReaderInput};

/// A file.
#[derive(Debug)]
pub struct WeederFile(File);

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/weeder_config.yaml")));

impl ReaderInput for WeederFile {
    fn make(source: &mut Choices<'_>) -> Self {
        let mut file = File::make(source, &TEMPLATE);
        if !file.is_spilt && source.percent(25) {
            file.text = selectors::file(source);
        }
        Self(file)
    }

    /// As for the prober; and what all selectors have in common misses nothing that one of them
    /// selects.
    fn check(&self) -> Result<()> {
        let Some(config) = read(|| parse(&self.0.text), &TEMPLATE)? else {
            return Ok(());
        };
        ensure!(!config.watch_duration.is_zero());
        ensure!(config.max_deletions_per_owner != Some(0));
        ensure!(!config.services.is_empty());
        let names: HashSet<_> = config
            .services
            .iter()
            .map(|service| &service.name)
            .collect();
        ensure!(names.len() == config.services.len(), "one Service twice");
        ensure!(
            config
                .services
                .iter()
                .all(|service| !service.name.is_empty() && !service.selectors.is_empty())
        );
        let (common, selectors) = (config.common_selector(), selectors_of(&config));
        ensure!(
            common.is_nothing() == selectors.iter().all(|selector| selector.is_nothing()),
            "{common} in common"
        );
        for pod in pods()
            .iter()
            .filter(|pod| selectors.iter().any(|selector| selector.matches(pod)))
        {
            ensure!(common.matches(pod), "{common} misses {pod:?}");
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
            Ok(shown(config, &pods))
        })
    }
}

/// The refused fields that are no keys of a selector (D-83): Go ignores them.
fn unknown_keys(refusal: &ConfigError) -> Vec<String> {
    let is_unknown = |field: &str| {
        let (_, key) = field.rsplit_once('.')?;
        let keys = if field.contains("].matchExpressions[") {
            &["key", "operator", "values"][..]
        } else {
            &["matchLabels", "matchExpressions"]
        };
        let is_known = keys.iter().any(|known| known.eq_ignore_ascii_case(key));
        (field.contains(".podSelectors[") && !is_known).then_some(())
    };
    let fields = refusal.fields().iter().map(|error| error.field.clone());
    fields.filter(|field| is_unknown(field).is_some()).collect()
}

/// Those of all Services.
fn selectors_of(config: &Config) -> Vec<&Selector> {
    config
        .services
        .iter()
        .flat_map(|service| &service.selectors)
        .collect()
}

/// Whether requests ask for what each selector matches, and for no less by what several have in
/// common.
fn is_asked_for(config: &Config, pods: &[PodLabels], go: &mut GoProgram) -> Result<()> {
    let common = config.common_selector();
    let in_common = if common.is_nothing() {
        String::new()
    } else {
        listed(go, &common, pods)?
    };
    for selector in selectors_of(config)
        .into_iter()
        .filter(|selector| !selector.is_nothing())
    {
        let matched = selected(selector, pods);
        let listed = listed(go, selector, pods)?;
        ensure!(
            listed == matched,
            "{selector} lists {listed}, not {matched}"
        );
        let misses = matched
            .bytes()
            .zip(in_common.bytes())
            .any(|both| both == (b'1', b'0'));
        ensure!(
            !misses,
            "{common} lists {in_common} and misses some of {matched}"
        );
    }
    Ok(())
}

/// Which pods an API server lists when it is asked for this selector.
fn listed(go: &mut GoProgram, selector: &Selector, pods: &[PodLabels]) -> Result<String> {
    match go.ask("query", json!({"text": selector.to_string(), "pods": pods}))? {
        Ok(Value::String(listed)) => Ok(listed),
        other => bail!("{selector} is refused: {other:?}"),
    }
}

/// A 1 for each pod that is selected and a 0 for each other, as the Go program answers.
fn selected(selector: &Selector, pods: &[PodLabels]) -> String {
    pods.iter()
        .map(|pod| if selector.matches(pod) { '1' } else { '0' })
        .collect()
}

/// The fields of a config that the Go original takes and that are refused here on purpose (D-41,
/// D-46, and names no Service can have).
fn surprises(go: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if nanos(&go["watchDuration"]) <= 0 {
        found.push("watchDuration".to_owned());
    }
    let limit = &go["maxDeletionsPerOwner"];
    if !limit.is_null()
        && limit
            .as_i64()
            .is_none_or(|limit| !(1..=i64::from(i32::MAX)).contains(&limit))
    {
        found.push("maxDeletionsPerOwner".to_owned());
    }
    for name in go["services"]
        .as_object()
        .into_iter()
        .flat_map(|services| services.keys())
    {
        if name.is_empty() || !is_label_value(name) {
            found.push(format!("servicesAndDependantSelectors.{name}"));
        }
    }
    found
}

/// What we read, in the words of the Go program.
fn shown(config: &Config, pods: &[PodLabels]) -> Value {
    let services = config.services.iter().map(|service| {
        let selected = service
            .selectors
            .iter()
            .map(|selector| selected(selector, pods));
        (service.name.to_string(), selected.collect::<Value>())
    });
    json!({
        "watchDuration": GoDuration(config.watch_duration).to_string(),
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
        "services": services.collect::<Value>(),
    })
}
