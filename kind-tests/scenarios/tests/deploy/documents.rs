//! Pages and releases say what is so.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::agent::binary;
use testbed::objects::items;

use crate::repository;
use crate::tools::{CHART, good};

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
fn page_names_every_flag_with_its_default() -> Result<()> {
    let known = flags("prober")?;
    assert_eq!(known, flags("weeder")?);
    let stated = table("Flags")?.into_iter().map(|(name, cells)| {
        let default = cells.first().map(|cell| cell.trim_matches('`').to_owned());
        (
            name.trim_start_matches("--").to_owned(),
            default.unwrap_or_default(),
        )
    });
    assert_eq!(stated.collect::<BTreeMap<_, _>>(), known);
    Ok(())
}

#[test]
fn page_and_chart_know_every_key() -> Result<()> {
    let schema = repository::text(&format!("{CHART}/values.schema.json"))?;
    let schema: Value = serde_json::from_str(&schema)?;
    let read = [
        (
            "prober",
            prober::config::to_json(&prober::config::every_key()),
        ),
        (
            "weeder",
            serde_json::to_value(weeder::config::file::File::every_key())?,
        ),
    ];
    let (mut known, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for (agent, file) in read {
        let config = &schema["properties"][agent]["properties"]["config"]["properties"];
        known.extend(config.as_object().context("no config")?.keys().cloned());
        keys.extend(file.as_object().context("no file")?.keys().cloned());
    }
    let mut named: BTreeSet<String> = table("Config keys")?.into_keys().collect();
    named.retain(|key| !key.contains('.'));
    assert_eq!((named, keys), (known.clone(), known));
    Ok(())
}

#[test]
fn release_is_a_kubectl_plugin() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for architecture in ["amd64", "arm64"] {
        let program = folder
            .path()
            .join(format!("dependency-watchdog-linux-{architecture}"));
        std::fs::write(program, format!("#!/bin/sh\necho {architecture}\n"))?;
    }
    let packed = || -> Result<Value> {
        let mut command = Command::new(repository::path("deploy/release"));
        let command = command.arg("krew").arg(folder.path());
        good(command.arg("https://git.example.org/dwd").output()?)?;
        let manifest = folder.path().join("dependency-watchdog.krew.yaml");
        Ok(serde_saphyr::from_str(&std::fs::read_to_string(manifest)?)?)
    };
    let plugin = packed()?;
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(plugin["spec"]["version"], version);
    let release = format!("https://git.example.org/dwd/releases/download/{version}/");
    let mut architectures = Vec::new();
    for platform in items(&plugin["spec"]["platforms"]) {
        let text = |pointer: &str| {
            let value = platform.pointer(pointer).and_then(Value::as_str);
            value.with_context(|| pointer.to_owned())
        };
        let uri = text("/uri")?;
        let archive = folder
            .path()
            .join(uri.strip_prefix(&release).context(uri.to_owned())?);
        let sum = good(Command::new("sha256sum").arg(&archive).output()?)?;
        assert_eq!(sum.split(' ').next(), Some(text("/sha256")?), "{uri}");
        let unpacked = tempfile::tempdir()?;
        let mut unpack = Command::new("tar");
        unpack
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(unpacked.path());
        good(unpack.output()?)?;
        // krew wants a licence in each.
        ensure!(unpacked.path().join("LICENSE").is_file(), "no licence");
        let said = good(Command::new(unpacked.path().join(text("/bin")?)).output()?)?;
        assert_eq!(said.trim(), text("/selector/matchLabels/arch")?);
        architectures.push(said.trim().to_owned());
    }
    assert_eq!(architectures, ["amd64", "arm64"]);
    assert_eq!(
        packed()?,
        plugin,
        "the same programs make the same archives"
    );
    Ok(())
}

#[test]
fn all_files_name_one_version() -> Result<()> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let copy = tempfile::tempdir()?;
    let root = repository::path("");
    let mut copies = Command::new("cp");
    let files = ["Cargo.toml", "CHANGELOG.md", "deploy"].map(|file| root.join(file));
    good(copies.arg("-RL").args(files).arg(copy.path()).output()?)?;
    let release = |what: &str, tag: &str| {
        let mut command = Command::new(copy.path().join("deploy/release"));
        command.arg(what).env("GITHUB_REF", tag).output()
    };
    assert_eq!(good(release("version", "")?)?.trim(), VERSION);
    ensure!(
        good(release("notes", "")?)?.trim().len() > 40,
        "there are no release notes"
    );
    good(release("version", &format!("refs/tags/v{VERSION}"))?)?;
    let tagged = release("version", "refs/tags/v99.0.0")?;
    ensure!(
        !tagged.status.success(),
        "a tag of another version is taken"
    );
    for file in [
        "CHANGELOG.md",
        "deploy/Containerfile",
        "deploy/helm/dependency-watchdog/Chart.yaml",
        "deploy/kustomize/base/prober.yaml",
        "deploy/kustomize/base/weeder.yaml",
        "deploy/kustomize/overlays/plain/kustomization.yaml",
    ] {
        let path = copy.path().join(file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, text.replace(VERSION, "99.0.0"))?;
        let output = release("version", "")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && said.contains(file),
            "{file}: {output:?}"
        );
        std::fs::write(&path, text)?;
    }
    Ok(())
}
