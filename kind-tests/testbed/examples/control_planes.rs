//! Starts two control planes and keeps them until Ctrl-C: a seed and a shoot for scenarios that run against given clusters.
//!
//! ```text
//! cargo run -p testbed --example control_planes -- FOLDER
//! SEED_KUBECONFIG=FOLDER/seed SHOOT_KUBECONFIG=FOLDER/shoot cargo test -p scenarios --test scenarios
//! ```

use std::path::PathBuf;

use anyhow::{Context, Result};
use testbed::scenario;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("say in which folder to write the kubeconfigs")?);
    scenario(async |bed| {
        let (seed, shoot) = (bed.start_control_plane("seed").await?, bed.start_control_plane("shoot").await?);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("seed"), seed.admin_kubeconfig())?;
        std::fs::write(folder.join("shoot"), shoot.admin_kubeconfig())?;
        println!("{0}/seed and {0}/shoot are ready; Ctrl-C ends both clusters", folder.display());
        Ok(tokio::signal::ctrl_c().await?)
    })
}
