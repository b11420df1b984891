//! The page of results, its tables and its pictures. All figures come from what the benchmarks
//! printed, which is kept in docs/results, so that none is written by hand; only the words between
//! them are, in `page.md`.
//!
//! ```text
//!  target/bench/NAME.txt --> docs/results/NAME.json --+--> docs/benchmark-results.md
//!                                          page.md ---+--> docs/pictures/NAME.svg
//! ```

mod chart;
mod pictures;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::report::{BenchmarkReport, tables};

/// The words of the page. A line `{{NAME: ROW; ROW}}` stands for the result of that name: its
/// picture, its matrix, these rows, and those that missed their goal.
const TEMPLATE: &str = include_str!("results/page.md");

/// Write the page of results and its pictures from the results that are kept in docs/results
#[derive(Args, Clone, Debug)]
pub struct ResultsOptions {
    /// Results to replace first, by what the last run left in target/bench
    names: Vec<String>,
}

/// Writes all of it, or, if anything is wrong, nothing.
pub fn run(options: &ResultsOptions) -> Result<()> {
    let docs = Path::new("docs");
    let mut results = read_all(docs)?;
    let mut files = BTreeMap::new();
    for name in &options.names {
        let path = format!("target/bench/{name}.txt");
        let result =
            BenchmarkReport::of_run(&fs::read_to_string(&path).with_context(|| path.clone())?)
                .context(path)?;
        files.insert(format!("results/{name}.json"), result.text());
        results.insert(name.clone(), result);
    }
    files.extend(generate(&results)?);
    for (name, text) in files {
        fs::write(docs.join(&name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// The results that are kept, by name.
pub fn read_all(docs: &Path) -> Result<BTreeMap<String, BenchmarkReport>> {
    let mut results = BTreeMap::new();
    for entry in fs::read_dir(docs.join("results")).context("docs/results")? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .context("a name that is not text")?
            .to_owned();
        let result = serde_json::from_str(&fs::read_to_string(&path)?)
            .with_context(|| path.display().to_string())?;
        results.insert(name, result);
    }
    Ok(results)
}

/// The page and its pictures, by their paths in docs.
fn generate(results: &BTreeMap<String, BenchmarkReport>) -> Result<BTreeMap<String, String>> {
    let (mut page, mut files, mut unused) = (String::new(), BTreeMap::new(), results.clone());
    for line in TEMPLATE.lines() {
        match line
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"))
        {
            None => page.push_str(line),
            Some("machines") => page.push_str(&tables::machines(results)),
            Some(place) => {
                let (name, rows) = place.split_once(": ").unwrap_or((place, ""));
                let rows: Vec<_> = rows.split("; ").filter(|row| !row.is_empty()).collect();
                let result = unused
                    .remove(name)
                    .with_context(|| format!("no result {name} is kept, or it is shown twice"))?;
                page.push_str(&format!("*{}. {}.*", result.what, result.day()));
                if let Some(picture) = pictures::of(&result).with_context(|| name.to_owned())? {
                    page.push_str(&format!("\n\n![{}](pictures/{name}.svg)", picture.title));
                    files.insert(format!("pictures/{name}.svg"), picture.svg);
                }
                page.push_str(&tables::chosen(&result, &rows).with_context(|| name.to_owned())?);
            }
        }
        page.push('\n');
    }
    ensure!(
        unused.is_empty(),
        "page.md has no place for {:?}",
        unused.keys()
    );
    files.insert("benchmark-results.md".to_owned(), page);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn docs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    #[test]
    fn the_page_of_results_and_its_pictures_are_what_the_kept_results_say() {
        let files = generate(&read_all(&docs()).expect("results")).expect("a page");
        assert!(files.len() > 4, "{:?}", files.keys());
        for (name, text) in files {
            let written = fs::read_to_string(docs().join(&name)).unwrap_or_default();
            assert!(
                written == text,
                "docs/{name} is not what docs/results says: run make results"
            );
        }
    }

    #[test]
    fn every_kept_result_has_its_place_and_none_is_missing_nor_any_figure_of_a_picture() {
        let mut results = read_all(&docs()).expect("results");
        let healthy = results.get("healthy").expect("a result").clone();
        results.insert("other".to_owned(), healthy.clone());
        assert!(
            generate(&results)
                .is_err_and(|error| error.to_string().contains("no place for [\"other\"]"))
        );
        results.remove("other");
        results.remove("healthy");
        assert!(generate(&results).is_err_and(|error| error.to_string().contains("healthy")));
        results.insert("healthy".to_owned(), healthy);
        results
            .get_mut("meltdown")
            .expect("a result")
            .figures
            .remove("bare");
        assert!(generate(&results).is_err_and(|error| format!("{error:#}") == "meltdown: no bare"));
    }

    #[test]
    fn rows_are_shown_that_are_named_or_missed_their_goal() {
        let result = &read_all(&docs()).expect("results")["growth"];
        let (named, missed) = (
            "memory of one shoot more, 100 to 300",
            "CPU of one shoot more, in ms per minute: how far off its mean",
        );
        let shown = |rows: &[&str], row: &str| {
            tables::chosen(result, rows)
                .expect("tables")
                .contains(&format!("| {row} |"))
        };
        assert!(shown(&[named], named) && !shown(&[], named) && shown(&[], missed));
        assert!(
            tables::chosen(result, &["anything"])
                .is_err_and(|error| error.to_string() == "no row anything")
        );
    }
}
