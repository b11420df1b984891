//! The scenarios on clusters that somebody else has started, known by their kubeconfigs alone.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::scenario;

const SCENARIO: &str =
    "outage::an_outage_takes_all_to_zero_in_order_and_recovery_brings_them_back_in_order";

#[test]
fn scenarios_run_on_clusters_given_by_kubeconfig() -> Result<()> {
    if std::env::var_os("SEED_KUBECONFIG").is_some() {
        eprintln!("skipped: this process itself runs on given clusters");
        return Ok(());
    }
    scenario(async |bed| {
        let (seed, shoot) = (bed.own_seed().await?, bed.lend().await?);
        let folder = tempfile::tempdir()?;
        let (seed_file, shoot_file) = (folder.path().join("seed"), folder.path().join("shoot"));
        std::fs::write(&seed_file, seed.plane().admin_kubeconfig())?;
        std::fs::write(&shoot_file, shoot.admin_kubeconfig())?;
        let run = tokio::process::Command::new(std::env::current_exe()?)
            .args(["--exact", SCENARIO])
            .env("SEED_KUBECONFIG", seed_file)
            .env("SHOOT_KUBECONFIG", shoot_file)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let run = tokio::time::timeout(Duration::from_secs(180), run)
            .await
            .context("it takes too long")??;
        let output = format!(
            "{}{}",
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr)
        );
        ensure!(
            run.status.success() && output.contains("1 passed"),
            "{output}"
        );
        bed.give_back(shoot);
        Ok(())
    })
}
