//! Claims of the pages can be looked up: every rule, decision and fault has its capability, every
//! capability its test; links, files, recipes, tests and annotations exist, and so does the code
//! that `make rent` switches off.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use prober_core::options::{
    PAUSE, RESTORE_ONLY_HELD_DOWN, SCALE_UP_STABILIZATION, STANDBY_PROTECTS,
};
use prober_core::replicas::{IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, REPLICAS};

/// Folders that hold what is built, not written.
const BUILT: [&str; 3] = [".git", "artefacts", "target"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// Every file with this ending that people wrote, with its text.
fn texts(ending: &str) -> Vec<(PathBuf, String)> {
    let (mut folders, mut found) = (vec![root().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !BUILT.iter().any(|built| path.ends_with(built)) {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == ending) {
                let text = fs::read_to_string(&path).expect("a text");
                found.push((path, text));
            }
        }
    }
    found
}

/// The cells of the rows of all tables.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
}

/// What stands in backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What a cell lists, as `fault 26`: a number alone is of the word before, which is this one at
/// first, and a range stands for all in it.
fn listed(cell: &str, word: &str) -> Vec<String> {
    let cell = cell.replace(" - D-", "-").replace("D-", "D ");
    let cell = cell.replace("rules ", "rule ").replace("faults ", "fault ");
    let (mut word, mut found) = (word, Vec::new());
    for part in cell.split(", ") {
        let (before, numbers) = part.rsplit_once(' ').unwrap_or((word, part));
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse()) {
            word = before;
            found.extend((first..=last).map(|number| format!("{word} {number}")));
        } else if !part.starts_with('[') {
            found.push(part.to_owned());
        }
    }
    found
}

#[test]
fn every_rule_decision_and_fault_is_for_a_capability() {
    // It does not matter how lines are broken.
    let compact = |code: &str| code.split_whitespace().collect::<String>();
    let mut due = BTreeSet::new();
    let switches = file("prober/rent/switches");
    for line in switches.lines().filter(|line| !line.starts_with('#')) {
        let [name, _, source, before, after] = line.split(" | ").collect::<Vec<_>>()[..] else {
            unreachable!("five fields: {line}")
        };
        let source = file(&format!("prober/core/src/{source}"));
        let found = compact(&source).matches(&compact(before)).count();
        assert!(
            found == 1 && after.contains("OFF"),
            "A rule's code has changed, so `make rent` cannot switch it off. In prober/rent/switches say what is \
             there now and what takes its place, or delete the line of a rule that is gone: {line}"
        );
        due.insert(format!("`{name}`"));
    }
    for (page, word) in [("docs/rules.md", "rule"), ("docs/reliability.md", "fault")] {
        let page = file(page);
        let tables = page
            .split("\n## Attacked together")
            .next()
            .unwrap_or_default();
        let names = rows(tables).map(|row| row[0]).filter(|name| *name != "No.");
        due.extend(names.flat_map(|name| listed(name, word)));
    }
    assert!(due.len() > 200, "only {} are recognized", due.len());
    let ledger = file("docs/capabilities.md");
    let capabilities = rows(&ledger).filter(|row| row.len() == 4 && row[1] != "For");
    let placed = capabilities.flat_map(|row| listed(row[1], "")).collect();
    assert_eq!(
        due, placed,
        "the other pages and prober/rent/switches; the ledger"
    );
}

#[test]
fn every_capability_has_one_test_at_its_level() {
    let ledger = file("docs/capabilities.md");
    // Files and folders, each with the level of the tests below it.
    let mut levels = Vec::new();
    for row in rows(&ledger) {
        match row[..] {
            [level, _, below] => levels.extend(code(below).map(|path| (path, level))),
            [sentence, _, test, level] if !["Test", "none"].contains(&test) => {
                let link = test
                    .strip_prefix("[`")
                    .and_then(|link| link.strip_suffix(')'));
                let link = link.and_then(|link| link.split_once("`](../"));
                let (name, path) = link.expect(sentence);
                let above = levels
                    .iter()
                    .filter(|(below, _)| Path::new(path).starts_with(below));
                let nearest = above.max_by_key(|(below, _)| below.len());
                assert_eq!(nearest.map(|nearest| nearest.1), Some(level), "{sentence}");
                let exists = file(path).contains(&format!("fn {name}("));
                assert!(exists, "{sentence}: {name} in {path}");
            }
            _ => {}
        }
    }
}

