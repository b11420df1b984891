//! The images: the product's, and two that the suite makes for itself. No registry is asked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use testbed::reaper;

use crate::commands::shell;

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

/// The archive of the product's image, which `kind-tests/nodes/run` has built as operators do.
pub fn product() -> Result<PathBuf> {
    let folder = std::env::var_os("NODES_IMAGES")
        .context("NODES_IMAGES names no folder: make node-test runs this suite")?;
    Ok(Path::new(&folder).join("product.tar"))
}

/// An image with a shell, `nc` and `httpd`, which sleeps.
pub async fn tool() -> Result<PathBuf> {
    let fill = "mkdir bin; cp /usr/bin/busybox bin
        for name in sh date sleep true httpd nc; do ln -s busybox bin/$name; done";
    build(TOOL, fill, r#"["/bin/sleep", "infinity"]"#).await
}

/// An image of kube-controller-manager.
pub async fn controller_manager(programs: &Path) -> Result<PathBuf> {
    let fill = format!("cp {}/kube-controller-manager .", programs.display());
    build(CONTROLLER_MANAGER, &fill, r#"["/kube-controller-manager"]"#).await
}

/// The archive of an image whose root a script fills.
async fn build(name: &str, fill: &str, command: &str) -> Result<PathBuf> {
    let folder = reaper::folder("image")?;
    let place = folder.display();
    shell(&format!(
        "mkdir {place}/root; cd {place}/root
        {fill}
        printf 'FROM scratch\nCOPY . /\nENTRYPOINT %s\n' '{command}' > ../Containerfile
        export STORAGE_DRIVER=vfs
        buildah build --quiet --layers=false --file ../Containerfile --tag {name} .
        buildah push --quiet {name} oci-archive:{place}/image.tar:{name}"
    ))
    .await?;
    Ok(folder.join("image.tar"))
}
