//! What docs/ claims can be looked up: every fault has its row, every capability its test, and every
//! test that is named exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many faults there are; docs/reliability.md numbers them from 1.
const FAULTS: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).expect("the document")
}

/// The names of all test functions in a folder: what follows an attribute that ends in `test`, or
/// stands in `proptest!`.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path
                .file_name()
                .is_some_and(|name| name == "target" || name == ".git")
            {
                tests_in(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_of(&fs::read_to_string(&path).expect("a source")));
        }
    }
}

fn tests_of(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line
            .strip_prefix("fn ")
            .or_else(|| line.strip_prefix("async fn "))
            && std::mem::take(&mut is_test)
        {
            found.extend(rest.split('(').next().map(str::to_owned));
        }
    }
    found
}

/// The cells of the rows of all tables.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let rows = document.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

/// What stands in backticks.
fn named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_fault_has_a_row() {
    let document = document("reliability.md");
    let mut seen: Vec<usize> = rows(&document)
        .iter()
        .filter_map(|row| row[0].parse().ok())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=FAULTS).collect::<Vec<_>>());
}

/// A row of docs/capabilities.md.
struct Capability<'a> {
    sentence: &'a str,
    /// Rows of other pages, and rules of the core in backticks.
    is_for: &'a str,
    /// Name and file; `None` where no test shows it.
    test: Option<(&'a str, &'a str)>,
    level: &'a str,
}

/// The text and the path of a cell that is one link out of docs/.
fn link(cell: &str) -> Option<(&str, &str)> {
    let (name, path) = cell.strip_prefix("[`")?.split_once("`](../")?;
    Some((name, path.strip_suffix(')')?))
}

fn capabilities(ledger: &str) -> Vec<Capability<'_>> {
    let mut found = Vec::new();
    for row in rows(ledger) {
        if let [sentence, is_for, test, level] = row[..]
            && test != "Test"
        {
            let test = (test != "none").then(|| link(test).expect(sentence));
            found.push(Capability {
                sentence,
                is_for,
                test,
                level,
            });
        }
    }
    found
}

