//! Claims of the pages can be looked up: numbers that the code cites are explained, every fault
//! has its tests; links, files, recipes, tests and annotations exist, and so does the code that
//! `make rent` switches off.

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

/// The numbers behind each of these words: `rules 5 to 8, 10 and 14` are six.
fn numbers(text: &str, words: &[&str]) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for mut rest in words.iter().flat_map(|word| text.split(word).skip(1)) {
        let mut first: Option<u32> = None;
        loop {
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
            let Ok(number) = number.parse() else { break };
            found.extend(first.unwrap_or(number)..=number);
            let range = after.strip_prefix('-').or(after.strip_prefix(" to "));
            first = range.map(|_| number);
            let next = after.strip_prefix(", ").or(after.strip_prefix(" and "));
            rest = range.or(next).unwrap_or_default();
        }
    }
    found
}

/// The first cells of the tables of a page, as citations.
fn explained(page: &str, word: &str) -> String {
    let names = rows(page).map(|row| format!("{word} {}", row[0]));
    names.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_number_that_is_cited_is_explained() {
    let sources = ["rs", "go", "yaml"].into_iter().flat_map(texts);
    let mut cited: String = sources.map(|(_, source)| source).collect();
    cited += &file("prober/rent/switches");
    let rules = explained(&file("docs/rules.md"), "rule");
    let faults = explained(&file("docs/reliability.md"), "fault");
    for words in [&["rule ", "rules "][..], &["D-"]] {
        let (cited, explained) = (numbers(&cited, words), numbers(&rules, words));
        assert!(cited.len() > 20, "{words:?}: {cited:?}");
        assert_eq!(cited, explained, "cited in the code; in docs/rules.md");
    }
    let (cited, faults) = (
        numbers(&cited, &["fault ", "faults "]),
        numbers(&faults, &["fault "]),
    );
    assert!(cited.len() > 5 && cited.is_subset(&faults), "{cited:?}");
}

#[test]
fn every_rule_that_rent_switches_off_is_in_the_code() {
    // It does not matter how lines are broken.
    let compact = |code: &str| code.split_whitespace().collect::<String>();
    let switches = file("prober/rent/switches");
    for line in switches.lines().filter(|line| !line.starts_with('#')) {
        let [_, _, source, before, after] = line.split(" | ").collect::<Vec<_>>()[..] else {
            unreachable!("five fields: {line}")
        };
        let source = file(&format!("prober/core/src/{source}"));
        let found = compact(&source).matches(&compact(before)).count();
        assert!(
            found == 1 && after.contains("OFF"),
            "A rule's code has changed, so `make rent` cannot switch it off. In prober/rent/switches say what is \
             there now and what takes its place, or delete the line of a rule that is gone: {line}"
        );
    }
}

#[test]
fn every_fault_is_shown_by_tests() {
    let page = file("docs/reliability.md");
    let mut faults = 0;
    for row in rows(&page).filter(|row| row.last() != Some(&"Shown by")) {
        faults += 1;
        for test in row[row.len() - 1].split(", ") {
            let link = test
                .strip_prefix("[`")
                .and_then(|test| test.strip_suffix(')'));
            let (name, path) = link.and_then(|link| link.split_once("`](../")).expect(test);
            let exists = file(path).contains(&format!("fn {name}("));
            assert!(exists, "{name} in {path}");
        }
    }
    assert!(faults > 80, "only {faults} are recognized");
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
