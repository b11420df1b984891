//! The weeder's file, and its selectors by apimachinery's (rule 26).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use weeder::config::parse;
use weeder_core::config::{Config, Dependants};
use weeder_core::selector::{Requirement, Selector};

use crate::config::read;
use crate::yaml::{file, template};
use crate::{Choices, GoProgram, ReaderInput};

/// A file: in many spellings, or the selectors of one Service as JSON.
#[derive(Debug)]
pub enum WeederFile {
    Any(String),
    Selectors(String),
}

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/weeder_config.yaml")));

static SELECTORS: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/selectors.yaml")));

/// The labels of a pod.
type PodLabels = BTreeMap<String, String>;

impl ReaderInput for WeederFile {
    fn make(source: &mut Choices<'_>) -> Self {
        let text = file(source, &TEMPLATE);
        if source.percent(50) {
            Self::Selectors(source.filled(&SELECTORS).to_string())
        } else {
            Self::Any(text)
        }
    }

    /// What all selectors have in common misses nothing that one of them selects.
    fn check(&self) -> Result<()> {
        let (Self::Any(text) | Self::Selectors(text)) = self;
        let Some(config) = read(|| parse(text))? else {
            return Ok(());
        };
        let common = common(&config);
        for pod in pods() {
            let is_selected = selectors_of(&config).any(|selector| selector.matches(&pod));
            let is_common = common.as_ref().is_some_and(|common| common.matches(&pod));
            ensure!(!is_selected || is_common, "{common:?} misses {pod:?}");
        }
        Ok(())
    }

    /// The same selectors are refused, and the others select the same pods.
    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let Self::Selectors(text) = self else {
            return Ok(());
        };
        let pods = pods();
        let answer = go.ask("selectors", json!({"text": text, "pods": pods}))?;
        match (answer, parse(text)) {
            (Ok(go_selects), Ok(ours)) => {
                is_asked_for(&ours.config, &pods, go)?;
                let ours = shown(&ours.config, &pods);
                ensure!(go_selects == ours, "Go: {go_selects}, we: {ours}");
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
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
    config.services.values().flat_map(Dependants::selectors)
}

/// What all have in common.
fn common(config: &Config) -> Option<Selector> {
    let match_expressions = config.common_requirements()?;
    Some(Selector {
        match_expressions,
        ..Selector::default()
    })
}

/// Whether requests ask for what each selector matches, and for what all have in common.
fn is_asked_for(config: &Config, pods: &[PodLabels], go: &mut GoProgram) -> Result<()> {
    // Which pods an API server lists when it is asked for this selector.
    let mut listed = |selector: &Selector| {
        let requirements = selector.requirements();
        let asked: Vec<_> = requirements.iter().map(Requirement::to_string).collect();
        let asked = json!({"text": asked.join(","), "pods": pods});
        match go.ask("query", asked)? {
            Ok(Value::String(listed)) => Ok(listed),
            other => bail!("{selector:?} is refused: {other:?}"),
        }
    };
    for selector in selectors_of(config).chain(&common(config)) {
        let (matched, listed) = (selected(Some(selector), pods), listed(selector)?);
        ensure!(
            listed == matched,
            "{selector:?} lists {listed}, not {matched}"
        );
    }
    Ok(())
}

/// A 1 for each pod that is selected and a 0 for each other, as the Go program answers.
fn selected(selector: Option<&Selector>, pods: &[PodLabels]) -> String {
    let pods = pods
        .iter()
        .map(|pod| selector.is_some_and(|selector| selector.matches(pod)));
    pods.map(|matches| if matches { '1' } else { '0' })
        .collect()
}

/// Which pods each selector of each Service selects, in the words of the Go program.
fn shown(config: &Config, pods: &[PodLabels]) -> Value {
    let services = config.services.iter().map(|(name, dependants)| {
        let selectors = dependants.pod_selectors.iter();
        let selected = selectors.map(|selector| selected(selector.as_ref(), pods));
        (name.to_string(), selected.collect::<Value>())
    });
    services.collect()
}
