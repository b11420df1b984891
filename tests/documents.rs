//! Claims of the pages can be looked up: every rule, decision and fault has its capability, every
//! capability its test; links, files, recipes, commands and annotations exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that hold what is built, not written.
const BUILT: [&str; 3] = [".git", "artefacts", "target"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file with this ending that people wrote, with its text.
fn texts(ending: &str) -> Vec<(PathBuf, String)> {
    let (mut folders, mut found) = (vec![root().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !BUILT.iter().any(|built| path.ends_with(built)) {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == ending)
            {
                let text = fs::read_to_string(&path).expect("a text");
                found.push((path, text));
            }
        }
    }
    found
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).expect("the document")
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
    let same = [
        (" - D-", "-"),
        ("D-", "D "),
        ("rules ", "rule "),
        ("faults ", "fault "),
    ];
    let cell = same.iter().fold(cell.to_owned(), |cell, (one, other)| {
        cell.replace(one, other)
    });
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
    let ledger = document("capabilities.md");
    let capabilities = rows(&ledger).filter(|row| row.len() == 4 && row[1] != "For");
    let placed: BTreeSet<_> = capabilities.flat_map(|row| listed(row[1], "")).collect();
    let switches = fs::read_to_string(root().join("prober/rent/switches")).expect("the switches");
    let switches = switches.lines().filter(|line| !line.starts_with('#'));
    let switches = switches.filter_map(|line| line.split(" | ").next());
    let mut due: BTreeSet<_> = switches.map(|name| format!("`{name}`")).collect();
    for (page, word) in [("rules.md", "rule"), ("reliability.md", "fault")] {
        let page = document(page);
        let (tables, _) = page
            .split_once("\n## Attacked together")
            .unwrap_or((&*page, ""));
        let names = rows(tables).map(|row| row[0]).filter(|name| *name != "No.");
        due.extend(names.flat_map(|name| listed(name, word)));
    }
    assert!(due.len() > 200, "only {} are recognized", due.len());
    assert_eq!(
        placed, due,
        "docs/capabilities.md; what the other pages and prober/rent/switches list"
    );
}

