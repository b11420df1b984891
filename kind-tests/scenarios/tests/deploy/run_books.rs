//! Commands and queries of pages fit what is deployed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use testbed::book::blocks;
use testbed::installation::container;

use crate::repository;
use crate::tools::{CHART, good, helm, overlay};

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

/// The programs that a block of shell calls, with their arguments, if all end well but `restore`,
/// which ends so.
fn called(block: &str, restore: u8) -> Result<Vec<String>> {
    let folder = TempDir::new()?;
    let calls = folder.path().join("calls");
    for (name, code) in [
        ("kubectl", 0),
        ("helm", 0),
        ("dependency-watchdog", restore),
    ] {
        let program = folder.path().join(name);
        let calls = calls.display();
        let script = format!("#!/bin/sh\necho {name} \"$@\" >> {calls}\nexit {code}\n");
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH")?);
    let mut shell = Command::new("sh");
    shell.args(["-c", block]).env("PATH", path).output()?;
    let calls = std::fs::read_to_string(calls)?;
    Ok(calls.lines().map(ToOwned::to_owned).collect())
}

#[test]
fn uninstall_restores_first() -> Result<()> {
    let block = commands("docs/uninstall.md", "\n")?;
    let annotate = "kubectl annotate namespace garden dependency-watchdog.gardener.cloud/pause";
    let [pause, unpause] = [format!("{annotate}=true"), format!("{annotate}-")];
    let restore = "dependency-watchdog restore --all --yes";
    let uninstall = "helm uninstall dependency-watchdog --namespace garden";
    assert_eq!(called(&block, 0)?, [&pause, restore, uninstall, &unpause]);
    assert_eq!(called(&block, 1)?, [&pause, restore, &unpause]);
    // Whoever installs the chart is told.
    let path = repository::path(CHART);
    let path = path.to_string_lossy();
    let install = [
        "install",
        "dependency-watchdog",
        &path,
        "--namespace=garden",
        "--dry-run=client",
    ];
    let notes = good(helm(&install)?)?;
    for line in block.lines() {
        ensure!(
            notes.contains(&format!("\n  {line}\n")),
            "{line} is not in {notes}"
        );
    }
    Ok(())
}

#[test]
fn forced_restore_keeps_its_pause() -> Result<()> {
    // Pasted together, what came back would be at 0 again within a second.
    let mut forced = 0;
    for (page, block) in blocks()? {
        if block.contains("--force --yes") {
            ensure!(!block.contains("/pause-"), "{page}: {block}");
            forced += 1;
        }
    }
    ensure!(forced > 0, "no run-book restores by force");
    Ok(())
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
