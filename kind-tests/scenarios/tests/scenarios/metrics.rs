//! The metrics of a real binary are those that their page names.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testbed::page::{ScrapedMetrics, metrics};

/// What only a dry run has, and a controller that cannot be scaled.
const ELSEWHERE: [&str; 2] = ["dwd_dry_run_writes_total", "dwd_left_behind_total"];

/// Checks types and labels of what the agent serves that writes this log.
pub async fn are_as_documented(log: &Path, agent: &str) -> Result<()> {
    let ScrapedMetrics { types, labels, .. } = metrics(log).await?;
    let page = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md"),
    )?;
    let (mut section, mut documented) = ("", BTreeSet::new());
    for line in page.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let row = line
            .strip_prefix("| `")
            .filter(|_| [agent, "Both agents"].contains(&section));
        let Some((series, rest)) = row.and_then(|row| row.split_once("` | ")) else {
            continue;
        };
        let (name, named) = series.split_once('{').unwrap_or((series, ""));
        let kind = rest.split(' ').next().context("no type")?.to_owned();
        documented.insert((name.to_owned(), kind));
        let named = named
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.is_empty());
        let named: BTreeSet<String> = named.map(Into::into).collect();
        if let Some(labels) = labels.get(name) {
            ensure!(*labels == named, "{name}: {labels:?} instead of {named:?}");
        }
    }
    documented.retain(|(name, _)| !ELSEWHERE.contains(&name.as_str()));
    let served: BTreeSet<_> = types.into_iter().collect();
    ensure!(
        served == documented,
        "only served: {:?}, only documented: {:?}",
        served.difference(&documented),
        documented.difference(&served)
    );
    Ok(())
}
