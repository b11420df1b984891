//! What comments and pages cite exists: rules and decisions in docs/rules.md, faults in
//! docs/reliability.md, files, and recipes of the Makefile. Numbers of other lists are not cited.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what is built, not written.
const BUILT: [&str; 3] = [".git", "artefacts", "target"];
/// What a path in the repository begins with.
const FOLDERS: [&str; 8] = [
    "common",
    "config",
    "deploy",
    "docs",
    "kind-tests",
    "prober",
    "tests",
    "weeder",
];
/// What else is two to four capitals, a hyphen and a number.
const STANDARDS: [&str; 3] = ["BSD", "GEP", "UTF"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file that people wrote, with its text.
fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() && !BUILT.iter().any(|built| entry.file_name() == *built) {
            texts(&path, found);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            found.push((path, text));
        }
    }
}

fn all_texts() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    texts(root(), &mut found);
    assert!(found.len() > 100, "only {} files", found.len());
    found
}

/// Every page, with its text.
fn pages() -> impl Iterator<Item = (PathBuf, String)> {
    all_texts()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|ending| ending == "md"))
}

/// The text without what makes its lines comments, so that a citation may go on in the next line.
fn prose(text: &str) -> String {
    text.lines()
        .map(|line| line.trim_start_matches([' ', '\t', '/', '!', '#']))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The number at the beginning, and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The numbers of a list such as "1, 2 and 4 to 6", each of which `prefix` precedes; ranges in
/// full.
fn list(text: &str, prefix: &str) -> Vec<u32> {
    let next = |text: &str| {
        text.strip_prefix(prefix)
            .and_then(number)
            .map(|(number, rest)| (number, rest.len()))
    };
    let mut numbers: Vec<u32> = Vec::new();
    let (mut rest, mut is_range) = (text, false);
    while let Some((number, left)) = next(rest) {
        let first = numbers
            .last()
            .filter(|_| is_range)
            .map_or(number, |last| last + 1);
        numbers.extend(first..=number);
        rest = &rest[rest.len() - left..];
        let separators = [
            (", ", false),
            (" and ", false),
            (" to ", true),
            (" - ", true),
            ("-", true),
        ];
        let Some((after, to)) = separators
            .iter()
            .find_map(|&(word, to)| Some((rest.strip_prefix(word)?, to)))
        else {
            break;
        };
        (rest, is_range) = (after, to);
    }
    numbers
}

/// What follows each `word` that no other letter or digit precedes.
fn after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let begins = |at: usize| !text[..at].ends_with(|letter: char| letter.is_alphanumeric());
    text.match_indices(word)
        .filter(|&(at, _)| begins(at))
        .map(|(at, _)| &text[at + word.len()..])
        .collect()
}

/// The numbers that are cited as rules or faults: after the word, in the singular or plural.
fn cited(prose: &str, word: &str) -> BTreeSet<u32> {
    let (upper, lower) = (word[..1].to_uppercase() + &word[1..], word);
    let words = [
        format!("{lower} "),
        format!("{lower}s "),
        format!("{upper} "),
        format!("{upper}s "),
    ];
    words
        .iter()
        .flat_map(|word| after(prose, word))
        .flat_map(|rest| list(rest, ""))
        .collect()
}

fn cited_decisions(prose: &str) -> BTreeSet<u32> {
    after(prose, "D-")
        .into_iter()
        .filter_map(number)
        .map(|(number, _)| number)
        .collect()
}

/// What looks like the number of a test case, of which no list is in the repository: two to four
/// capitals, a hyphen, a number.
fn cited_cases(text: &str) -> BTreeSet<&str> {
    let case = |(hyphen, _): (usize, &str)| {
        let before = text[..hyphen].trim_end_matches(|letter: char| letter.is_ascii_uppercase());
        let (name, (_, rest)) = (&text[before.len()..hyphen], number(&text[hyphen + 1..])?);
        let begins = !before.ends_with(|letter: char| letter.is_alphanumeric());
        let is_case = begins && (2..=4).contains(&name.len()) && !STANDARDS.contains(&name);
        is_case.then(|| &text[before.len()..text.len() - rest.len()])
    };
    text.match_indices('-').filter_map(case).collect()
}

/// The numbers in the first column of a page's tables, each of which `prefix` precedes.
fn listed(page: &str, prefix: &str) -> BTreeSet<u32> {
    let page = fs::read_to_string(root().join("docs").join(page)).expect("the page");
    let cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells.flat_map(|cell| list(cell, prefix)).collect()
}

