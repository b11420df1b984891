//! What the real binary serves: metrics, which are those that the document names, and health. Each
//! agent is asked where several of them elect one.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testbed::page::{ScrapedMetrics, metrics};

use crate::{answers, shows};

/// What the document says of an agent's metrics.
fn documented(agent: &str) -> Result<ScrapedMetrics> {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md"),
    )?;
    let mut metrics = ScrapedMetrics::default();
    let mut section = "";
    for line in text.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        if ![agent, "Both agents"].contains(&section) {
            continue;
        }
        let Some((series, rest)) = line
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` | "))
        else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let kind = rest.split(' ').next().with_context(|| line.to_owned())?;
        metrics.types.insert(name.into(), kind.into());
        let labels: BTreeSet<_> = labels
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.is_empty())
            .collect();
        metrics
            .labels
            .insert(name.into(), labels.into_iter().map(Into::into).collect());
    }
    Ok(metrics)
}

/// What is served is what the document says, in names, types and labels.
fn as_documented(served: &ScrapedMetrics, agent: &str) -> Result<()> {
    let mut documented = documented(agent)?;
    // Only a dry run, and a controller that cannot be scaled, have these.
    for name in ["dwd_dry_run_writes_total", "dwd_left_behind_total"] {
        documented.types.remove(name);
    }
    let differ = |a: &ScrapedMetrics, b: &ScrapedMetrics| -> Vec<_> {
        let those = a
            .types
            .iter()
            .filter(|(name, kind)| b.types.get(*name) != Some(kind));
        those.map(|(name, kind)| format!("{name} {kind}")).collect()
    };
    let (unserved, unnamed) = (differ(&documented, served), differ(served, &documented));
    ensure!(
        unserved.is_empty() && unnamed.is_empty(),
        "documented and not served: {unserved:#?}, served and not documented: {unnamed:#?}"
    );
    for (name, labels) in &served.labels {
        ensure!(
            documented.labels.get(name) == Some(labels),
            "{name}: {labels:?} instead of {:?}",
            documented.labels.get(name)
        );
    }
    Ok(())
}

/// Checks what two agents serve, of which the first leads, and that the metrics of the first are
/// those of the document.
pub async fn served(agent: &str, first: &Path, second: &Path) -> Result<()> {
    for (log, leads) in [(first, 1.0), (second, 0.0)] {
        let lease = format!("dwd-{}-leader-election", agent.to_lowercase());
        shows(
            log,
            &format!("leader_election_master_status{{name=\"{lease}\"}}"),
            leads..=leads,
        )
        .await?;
        answers(log, "/healthz", 200, "ok\n").await?;
        answers(log, "/readyz", 200, "ok\n").await?;
    }
    as_documented(&metrics(first).await?, agent)
}
