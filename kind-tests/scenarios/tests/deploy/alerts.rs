//! Every alert is tested, and has a page that says what to do.

use std::collections::BTreeSet;
use std::process::Command;

use crate::prometheus::{alerts, rules};
use crate::repository;
use crate::tools::{good, of_prometheus, overlay};
use anyhow::{Context, Result, ensure};

/// The unit tests of the alerts.
const TESTS: &str = "kind-tests/scenarios/tests/deploy/alerts.test.yaml";

fn names() -> Result<BTreeSet<String>> {
    let objects = overlay("monitoring")?;
    alerts(&objects)?
        .into_iter()
        .map(|alert| {
            alert["alert"]
                .as_str()
                .map(Into::into)
                .context("an alert without name")
        })
        .collect()
}

#[test]
fn promtool_passes_the_alerts_and_their_tests() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("alerts.yaml"),
        rules(&overlay("monitoring")?)?.to_string(),
    )?;
    std::fs::copy(
        repository::path(TESTS),
        folder.path().join("alerts.test.yaml"),
    )?;
    for args in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts.test.yaml"],
    ] {
        good(
            Command::new(of_prometheus("promtool")?)
                .args(args)
                .current_dir(folder.path())
                .output()?,
        )?;
    }
    Ok(())
}

#[test]
fn every_alert_is_seen_to_fire_and_not_to_fire_in_its_tests() -> Result<()> {
    let text = repository::text(TESTS)?;
    for name in names()? {
        let checks: Vec<&str> = text
            .split("- eval_time:")
            .filter(|check| check.contains(&format!("alertname: {name}\n")))
            .collect();
        let fires = checks
            .iter()
            .filter(|check| check.contains("exp_labels:"))
            .count();
        ensure!(
            fires > 0 && fires < checks.len(),
            "{name}: {fires} of {} checks expect it to fire",
            checks.len()
        );
    }
    Ok(())
}

#[test]
fn every_alert_has_its_run_book_and_every_run_book_its_alert() -> Result<()> {
    let objects = overlay("monitoring")?;
    let mut linked = BTreeSet::new();
    for alert in alerts(&objects)? {
        let (name, annotations) = (
            alert["alert"].as_str().context("no name")?,
            &alert["annotations"],
        );
        ensure!(
            matches!(
                alert["labels"]["severity"].as_str(),
                Some("warning" | "critical")
            ),
            "{name} has no severity"
        );
        for field in ["summary", "description"] {
            ensure!(
                annotations[field]
                    .as_str()
                    .is_some_and(|text| text.len() > 20),
                "{name} has no {field}"
            );
        }
        let link = annotations["runbook_url"]
            .as_str()
            .with_context(|| format!("{name} has no run-book"))?;
        assert_eq!(link, format!("docs/run-books/{name}.md"));
        let page = repository::text(link)?;
        ensure!(
            page.starts_with(&format!("# {name}\n")),
            "{link} has another title"
        );
        for heading in ["## Meaning", "## Look", "## Act"] {
            let section = page
                .split(&format!("\n{heading}\n"))
                .nth(1)
                .with_context(|| format!("{link} has no {heading}"))?;
            ensure!(
                section
                    .split("\n## ")
                    .next()
                    .is_some_and(|text| text.trim().len() > 40),
                "{link}: {heading} is empty"
            );
        }
        linked.insert(format!("{name}.md"));
    }
    let mut pages = std::fs::read_dir(repository::path("docs/run-books"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<BTreeSet<_>>>()?;
    ensure!(
        pages.remove("README.md"),
        "there is no page that lists them"
    );
    assert_eq!(pages, linked);
    let list = repository::text("docs/run-books/README.md")?;
    for page in linked {
        ensure!(
            list.contains(&format!("]({page})")),
            "README.md does not list {page}"
        );
    }
    Ok(())
}