#[test]
fn no_crate_of_the_workspace_may_hold_unsafe_code() {
    for (path, manifest) in texts("toml") {
        let is_strict = manifest.contains("[lints]\nworkspace = true");
        let is_manifest = path.ends_with("Cargo.toml");
        assert!(
            is_strict || !is_manifest,
            "{} leaves out the workspace's lints",
            path.display()
        );
    }
    assert!(file("Cargo.toml").contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_error_is_logged_with_its_causes() {
    for (path, source) in texts("rs") {
        // The JSON formatter writes an error without its causes; `with_causes` makes a text.
        let is_error = |line: &str| line.contains("error = &*") || line.contains("Error = &error");
        let found = source.lines().find(|line| is_error(line));
        let is_here = path.ends_with(file!());
        assert!(is_here || found.is_none(), "{}: {found:?}", path.display());
    }
}

#[test]
fn every_annotation_that_a_page_names_is_one_that_the_program_knows() {
    let of_controllers = [IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, REPLICAS];
    let of_namespaces = [
        PAUSE,
        RESTORE_ONLY_HELD_DOWN,
        SCALE_UP_STABILIZATION,
        STANDBY_PROTECTS,
    ];
    let known = of_controllers.into_iter().chain(of_namespaces);
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    let (prefix, mut seen) = ("dependency-watchdog.gardener.cloud/", BTreeSet::new());
    for (_, text) in texts("md") {
        for rest in text.split(prefix).skip(1) {
            let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            let name = rest
                .split(|letter| !is_name(letter))
                .next()
                .unwrap_or_default();
            // kubectl takes an annotation away by its name and a dash.
            seen.insert(format!("{prefix}{}", name.trim_end_matches('-')));
        }
    }
    assert_eq!(seen, known, "the pages, the program");
}

/// Whether a page has a heading that this fragment names, as GitHub and mdbook write it.
fn has_heading(page: &str, fragment: &str) -> bool {
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let mut headings = headings.filter_map(|line| line.split_once("# "));
    headings.any(|(_, heading)| {
        let heading: String = heading.to_lowercase().chars().filter(kept).collect();
        heading.replace(' ', "-") == fragment
    })
}

#[test]
fn every_link_between_pages_leads_somewhere_and_every_page_is_in_the_book() {
    let (summary, docs, mut links) = (file("docs/SUMMARY.md"), root().join("docs"), 0);
    for (page, text) in texts("md") {
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.contains(' ')) {
            links += 1;
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.clone(),
                file => page.with_file_name(file),
            };
            let leads = match fragment {
                "" => path.exists(),
                _ => fs::read_to_string(path).is_ok_and(|text| has_heading(&text, fragment)),
            };
            assert!(leads, "{}: {target}", page.display());
        }
        if let Ok(name) = page.strip_prefix(&docs) {
            let name = name.display().to_string();
            assert!(
                name == "SUMMARY.md" || summary.contains(&format!("({name})")),
                "{name}"
            );
        }
    }
    assert!(links > 100, "only {links} links are recognized");
}

#[test]
fn every_file_recipe_and_test_that_a_page_names_exists() {
    let makefile = file("Makefile");
    let sources: String = texts("rs").into_iter().map(|(_, source)| source).collect();
    let is_path = |code: &str| {
        let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        let (folder, _) = code.split_once('/').unwrap_or_default();
        let is_written = !folder.is_empty() && !BUILT.contains(&folder);
        is_written && root().join(folder).is_dir() && code.bytes().all(is_of_path)
    };
    let is_test = |code: &str| {
        let is_of_name =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_name = code.matches('_').count() > 3 && code.bytes().all(is_of_name);
        is_name && !code.starts_with("dwd_")
    };
    let mut named = 0;
    for (page, text) in texts("md") {
        for code in code(&text).flat_map(str::lines) {
            let exists = if let Some(recipe) = code.strip_prefix("make ") {
                let recipe = recipe.split_whitespace().next().unwrap_or_default();
                makefile.contains(&format!("\n{recipe}:"))
            } else if is_path(code) {
                root().join(code).exists()
            } else if is_test(code) {
                sources.contains(&format!("fn {code}("))
            } else {
                continue;
            };
            named += 1;
            assert!(exists, "{}: {code}", page.display());
        }
    }
    assert!(named > 100, "only {named} are recognized");
}
