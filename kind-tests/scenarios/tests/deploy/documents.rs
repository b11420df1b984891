//! Releases are what they say.

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::objects::items;

use crate::tools::shell;

#[test]
fn release_is_a_kubectl_plugin() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let variables = [("OUT", folder.path().to_str().context("UTF-8")?)];
    // The same programs make the same archives.
    let pack = "for architecture in amd64 arm64; do
            printf '#!/bin/sh\necho %s\n' $architecture >\"$OUT/dependency-watchdog-linux-$architecture\"
        done
        deploy/release krew \"$OUT\" https://git.example.org/dwd
        cp \"$OUT/dependency-watchdog.krew.yaml\" \"$WORK\"
        deploy/release krew \"$OUT\" https://git.example.org/dwd
        cmp \"$OUT/dependency-watchdog.krew.yaml\" \"$WORK/dependency-watchdog.krew.yaml\"
        cat \"$OUT/dependency-watchdog.krew.yaml\"";
    let plugin: Value = serde_saphyr::from_str(&shell(pack, &variables)?)?;
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(plugin["spec"]["version"], version);
    let release = format!("https://git.example.org/dwd/releases/download/{version}/");
    let mut architectures = Vec::new();
    for platform in items(&plugin["spec"]["platforms"]) {
        let text = |place: &str| {
            platform
                .pointer(place)
                .and_then(Value::as_str)
                .context("no text")
        };
        let (uri, sum, program) = (text("/uri")?, text("/sha256")?, text("/bin")?);
        let archive = uri.strip_prefix(&release).context(uri.to_owned())?;
        // krew wants a licence in each.
        let unpack = "echo \"$SUM $OUT/$ARCHIVE\" | sha256sum --check --quiet
            tar -xzf \"$OUT/$ARCHIVE\" -C \"$WORK\"
            test -f \"$WORK/LICENSE\"
            \"$WORK/$BIN\"";
        let variables = [
            variables[0],
            ("SUM", sum),
            ("ARCHIVE", archive),
            ("BIN", program),
        ];
        let printed = shell(unpack, &variables)?;
        assert_eq!(printed.trim(), text("/selector/matchLabels/arch")?);
        architectures.push(printed);
    }
    assert_eq!(architectures, ["amd64\n", "arm64\n"]);
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
