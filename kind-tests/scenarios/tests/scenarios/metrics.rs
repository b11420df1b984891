//! The metrics of a real binary are those that their page names.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testbed::page::metrics;

/// What only a dry run has, and a controller that cannot be scaled.
const ELSEWHERE: [&str; 2] = ["dwd_dry_run_writes_total", "dwd_left_behind_total"];

/// Checks types and labels of what the agent serves that writes this log.
pub async fn are_as_documented(log: &Path, agent: &str) -> Result<()> {
    let served = metrics(log).await?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(page)?;
    let (mut section, mut documented) = ("", BTreeSet::new());
    for line in page.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let row = line.strip_prefix("| `");
        let row = row.filter(|_| [agent, "Both agents"].contains(&section));
        let Some((series, rest)) = row.and_then(|row| row.split_once("` | ")) else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let kind = rest.split(' ').next().context("no type")?.to_owned();
        let labels: BTreeSet<&str> = labels
            .split(['}', ','])
            .filter(|it| !it.is_empty())
            .collect();
        // A histogram's series are named for their part.
        let part = if kind == "histogram" { "_count" } else { "" };
        for series in served.values.keys() {
            let (of, shown) = series.split_once('{').unwrap_or((series, ""));
            if of == format!("{name}{part}") {
                let shown = shown.split("\",").filter_map(|label| label.split_once('='));
                let shown: BTreeSet<&str> = shown.map(|(label, _)| label).collect();
                ensure!(shown == labels, "{series} instead of {labels:?}");
            }
        }
        documented.insert((name.to_owned(), kind));
    }
    documented.retain(|(name, _)| !ELSEWHERE.contains(&name.as_str()));
    let served: BTreeSet<_> = served.types.into_iter().collect();
    ensure!(served == documented, "{served:?} instead of {documented:?}");
    Ok(())
}
