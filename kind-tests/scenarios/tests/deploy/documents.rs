//! Pages and workflows say what is so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use crate::repository;
use crate::tools::good;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::agent::binary;

/// The page on swapping the image in Gardener.
const PAGE: &str = "docs/swap-image.md";

/// What the page's table under a heading says, by the code in its first column: the other columns.
fn table(heading: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let page = repository::text(PAGE)?;
    let section = page
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .with_context(|| format!("{PAGE} has no {heading}"))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in section.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, rest) = line.split_once("` |").with_context(|| line.to_owned())?;
        let cells = rest
            .trim_end_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect();
        ensure!(
            rows.insert(name.to_owned(), cells).is_none(),
            "{name} is there twice"
        );
    }
    ensure!(!rows.is_empty(), "{heading} is empty");
    Ok(rows)
}

/// Defaults of all flags by name, aliases included, as the program's own help says them.
fn flags(agent: &str) -> Result<BTreeMap<String, String>> {
    let help = good(Command::new(binary()?).args(["help", agent]).output()?)?;
    let mut flags = BTreeMap::new();
    let mut name = String::new();
    let bracketed = |line: &str, word: &str| -> Option<String> {
        let text = line.trim().strip_prefix(word)?.strip_suffix(']')?;
        Some(text.to_owned())
    };
    for line in help.lines() {
        if let Some(flag) = line.strip_prefix("      --") {
            name = flag.split([' ', '[']).next().unwrap_or_default().into();
            flags.insert(name.clone(), String::new());
        } else if let Some(default) = bracketed(line, "[default: ") {
            flags.insert(name.clone(), default);
        } else if let Some(alias) = bracketed(line, "[alias: --") {
            flags.insert(alias, flags[&name].clone());
        }
    }
    ensure!(flags.len() > 15, "only {flags:?}");
    Ok(flags)
}

#[test]
fn the_page_names_every_flag_with_its_default_and_none_that_does_not_exist() -> Result<()> {
    assert_eq!(flags("prober")?, flags("weeder")?);
    let stated: BTreeMap<String, String> = table("Flags")?
        .into_iter()
        .map(|(name, cells)| {
            Ok((
                name.trim_start_matches("--").to_owned(),
                cells
                    .first()
                    .context("no default")?
                    .trim_matches('`')
                    .to_owned(),
            ))
        })
        .collect::<Result<_>>()?;
    assert_eq!(stated, flags("prober")?);
    Ok(())
}

#[test]
fn the_page_says_of_every_thing_whether_it_is_the_same_added_or_changed() -> Result<()> {
    for heading in [
        "Flags",
        "Config keys",
        "Ports",
        "Annotations",
        "Leases",
        "Permissions",
    ] {
        for (name, cells) in table(heading)? {
            let word = cells
                .get(1)
                .with_context(|| format!("{heading}: {name} has too few columns"))?;
            ensure!(
                ["same", "added", "changed"].contains(&word.as_str()),
                "{heading}: {name}: {word}"
            );
        }
    }
    Ok(())
}

/// The top-level keys of both configs that the chart's schema knows.
fn known_to_the_chart() -> Result<BTreeSet<String>> {
    let schema: Value = serde_json::from_str(&repository::text(
        "deploy/helm/dependency-watchdog/values.schema.json",
    )?)?;
    let mut known = BTreeSet::new();
    for agent in ["prober", "weeder"] {
        let config = &schema["properties"][agent]["properties"]["config"]["properties"];
        known.extend(config.as_object().context("no config")?.keys().cloned());
    }
    Ok(known)
}

#[test]
fn the_page_and_the_chart_know_every_key_that_the_agents_read() -> Result<()> {
    let known = known_to_the_chart()?;
    let named: BTreeSet<String> = table("Config keys")?
        .into_keys()
        .filter(|key| !key.contains('.'))
        .collect();
    assert_eq!(named, known);
    let prober = prober::config::to_json(&prober::config::every_key());
    let weeder = serde_json::to_value(weeder::config::file::File::every_key())?;
    let read = [prober, weeder].map(|file| file.as_object().cloned().unwrap_or_default());
    let read: BTreeSet<String> = read
        .into_iter()
        .flat_map(|file| file.into_iter())
        .map(|(key, _)| key)
        .collect();
    assert_eq!(read, known);
    Ok(())
}

#[test]
fn workflows_call_recipes_and_scripts_that_exist() -> Result<()> {
    let makefile = repository::text("Makefile")?;
    let recipes: BTreeSet<&str> = makefile
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let mut calls = 0;
    for workflow in std::fs::read_dir(repository::path(".github/workflows"))? {
        let workflow = workflow?.path();
        let text = std::fs::read_to_string(&workflow)?;
        let parsed: Value = serde_saphyr::from_str(&text)?;
        ensure!(
            parsed["permissions"]["contents"] == "read",
            "{}: it may more than read by default",
            workflow.display()
        );
        for job in parsed["jobs"].as_object().context("no jobs")?.values() {
            ensure!(
                job["uses"].is_string() || job["timeout-minutes"].is_u64(),
                "{}: a job without a limit",
                workflow.display()
            );
            for step in job["steps"].as_array().into_iter().flatten() {
                for line in step["run"]
                    .as_str()
                    .unwrap_or_default()
                    .lines()
                    .map(str::trim)
                {
                    if let Some(recipe) = line
                        .strip_prefix("make ")
                        .and_then(|rest| rest.split_whitespace().next())
                    {
                        ensure!(
                            recipes.contains(recipe),
                            "{}: no recipe {recipe}",
                            workflow.display()
                        );
                        calls += 1;
                    }
                    if line.starts_with(".ci/") {
                        ensure!(
                            repository::path(line).is_file(),
                            "{}: no {line}",
                            workflow.display()
                        );
                        calls += 1;
                    }
                }
            }
        }
    }
    ensure!(calls >= 3, "only {calls} calls");
    Ok(())
}