#[test]
fn every_capability_has_one_test_at_its_level() {
    let ledger = document("capabilities.md");
    // Files and folders, each with the level of the tests below it.
    let mut levels = Vec::new();
    let mut wrong = Vec::new();
    for row in rows(&ledger) {
        match row[..] {
            [level, _, below] => levels.extend(code(below).map(|path| (path, level))),
            [sentence, _, test, level] if !["Test", "none"].contains(&test) => {
                let link = test
                    .strip_prefix("[`")
                    .and_then(|link| link.strip_suffix(')'));
                let (name, path) = link
                    .and_then(|link| link.split_once("`](../"))
                    .expect(sentence);
                let source = fs::read_to_string(root().join(path)).unwrap_or_default();
                let above = levels
                    .iter()
                    .filter(|(below, _)| Path::new(path).starts_with(below));
                let nearest = above.max_by_key(|(below, _)| below.len());
                if !source.contains(&format!("fn {name}("))
                    || nearest.is_none_or(|it| it.1 != level)
                {
                    wrong.push(format!("{sentence}: {name} in {path}, {level}"));
                }
            }
            _ => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "no such test, or none of this level: {wrong:#?}"
    );
}

#[test]
fn every_test_that_a_page_about_what_was_tested_names_exists() {
    let sources = texts("rs");
    let looks_like_a_test = |name: &&str| {
        let is_name =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        name.matches('_').count() >= 4 && name.chars().all(is_name) && !name.starts_with("dwd_")
    };
    for (page, least) in [("security.md", 10), ("try-locally.md", 5)] {
        let page = document(page);
        let tests: Vec<_> = code(&page).filter(looks_like_a_test).collect();
        assert!(tests.len() > least, "{tests:?}");
        for test in tests {
            let declared = format!("fn {test}(");
            let exists = sources.iter().any(|(_, source)| source.contains(&declared));
            assert!(exists, "{test} does not exist");
        }
    }
}

#[test]
fn no_crate_of_the_workspace_may_hold_unsafe_code() {
    for (path, manifest) in texts("toml") {
        if path.ends_with("Cargo.toml") {
            let is_strict = manifest.contains("[lints]\nworkspace = true");
            assert!(
                is_strict,
                "{} leaves out the workspace's lints",
                path.display()
            );
        }
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    assert!(workspace.contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_annotation_that_a_page_names_is_one_that_the_program_knows() {
    use prober_core::options::{
        PAUSE, RESTORE_ONLY_HELD_DOWN, SCALE_UP_STABILIZATION, STANDBY_PROTECTS,
    };
    use prober_core::replicas::{IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, REPLICAS};
    let replicas = [IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, REPLICAS];
    let settings = [
        PAUSE,
        RESTORE_ONLY_HELD_DOWN,
        SCALE_UP_STABILIZATION,
        STANDBY_PROTECTS,
    ];
    let known: BTreeSet<_> = replicas
        .iter()
        .chain(&settings)
        .map(ToString::to_string)
        .collect();
    let (prefix, mut seen) = ("dependency-watchdog.gardener.cloud/", BTreeSet::new());
    for (_, text) in texts("md") {
        for rest in text.split(prefix).skip(1) {
            let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            let name = rest
                .split(|letter: char| !is_name(letter))
                .next()
                .unwrap_or_default();
            // kubectl takes an annotation away by its name and a dash.
            seen.insert(format!("{prefix}{}", name.trim_end_matches('-')));
        }
    }
    assert_eq!(seen, known, "the pages, the program");
}

/// The commands for operators in the shell blocks of a page, each as its words after the program's
/// name.
fn commands(page: &str) -> Vec<Vec<String>> {
    let blocks = page.split("\n```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("\n```").next());
    let text: Vec<_> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let words = |line: &str| {
        let (_, command) = line
            .split('#')
            .next()?
            .rsplit_once("dependency-watchdog ")?;
        let words = command.split(['|', '>']).next()?.split_whitespace();
        let words: Vec<_> = words.map(str::to_owned).collect();
        let ours = ["status", "explain", "restore", "check-config"];
        ours.contains(&words.first()?.as_str()).then_some(words)
    };
    text.join("\n").lines().filter_map(words).collect()
}

#[test]
fn every_command_that_a_page_tells_people_to_run_is_one_that_the_program_takes() {
    let mut seen = BTreeSet::new();
    for (page, text) in texts("md") {
        for mut words in commands(&text) {
            seen.insert(words[0].clone());
            // It is understood, and finds no cluster.
            if words[0] != "check-config" {
                words.extend(["--kubeconfig", "/no/such/file"].map(str::to_owned));
            }
            let mut program = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
            let output = program
                .env_clear()
                .args(&words)
                .output()
                .expect("the binary runs");
            let is_taken = output.status.code() == Some(1);
            assert!(is_taken, "{}: {words:?}: {output:?}", page.display());
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// Whether a page has a heading that this fragment names, as GitHub and mdbook write it.
fn has_heading(page: &str, fragment: &str) -> bool {
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    let headings = page.lines().filter_map(|line| line.split_once("# "));
    let mut headings = headings.filter(|(before, _)| before.trim_matches('#').is_empty());
    headings.any(|(_, heading)| {
        let heading: String = heading.to_lowercase().chars().filter(kept).collect();
        heading.replace(' ', "-") == fragment
    })
}

#[test]
fn every_link_between_pages_leads_somewhere_and_every_page_is_in_the_book() {
    let (summary, docs) = (document("SUMMARY.md"), root().join("docs"));
    let (mut dead, mut links) = (Vec::new(), 0);
    let mut pages = texts("md");
    // Becomes a page of docs/, from where its links count.
    pages.retain(|(page, _)| !page.ends_with("results/page.md"));
    for (page, text) in pages {
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
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
            if !leads {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
        if let Ok(name) = page.strip_prefix(&docs)
            && !name.ends_with("SUMMARY.md")
        {
            assert!(
                summary.contains(&format!("({})", name.display())),
                "{}",
                name.display()
            );
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(links > 100, "only {links} links are recognized");
}

#[test]
fn every_file_and_recipe_that_a_page_names_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let is_written = |folder: &str| {
        !folder.is_empty() && !BUILT.contains(&folder) && root().join(folder).is_dir()
    };
    let (mut dead, mut named) = (Vec::new(), 0);
    for (page, text) in texts("md") {
        for code in code(&text).flat_map(str::lines) {
            let is_path = |byte| u8::is_ascii_alphanumeric(byte) || b"/._-".contains(byte);
            let folder = code.split_once('/').map(|(folder, _)| folder);
            let exists = if let Some(recipe) = code.strip_prefix("make ") {
                let recipe = recipe.split_whitespace().next().unwrap_or_default();
                makefile.contains(&format!("\n{recipe}:"))
            } else if folder.is_some_and(&is_written) && code.as_bytes().iter().all(is_path) {
                root().join(code).exists()
            } else {
                continue;
            };
            named += 1;
            if !exists {
                dead.push(format!("{}: {code}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(named > 40, "only {named} are recognized");
}