#[test]
fn every_capability_has_one_test_at_its_level() {
    let ledger = document("capabilities.md");
    // Files and folders, each with the level of the tests below it.
    let mut levels = Vec::new();
    for row in rows(&ledger) {
        if let [level, _, below] = row[..] {
            levels.extend(named(below).into_iter().map(|path| (path, level)));
        }
    }
    let mut wrong = Vec::new();
    for capability in capabilities(&ledger) {
        let Some((name, path)) = capability.test else {
            continue;
        };
        let source = fs::read_to_string(root().join(path)).unwrap_or_default();
        let exists = tests_of(&source).iter().any(|test| test == name);
        let nearest = levels
            .iter()
            .filter(|(below, _)| Path::new(path).starts_with(below))
            .max_by_key(|(below, _)| below.len());
        if !exists || nearest.is_none_or(|&(_, level)| level != capability.level) {
            let Capability {
                sentence, level, ..
            } = capability;
            wrong.push(format!("{sentence}: {name} in {path}, {level}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "no such test, or none of this level: {wrong:#?}"
    );
}

#[test]
fn every_rule_of_the_core_is_for_a_capability() {
    let (ledger, rules) = (document("capabilities.md"), document("rules.md"));
    let capabilities = capabilities(&ledger);
    assert!(
        capabilities.len() > 100,
        "only {} capabilities are recognized",
        capabilities.len()
    );
    let switches = fs::read_to_string(root().join("prober/rent/switches")).expect("the switches");
    let switched: BTreeSet<&str> = switches
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(" | ").next())
        .collect();
    let placed: BTreeSet<&str> = capabilities
        .iter()
        .flat_map(|capability| named(capability.is_for))
        .collect();
    assert_eq!(
        placed, switched,
        "docs/capabilities.md, prober/rent/switches"
    );
    // Those with numbers are cited (tests/citations.rs).
    for row in rows(&rules) {
        let name = row[0];
        let is_named = name != "No." && !name.contains(|letter: char| letter.is_ascii_digit());
        assert!(
            !is_named || capabilities.iter().any(|row| row.is_for.contains(name)),
            "docs/capabilities.md has no row for {name}"
        );
    }
}

#[test]
fn every_test_that_a_page_about_what_was_tested_names_exists() {
    let mut exist = BTreeSet::new();
    tests_in(root(), &mut exist);
    let looks_like_a_test = |name: &&str| {
        name.matches('_').count() >= 4
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && !name.starts_with("dwd_")
    };
    for (page, least) in [("security.md", 10), ("try-locally.md", 5)] {
        let document = document(page);
        let rows = rows(&document);
        let tests: Vec<_> = rows
            .iter()
            .flatten()
            .flat_map(|cell| named(cell))
            .filter(looks_like_a_test)
            .collect();
        assert!(tests.len() > least, "{page}: {tests:?}");
        for test in tests {
            assert!(exist.contains(test), "{page}: {test} does not exist");
        }
    }
}

#[test]
fn no_crate_of_the_workspace_may_hold_unsafe_code() {
    let manifest = |folder: &str| {
        fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a manifest")
    };
    let workspace = manifest("");
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    let members = workspace
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .expect("members")
        .0;
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(members.len() > 5, "{members:?}");
    for member in members.into_iter().chain([""]) {
        assert!(
            manifest(member).contains("[lints]\nworkspace = true"),
            "{member:?} does not take part in the workspace's lints"
        );
    }
}

#[test]
fn a_test_is_known_by_its_attribute() {
    let source = "#[test]\nfn one() {}\nfn none() {}\n#[tokio::test(start_paused = true)]\nasync fn two() {\n#[test]\n#[ignore]\nfn three() {";
    assert_eq!(tests_of(source), ["one", "two", "three"]);
}

/// Every Markdown file that people read.
fn pages() -> Vec<PathBuf> {
    let mut folders = vec![
        root().join("docs"),
        root().join("deploy"),
        root().join("kind-tests/fuzz"),
    ];
    let mut pages: Vec<PathBuf> = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .map(|name| root().join(name))
    .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

#[test]
fn every_annotation_that_a_page_names_is_one_that_the_program_knows() {
    use prober_core::options::{
        PAUSE, RESTORE_ONLY_HELD_DOWN, SCALE_UP_STABILIZATION, STANDBY_PROTECTS,
    };
    use prober_core::replicas::{IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, REPLICAS};
    let known = [
        IGNORE_SCALING,
        MELTDOWN_PROTECTION_ACTIVE,
        REPLICAS,
        PAUSE,
        RESTORE_ONLY_HELD_DOWN,
        SCALE_UP_STABILIZATION,
        STANDBY_PROTECTS,
    ];
    let (prefix, mut seen) = ("dependency-watchdog.gardener.cloud/", BTreeSet::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for rest in text.split(prefix).skip(1) {
            let name: String = rest
                .chars()
                .take_while(|letter| letter.is_ascii_lowercase() || *letter == '-')
                .collect();
            // kubectl takes an annotation away by its name and a dash.
            let name = format!("{prefix}{}", name.trim_end_matches('-'));
            assert!(known.contains(&name.as_str()), "{}: {name}", page.display());
            seen.insert(name);
        }
    }
    assert_eq!(seen, known.map(str::to_owned).into(), "each has its page");
}

/// The commands for operators in the shell blocks of a page, each as its words after the program's
/// name.
fn commands(page: &str) -> Vec<Vec<String>> {
    let blocks = page
        .split("\n```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next());
    let text: String = blocks
        .map(|block| format!("{}\n", block.replace("\\\n", " ")))
        .collect();
    let words = |line: &str| {
        let (_, command) = line
            .split('#')
            .next()?
            .rsplit_once("dependency-watchdog ")?;
        Some(
            command
                .split(['|', '>'])
                .next()?
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    let ours = ["status", "explain", "restore", "check-config"];
    text.lines()
        .filter_map(words)
        .filter(|words| {
            words
                .first()
                .is_some_and(|word| ours.contains(&word.as_str()))
        })
        .collect()
}

#[test]
fn every_command_that_a_page_tells_people_to_run_is_one_that_the_program_takes() {
    let mut seen = BTreeSet::new();
    for page in pages() {
        for mut words in commands(&fs::read_to_string(&page).expect("a page")) {
            seen.insert(words[0].clone());
            // It is understood, and finds no cluster.
            if words[0] != "check-config" {
                words.extend(["--kubeconfig", "/no/such/file"].map(str::to_owned));
            }
            let output = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"))
                .env_clear()
                .args(&words)
                .output();
            let output = output.expect("the binary runs");
            assert_eq!(
                output.status.code(),
                Some(1),
                "{}: {words:?}: {output:?}",
                page.display()
            );
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// The fragments that links to a page may end in: its headings, as GitHub and mdbook write them.
fn fragments(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| {
        line.strip_prefix('#')?
            .trim_start_matches('#')
            .strip_prefix(' ')
    });
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    headings
        .map(|heading| {
            heading
                .to_lowercase()
                .chars()
                .filter(kept)
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}

#[test]
fn every_link_between_pages_leads_somewhere_and_every_page_is_in_the_book() {
    let (mut dead, mut links) = (Vec::new(), 0);
    for page in pages() {
        let text =
            fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if target.contains("://") || target.contains(' ') {
                continue;
            }
            links += 1;
            let (file, fragment) = target
                .split_once('#')
                .map_or((target, None), |(file, fragment)| (file, Some(fragment)));
            let path = if file.is_empty() {
                page.clone()
            } else {
                page.with_file_name("").join(file)
            };
            let leads = match fragment {
                None => path.exists(),
                Some(fragment) => {
                    fs::read_to_string(&path).is_ok_and(|text| fragments(&text).contains(fragment))
                }
            };
            if !leads {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(links > 100, "only {links} links are recognized");
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("a summary");
    let in_docs = pages().into_iter().filter_map(|page| {
        page.strip_prefix(&docs)
            .ok()
            .map(|page| page.display().to_string())
    });
    let missing: Vec<String> = in_docs
        .filter(|page| page != "SUMMARY.md" && !summary.contains(&format!("({page})")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