#[test]
fn workflows_take_foreign_code_by_commit_and_say_which_version_that_is() -> Result<()> {
    let mut found = 0;
    for workflow in std::fs::read_dir(repository::path(".github/workflows"))? {
        let text = std::fs::read_to_string(workflow?.path())?;
        for (_, action) in text
            .lines()
            .filter_map(|line| line.split_once("uses: "))
            .filter(|(_, action)| !action.starts_with("./"))
        {
            let (commit, version) = action
                .split_once('@')
                .and_then(|(_, at)| at.split_once(" # v"))
                .context(action.to_owned())?;
            ensure!(
                commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()),
                "{action}"
            );
            ensure!(
                version
                    .split('.')
                    .filter(|part| part.parse::<u32>().is_ok())
                    .count()
                    == 3,
                "{action}"
            );
            found += 1;
        }
    }
    ensure!(found > 10, "only {found} actions");
    Ok(())
}

#[test]
fn a_release_is_a_kubectl_plugin_of_what_its_manifest_names() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for architecture in ["amd64", "arm64"] {
        let program = folder
            .path()
            .join(format!("dependency-watchdog-linux-{architecture}"));
        std::fs::write(program, format!("#!/bin/sh\necho {architecture}\n"))?;
    }
    let packed = || -> Result<Value> {
        let mut command = Command::new(repository::path("deploy/release"));
        good(
            command
                .arg("krew")
                .arg(folder.path())
                .arg("https://git.example.org/dwd")
                .output()?,
        )?;
        Ok(serde_saphyr::from_str(&std::fs::read_to_string(
            folder.path().join("dependency-watchdog.krew.yaml"),
        )?)?)
    };
    let plugin = packed()?;
    assert_eq!(
        plugin["spec"]["version"],
        concat!("v", env!("CARGO_PKG_VERSION"))
    );
    let platforms = plugin["spec"]["platforms"]
        .as_array()
        .context("no platforms")?;
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        let architecture = platform["selector"]["matchLabels"]["arch"]
            .as_str()
            .context("no architecture")?;
        let (uri, sum) = (
            platform["uri"].as_str().unwrap_or_default(),
            platform["sha256"].as_str().unwrap_or_default(),
        );
        let release = concat!(
            "https://git.example.org/dwd/releases/download/v",
            env!("CARGO_PKG_VERSION"),
            "/"
        );
        let archive = folder
            .path()
            .join(uri.strip_prefix(release).context(uri.to_owned())?);
        ensure!(
            good(Command::new("sha256sum").arg(&archive).output()?)?.starts_with(sum)
                && sum.len() == 64,
            "{uri}: {sum}"
        );
        let unpacked = tempfile::tempdir()?;
        good(
            Command::new("tar")
                .arg("-xzf")
                .arg(&archive)
                .arg("-C")
                .arg(unpacked.path())
                .output()?,
        )?;
        // krew wants a licence in each.
        ensure!(unpacked.path().join("LICENSE").is_file(), "no licence");
        let program = unpacked
            .path()
            .join(platform["bin"].as_str().context("no program")?);
        assert_eq!(good(Command::new(program).output()?)?.trim(), architecture);
    }
    assert_eq!(
        packed()?,
        plugin,
        "the same programs make the same archives"
    );
    Ok(())
}

/// What `deploy/release` says of a folder with this repository's files, and of a tag where there is
/// one.
fn release(root: &Path, what: &str, tag: &str) -> Result<Output> {
    Ok(Command::new(root.join("deploy/release"))
        .arg(what)
        .env("GITHUB_REF", tag)
        .output()?)
}

#[test]
fn every_file_names_the_same_version_and_so_does_the_changelog() -> Result<()> {
    let root = repository::path("");
    assert_eq!(
        good(release(&root, "version", "")?)?.trim(),
        env!("CARGO_PKG_VERSION")
    );
    ensure!(
        good(release(&root, "notes", "")?)?.trim().len() > 40,
        "there are no release notes"
    );
    ensure!(
        release(
            &root,
            "version",
            concat!("refs/tags/v", env!("CARGO_PKG_VERSION"))
        )?
        .status
        .success()
    );
    ensure!(
        !release(&root, "version", "refs/tags/v99.0.0")?
            .status
            .success(),
        "a tag of another version is taken"
    );
    Ok(())
}

#[test]
fn a_file_that_names_another_version_is_named() -> Result<()> {
    let copy = tempfile::tempdir()?;
    let to = |path: &str| copy.path().join(path);
    for file in ["Cargo.toml", "CHANGELOG.md"] {
        std::fs::copy(repository::path(file), to(file))?;
    }
    good(
        Command::new("cp")
            .arg("-RL")
            .arg(repository::path("deploy"))
            .arg(copy.path())
            .output()?,
    )?;
    let version = || release(copy.path(), "version", "");
    good(version()?)?;
    for file in [
        "CHANGELOG.md",
        "deploy/Containerfile",
        "deploy/helm/dependency-watchdog/Chart.yaml",
        "deploy/kustomize/base/prober.yaml",
        "deploy/kustomize/base/weeder.yaml",
        "deploy/kustomize/overlays/plain/kustomization.yaml",
    ] {
        let text = std::fs::read_to_string(to(file))?;
        let other = text.replace(env!("CARGO_PKG_VERSION"), "99.0.0");
        ensure!(other != text, "{file} names no version");
        std::fs::write(to(file), other)?;
        let output = version()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            !output.status.success() && said.contains(file),
            "{file}: {}: {said}",
            output.status
        );
        std::fs::write(to(file), text)?;
    }
    Ok(())
}
