//! Commands and queries of pages fit what is deployed.

use anyhow::{Context, Result, ensure};
use testbed::installation::container;

use crate::repository;
use crate::tools::overlay;

/// The queries that pages tell people to ask Prometheus, each with its page; they are about a shoot
/// if they name one.
///
/// # Errors
/// When a page cannot be read.
pub fn documented_queries(shoot: &str) -> Result<Vec<(String, String)>> {
    let mut pages = vec!["docs/metrics.md".to_owned(), "docs/monitor.md".to_owned()];
    for entry in std::fs::read_dir(repository::path("docs/run-books"))? {
        pages.push(format!(
            "docs/run-books/{}",
            entry?.file_name().to_string_lossy()
        ));
    }
    let mut queries = Vec::new();
    for page in pages {
        for line in repository::text(&page)?.lines() {
            let spans = line.split('`').skip(1).step_by(2);
            for text in spans.chain([line.split(" # ").next().unwrap_or_default()]) {
                // A table names a metric with its labels alone.
                let asks = text.contains("dwd_") && text.contains(['(', '"']);
                if asks && !text.contains(['`', '|']) {
                    let query = text.trim().replace("shoot--project--name", shoot);
                    queries.push((page.clone(), query));
                }
            }
        }
    }
    ensure!(queries.len() >= 10, "only {queries:#?}");
    Ok(queries)
}

/// The first commands of a page after a text.
fn commands(page: &str, after: &str) -> Result<String> {
    let text = repository::text(page)?;
    let (_, rest) = text.split_once(after).context(after.to_owned())?;
    let block = rest.split("\n```sh\n").nth(1);
    let block = block.and_then(|rest| rest.split("\n```").next());
    Ok(block
        .with_context(|| format!("no commands in {page}"))?
        .to_owned())
}

#[test]
fn prober_is_asked_in_its_pod() -> Result<()> {
    let objects = overlay("plain")?;
    let command = container(&objects, "dependency-watchdog-prober")?["command"].clone();
    let program = command[0].as_str().context("no program")?;
    let asked = commands("docs/cli.md", "\n## Without the binary at hand\n")?;
    for command in ["status", "explain NAMESPACE"] {
        let call = format!(
            "kubectl -n garden exec deployment/dependency-watchdog-prober -- {program} {command} --address localhost:9644"
        );
        ensure!(asked.contains(&call), "{call} is not in {asked}");
    }
    Ok(())
}
