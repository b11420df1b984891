//! The images: the product's, and two that the suite makes for itself. No registry is asked.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use testbed::reaper;
use tokio::process::Command;

use crate::commands::{run, said};

/// The image of pods that need no more than a shell; also of every pod's sandbox.
pub const TOOL: &str = "localhost/tool:1";
/// The image of kube-controller-manager.
pub const CONTROLLER_MANAGER: &str = "localhost/kube-controller-manager:1";
/// The product's, without its tag.
pub const PRODUCT: &str = "localhost/dependency-watchdog";

/// Where the repository is.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The archive of the product's image, which `kind-tests/nodes/run` has built as operators do, and
/// another of the same sources.
pub fn product() -> Result<[PathBuf; 2]> {
    let folder = std::env::var_os("NODES_IMAGES")
        .context("NODES_IMAGES names no folder: make node-test runs this suite")?;
    Ok(["product.tar", "again.tar"].map(|file| Path::new(&folder).join(file)))
}

/// The digest of the image in an archive.
pub async fn digest(archive: &Path) -> Result<String> {
    let archive = archive.display();
    let index = run(&format!(
        "tar --extract --to-stdout --file {archive} index.json"
    ))
    .await?;
    let index: serde_json::Value = serde_json::from_str(&index)?;
    Ok(index["manifests"][0]["digest"]
        .as_str()
        .context("no digest")?
        .into())
}

/// An image with a shell, `nc` and `httpd`, which sleeps.
pub async fn tool() -> Result<PathBuf> {
    let root = reaper::folder("tool")?;
    std::fs::create_dir(root.join("bin"))?;
    std::fs::copy("/usr/bin/busybox", root.join("bin/busybox"))?;
    for name in ["sh", "date", "sleep", "true", "httpd", "nc"] {
        symlink("busybox", root.join("bin").join(name))?;
    }
    build(TOOL, &root, r#"["/bin/sleep", "infinity"]"#).await
}

/// An image of kube-controller-manager.
pub async fn controller_manager(programs: &Path) -> Result<PathBuf> {
    let root = reaper::folder("kube-controller-manager")?;
    std::fs::copy(
        programs.join("kube-controller-manager"),
        root.join("kube-controller-manager"),
    )?;
    build(CONTROLLER_MANAGER, &root, r#"["/kube-controller-manager"]"#).await
}

async fn build(name: &str, root: &Path, command: &str) -> Result<PathBuf> {
    let folder = reaper::folder("image")?;
    let (file, archive) = (folder.join("Containerfile"), folder.join("image.tar"));
    std::fs::write(
        &file,
        format!("FROM scratch\nCOPY . /\nENTRYPOINT {command}\n"),
    )?;
    let buildah = async |words: String| {
        let mut command = Command::new("buildah");
        command.args(words.split(' ')).env("STORAGE_DRIVER", "vfs");
        said(&mut command).await
    };
    let [root, file, to] = [root, &file, &archive].map(Path::display);
    buildah(format!(
        "build --quiet --layers=false --file {file} --tag {name} {root}"
    ))
    .await?;
    buildah(format!("push --quiet {name} oci-archive:{to}:{name}")).await?;
    Ok(archive)
}
