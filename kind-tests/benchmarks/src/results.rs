//! The page of results, its tables and its picture. All figures come from what the benchmarks
//! printed, which is kept in docs/results, so that none is written by hand; only the words between
//! them are, in `page.md`.
//!
//! ```text
//!  target/bench/NAME.txt --> docs/results/NAME.json --+--> docs/benchmark-results.md
//!                                          page.md ---+--> docs/pictures/race-none.svg
//! ```

mod picture;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::race::trial::Trial;
use crate::report::BenchmarkReport;

/// The words of the page. A line `{{NAME: ROW; ROW}}` stands for the result of that name: its
/// matrix, these rows, and those that missed their goal.
const TEMPLATE: &str = include_str!("results/page.md");

/// The result with a picture: the race that the README shows.
const PICTURED: &str = "race-none";

/// Results by name.
type Results = BTreeMap<String, BenchmarkReport>;

/// Write the page of results and its picture from the results that are kept in docs/results
#[derive(Args, Clone, Debug)]
pub struct ResultsOptions {
    /// Results to replace first, by what the last run left in target/bench
    names: Vec<String>,
}

/// Writes all of it, or, if anything is wrong, nothing.
pub fn run(options: &ResultsOptions) -> Result<()> {
    let docs = Path::new("docs");
    let (mut results, mut files) = (read_all(docs)?, BTreeMap::new());
    for name in &options.names {
        let path = format!("target/bench/{name}.txt");
        let printed = fs::read_to_string(&path).with_context(|| path.clone())?;
        let result = BenchmarkReport::of_run(&printed).context(path)?;
        files.insert(format!("results/{name}.json"), result.text());
        results.insert(name.clone(), result);
    }
    files.extend(generate(results)?);
    for (name, text) in files {
        fs::write(docs.join(&name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// The results that are kept.
pub fn read_all(docs: &Path) -> Result<Results> {
    let mut results = Results::new();
    for entry in fs::read_dir(docs.join("results")).context("docs/results")? {
        let path = entry?.path();
        let name = path.file_stem().context("no name")?.to_string_lossy();
        let result = serde_json::from_str(&fs::read_to_string(&path)?);
        let result = result.with_context(|| path.display().to_string())?;
        results.insert(name.into_owned(), result);
    }
    Ok(results)
}

/// The page and its picture, by their paths in docs.
fn generate(mut results: Results) -> Result<BTreeMap<String, String>> {
    let (mut page, mut files) = (String::new(), BTreeMap::new());
    let machines = results.values().map(|result| result.machine.clone());
    let machines: Vec<_> = BTreeSet::from_iter(machines).into_iter().collect();
    for line in TEMPLATE.lines() {
        let place = line.strip_prefix("{{");
        match place.and_then(|rest| rest.strip_suffix("}}")) {
            None => page += line,
            Some("machines") => page += &format!("{}.", machines.join("; ")),
            Some(place) => {
                let (name, rows) = place.split_once(": ").unwrap_or((place, ""));
                let result = results.remove(name);
                let result = result.with_context(|| format!("no result, or no more: {name}"))?;
                let rows: Vec<_> = rows.split("; ").filter(|row| !row.is_empty()).collect();
                for row in &rows {
                    let mut known = result.rows.iter().map(|[what, ..]| what);
                    ensure!(known.any(|what| what == row), "{name} has no row {row}");
                }
                let day = result.at.split('T').next().unwrap_or_default();
                page += &format!("*{}. {day}.*", result.what);
                if name == PICTURED {
                    let drawn = picture::draw(&Trial::all_of(&result)?);
                    page += &format!("\n\n![{}](pictures/{name}.svg)", picture::TITLE);
                    files.insert(format!("pictures/{name}.svg"), drawn);
                }
                page += &result.tables(Some(&rows));
            }
        }
        page.push('\n');
    }
    ensure!(results.is_empty(), "no place for {:?}", results.keys());
    files.insert("benchmark-results.md".to_owned(), page);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_picture_are_those_of_the_kept_results() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let results = read_all(&docs).expect("results");
        for (name, text) in generate(results.clone()).expect("a page") {
            let written = fs::read_to_string(docs.join(&name)).unwrap_or_default();
            assert!(written == text, "docs/{name} is old: run make results");
        }
        let refusal = |change: fn(&mut Results)| {
            let mut changed = results.clone();
            change(&mut changed);
            generate(changed)
                .expect_err("a result in no place")
                .to_string()
        };
        let of_other = refusal(|results| {
            results.insert("other".to_owned(), results["away"].clone());
        });
        assert_eq!(of_other, "no place for [\"other\"]");
        let without = refusal(|results| drop(results.remove("away")));
        assert_eq!(without, "no result, or no more: away");
        let without_row = refusal(|results| {
            results.insert("away".to_owned(), results["healthy"].clone());
        });
        assert!(without_row.starts_with("away has no row "), "{without_row}");
    }
}
