//! Every alert is tested, and has a page that says what to do.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::queries::{alerts, rules};
use crate::repository;
use crate::tools::{overlay, shell};

/// The unit tests of the alerts.
const TESTS: &str = "kind-tests/scenarios/tests/deploy/alerts.test.yaml";

#[test]
fn alerts_pass_their_tests() -> Result<()> {
    // promtool keeps the series of each test in a file, for which no disk need be waited.
    let folder = testbed::reaper::folder("promtool")?;
    let folder = folder.to_str().context("UTF-8")?;
    let rules = rules(&overlay("monitoring")?)?.to_string();
    let script = "printf %s \"$RULES\" >\"$TMPDIR/alerts.yaml\"
        cp \"$TESTS\" \"$TMPDIR/alerts.test.yaml\"
        cd \"$TMPDIR\"
        promtool check rules alerts.yaml
        promtool test rules alerts.test.yaml";
    let variables = [("RULES", &*rules), ("TESTS", TESTS), ("TMPDIR", folder)];
    shell(script, &variables).map(drop)
}

#[test]
fn alerts_have_their_run_books() -> Result<()> {
    let list = repository::text("docs/run-books/README.md")?;
    let mut linked = BTreeSet::from(["README.md".to_owned()]);
    for alert in alerts(&overlay("monitoring")?)? {
        let name = alert["alert"].as_str().context("no name")?;
        let link = format!("docs/run-books/{name}.md");
        assert_eq!(alert["annotations"]["runbook_url"], link);
        repository::text(&link)?;
        ensure!(
            list.contains(&format!("]({name}.md)")),
            "README.md does not list {name}"
        );
        linked.insert(format!("{name}.md"));
    }
    let pages = shell("ls docs/run-books", &[])?;
    assert_eq!(
        pages.lines().map(str::to_owned).collect::<BTreeSet<_>>(),
        linked
    );
    Ok(())
}
