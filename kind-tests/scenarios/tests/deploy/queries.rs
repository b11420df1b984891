//! Every query, of alerts, dashboard and pages, asks for what agents serve: series and labels of
//! docs/metrics.md, which another suite compares with those of running agents.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::objects::{Manifests, get, items};

use crate::repository;
use crate::tools::{overlay, shell};

/// Beginnings of the names of what agents serve.
const OURS: [&str; 3] = ["dwd_", "rest_client_", "leader_election_"];
/// What Prometheus adds to each series, and to each target of a ServiceMonitor. It renames labels of
/// ours that have these names.
const ADDED: [&str; 7] = [
    "job",
    "instance",
    "namespace",
    "service",
    "pod",
    "container",
    "endpoint",
];

/// The rules as Prometheus reads them; the operator takes them out of their object in the same way.
///
/// # Errors
/// When there is no PrometheusRule.
pub fn rules(objects: &Manifests) -> Result<&Value> {
    Ok(&get(objects, "PrometheusRule garden/dependency-watchdog")?["spec"])
}

/// Every alert among them.
///
/// # Errors
/// When there is no PrometheusRule.
pub fn alerts(objects: &Manifests) -> Result<Vec<&Value>> {
    let groups = items(&rules(objects)?["groups"]);
    let alerts: Vec<&Value> = groups.flat_map(|group| items(&group["rules"])).collect();
    ensure!(!alerts.is_empty(), "no alerts");
    Ok(alerts)
}

/// The word that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

/// A series that a text begins with: its name, and those of the labels in braces behind it.
fn series(text: &str) -> (&str, BTreeSet<&str>) {
    let name = word(text);
    let braces = text[name.len()..].strip_prefix('{');
    let braces = braces.and_then(|text| text.split('}').next());
    let labels = braces.unwrap_or_default().split(',');
    let labels = labels.map(|label| word(label.trim_start()));
    (name, labels.filter(|label| !label.is_empty()).collect())
}

/// The series of ours that a text names; `dwd_*` is none.
fn named(text: &str) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
    let places = OURS.iter().flat_map(|begin| text.match_indices(begin));
    let series = places.map(|(at, _)| series(&text[at..]));
    series.filter(|(name, _)| !name.ends_with('_'))
}

#[test]
fn queries_ask_for_what_is_served() -> Result<()> {
    let page = repository::text("docs/metrics.md")?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeMap<_, _> = rows.map(series).collect();
    for (name, labels) in &documented {
        let added = labels.iter().find(|label| ADDED.contains(label));
        ensure!(added.is_none(), "{name}: {added:?} is renamed");
    }
    let objects = overlay("monitoring")?;
    let alerts = alerts(&objects)?.into_iter();
    let alerts: String = alerts.map(|alert| alert["expr"].to_string()).collect();
    // Pages name series too, as do the tests of the alerts.
    let others = shell(
        "jq -r '.panels[].targets[]?.expr' deploy/kustomize/components/monitoring/dashboard.json
        cat docs/*.md docs/run-books/* kind-tests/scenarios/tests/deploy/alerts.test.yaml",
        &[],
    )?;
    let mut names = BTreeSet::new();
    for (name, labels) in named(&alerts).chain(named(&others)) {
        // Of a histogram.
        let parts = ["_count", "_sum", "_bucket"];
        let whole = parts.iter().find_map(|part| name.strip_suffix(part));
        let known = documented.get(
            whole
                .filter(|it| documented.contains_key(it))
                .unwrap_or(name),
        );
        let known = known.with_context(|| format!("{name} is not documented"))?;
        let mut unknown = labels
            .iter()
            .filter(|label| !known.contains(*label) && !ADDED.contains(label) && **label != "le");
        ensure!(unknown.next().is_none(), "{name} has not all of {labels:?}");
        names.insert(name);
    }
    ensure!(names.len() > 40, "only {names:?}");
    Ok(())
}
