//! What pages tell people to run fits what is deployed.

use crate::repository;
use crate::tools::overlay;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::installation::container;

/// The first commands below a heading of a page.
fn commands(page: &str, heading: &str) -> Result<String> {
    let page = repository::text(page)?;
    let section = page
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .with_context(|| format!("no {heading}"))?;
    let block = section
        .split("\n```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("\n```").next());
    block
        .map(ToOwned::to_owned)
        .with_context(|| format!("no commands below {heading}"))
}

#[test]
fn the_prober_is_asked_in_its_pod_with_the_program_and_the_config_that_are_there() -> Result<()> {
    let objects = overlay("plain")?;
    let command = container(&objects, "dependency-watchdog-prober")?["command"].clone();
    let word = |begin: &str| {
        let mut words = command
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        words
            .find_map(|word| word.strip_prefix(begin))
            .with_context(|| format!("no {begin} in {command}"))
    };
    let (program, config) = (word("/")?, word("--config-file=")?);
    let asked = commands("docs/cli.md", "Without the binary at hand")?;
    for command in ["status", "explain NAMESPACE"] {
        let call = format!(
            "kubectl -n garden exec deployment/dependency-watchdog-prober -- /{program} {command} \\\n  --config-file {config}"
        );
        ensure!(asked.contains(&call), "{call} is not in {asked}");
    }
    Ok(())
}
