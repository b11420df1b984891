//! Releases are what they say.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::objects::items;

use crate::tools::shell;

/// Systems and architectures, as Go names them, that the plugin is for and the workflow builds.
const PLATFORMS: [&str; 4] = ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"];

#[test]
fn release_is_a_kubectl_plugin() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().to_str().context("UTF-8")?;
    let platforms = PLATFORMS.join(" ");
    let variables = [("OUT", out), ("PLATFORMS", &platforms)];
    // The same programs make the same archives.
    let pack = "for platform in $PLATFORMS; do
            printf '#!/bin/sh\necho %s\n' $platform >\"$OUT/dependency-watchdog-$platform\"
        done
        deploy/release krew \"$OUT\" https://git.example.org/dwd
        cp \"$OUT/dependency-watchdog.krew.yaml\" \"$WORK\"
        deploy/release krew \"$OUT\" https://git.example.org/dwd
        cmp \"$OUT/dependency-watchdog.krew.yaml\" \"$WORK/dependency-watchdog.krew.yaml\"
        cat \"$OUT/dependency-watchdog.krew.yaml\"";
    let plugin: Value = serde_saphyr::from_str(&shell(pack, &variables)?)?;
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(plugin["spec"]["version"], version);
    let platforms: Vec<_> = items(&plugin["spec"]["platforms"]).collect();
    assert_eq!(platforms.len(), PLATFORMS.len());
    for (platform, name) in platforms.into_iter().zip(PLATFORMS) {
        let (system, architecture) = name.split_once('-').context("no architecture")?;
        let archive = format!("dependency-watchdog-{name}.tar.gz");
        let release = "https://git.example.org/dwd/releases/download";
        let expected = json!({
            "selector": {"matchLabels": {"os": system, "arch": architecture}},
            "uri": format!("{release}/{version}/{archive}"),
            "sha256": platform["sha256"],
            "bin": "dependency-watchdog",
        });
        assert_eq!(*platform, expected);
        // krew wants a licence in each.
        let unpack = "echo \"$SUM $OUT/$ARCHIVE\" | sha256sum --check --quiet
            tar -xzf \"$OUT/$ARCHIVE\" -C \"$WORK\"
            test -f \"$WORK/LICENSE\"
            \"$WORK/dependency-watchdog\"";
        let sum = platform["sha256"].as_str().context("no sum")?;
        let variables = [variables[0], ("SUM", sum), ("ARCHIVE", &archive)];
        assert_eq!(shell(unpack, &variables)?.trim(), name);
    }
    Ok(())
}

#[test]
fn all_files_name_one_version() -> Result<()> {
    let script = "die() { echo \"$@\"; exit 1; }
        cp -RL Cargo.toml CHANGELOG.md deploy \"$WORK\"
        cd \"$WORK\"
        [ \"$(deploy/release version)\" = \"$VERSION\" ] || die 'another version'
        [ \"$(deploy/release notes | wc -c)\" -gt 40 ] || die 'no release notes'
        GITHUB_REF=refs/tags/v$VERSION deploy/release version
        ! GITHUB_REF=refs/tags/v99.0.0 deploy/release version || die 'a tag of another version is taken'
        for file in CHANGELOG.md deploy/Containerfile deploy/helm/dependency-watchdog/Chart.yaml \\
            deploy/kustomize/base/prober.yaml deploy/kustomize/base/weeder.yaml \\
            deploy/kustomize/overlays/plain/kustomization.yaml
        do
            cp \"$file\" kept
            sed -i \"s/$VERSION/99.0.0/g\" \"$file\"
            ! deploy/release version 2>said || die \"$file may name another version\"
            grep -F \"$file\" said
            cp kept \"$file\"
        done";
    shell(script, &[]).map(drop)
}