#[test]
fn every_rule_decision_and_fault_that_is_cited_is_in_its_table() {
    let (rules, decisions, faults) = (
        listed("rules.md", ""),
        listed("rules.md", "D-"),
        listed("reliability.md", ""),
    );
    let (mut dead, mut citations) = (Vec::new(), 0);
    for (path, text) in all_texts() {
        let prose = prose(&text);
        let found = [
            ("rule", cited(&prose, "rule"), &rules),
            ("fault", cited(&prose, "fault"), &faults),
            ("D-", cited_decisions(&prose), &decisions),
        ];
        for (what, cited, listed) in found {
            citations += cited.len();
            dead.extend(
                cited
                    .difference(listed)
                    .map(|number| format!("{}: {what} {number}", path.display())),
            );
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(citations > 200, "only {citations} citations are recognized");
}

#[test]
fn every_rule_decision_and_fault_is_for_a_capability() {
    let ledger = fs::read_to_string(root().join("docs/capabilities.md")).expect("the ledger");
    let missing = [
        ("rule", listed("rules.md", ""), cited(&ledger, "rule")),
        ("D-", listed("rules.md", "D-"), cited_decisions(&ledger)),
        (
            "fault",
            listed("reliability.md", ""),
            cited(&ledger, "fault"),
        ),
    ]
    .map(|(what, listed, placed)| (what, &listed - &placed));
    assert!(
        missing.iter().all(|(_, numbers)| numbers.is_empty()),
        "docs/capabilities.md has no row for {missing:?}"
    );
}

#[test]
fn no_case_is_cited_that_only_a_list_elsewhere_explains() {
    let texts = all_texts();
    let cases = texts
        .iter()
        .flat_map(|(path, text)| cited_cases(text).into_iter().map(move |case| (path, case)));
    let cases: Vec<_> = cases.collect();
    assert!(cases.is_empty(), "{cases:#?}");
}

#[test]
fn every_file_that_a_page_names_exists() {
    let (mut dead, mut named) = (Vec::new(), 0);
    for (page, text) in pages() {
        // What stands in backticks.
        for path in text.split('`').skip(1).step_by(2) {
            let is_path = path
                .split_once('/')
                .is_some_and(|(folder, _)| FOLDERS.contains(&folder))
                && path
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
            if is_path {
                named += 1;
                if !root().join(path).exists() {
                    dead.push(format!("{}: {path}", page.display()));
                }
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(named > 20, "only {named} paths are recognized");
}

#[test]
fn every_recipe_that_a_page_names_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let recipes: BTreeSet<&str> = makefile
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let mut named = 0;
    for (page, text) in pages() {
        for code in text.split('`').skip(1).step_by(2) {
            let commands = code.lines().filter_map(|line| line.strip_prefix("make "));
            for recipe in commands.filter_map(|rest| rest.split_whitespace().next()) {
                named += 1;
                assert!(
                    recipes.contains(recipe),
                    "{}: make {recipe}",
                    page.display()
                );
            }
        }
    }
    assert!(named > 20, "only {named} recipes are recognized");
}

#[test]
fn a_citation_is_known_by_its_word() {
    assert_eq!(
        cited(
            "as Rules 5, 6 and 8 to 10 say (rule 47), and overrule 99",
            "rule"
        ),
        [5, 6, 8, 9, 10, 47].into()
    );
    assert_eq!(
        cited("Fault 26, without faults, 3 of them", "fault"),
        [26].into()
    );
    assert_eq!(cited_decisions("(D-8, D-9) and 4D-3"), [8, 9].into());
    assert_eq!(list("D-29 - D-33", "D-"), [29, 30, 31, 32, 33]);
    assert_eq!(list("44, 45", ""), [44, 45]);
    assert_eq!(
        cited(&prose("/// the rules\n    /// 15 to 17"), "rule"),
        [15, 16, 17].into()
    );
    // In small letters here, or it would be such a citation itself.
    let text = "prb-12 and (weed-3), but neither 4prb-5 nor d-4, utf-8, prefix-0".to_uppercase();
    let cases: Vec<String> = cited_cases(&text)
        .iter()
        .map(|case| case.to_lowercase())
        .collect();
    assert_eq!(cases, ["prb-12", "weed-3"]);
}
