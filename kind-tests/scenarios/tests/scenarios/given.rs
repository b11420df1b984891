//! The scenarios on clusters that somebody else has started, known by their kubeconfigs alone.

use std::process::Stdio;

use anyhow::{Result, ensure};
use testbed::{PATIENCE, own_scenario};
use tokio::process::Command;
use tokio::time::timeout;

const SCENARIO: &str = "kinds::all_kinds_are_scaled";

#[test]
fn scenarios_run_on_given_clusters() -> Result<()> {
    own_scenario("it runs on given clusters itself", async |bed| {
        let (seed, shoot) = (bed.own_seed().await?, bed.lend().await?);
        let mut command = Command::new(std::env::current_exe()?);
        for (variable, plane) in [
            ("SEED_KUBECONFIG", seed.plane()),
            ("SHOOT_KUBECONFIG", &shoot),
        ] {
            let file = seed.folder().join(variable);
            std::fs::write(&file, plane.admin_kubeconfig())?;
            command.env(variable, file);
        }
        command
            .args(["--exact", SCENARIO])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let run = timeout(PATIENCE, command.output()).await??;
        let output = String::from_utf8_lossy(&run.stdout);
        ensure!(
            run.status.success() && output.contains("1 passed"),
            "{run:?}"
        );
        bed.give_back(shoot);
        Ok(())
    })
}
