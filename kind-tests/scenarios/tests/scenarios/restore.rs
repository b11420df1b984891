//! `restore`, by which a person brings back what is held down, beside a prober that would not.

use std::process::{Output, Stdio};

use anyhow::{Result, ensure};
use testbed::agent::binary;
use testbed::gardener::PAUSE;
use testbed::{PATIENCE, ProberConfig, ShootCluster, ShootPlan, scenario, secrets};
use tokio::process::Command;
use tokio::time::timeout;

use crate::{DOWN, UP, came_back_in_order, end_of_outage, goes_down, healthy};

/// Runs `restore` for a shoot, as the seed's administrator.
async fn restore(shoot: &ShootCluster, words: &[&str]) -> Result<Output> {
    let file = |end: &str| {
        shoot
            .seed
            .folder()
            .join(format!("{}.{end}", shoot.namespace))
    };
    std::fs::write(file("kubeconfig"), shoot.seed.plane().admin_kubeconfig())?;
    std::fs::write(file("yaml"), ProberConfig::default().text())?;
    let mut command = Command::new(binary()?);
    command
        .arg("restore")
        .arg(&shoot.namespace)
        .args(words)
        .arg("--kubeconfig")
        .arg(file("kubeconfig"));
    command
        .arg("--config-file")
        .arg(file("yaml"))
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await??;
    for said in [&output.stdout, &output.stderr] {
        secrets::all().search("what restore says", said);
    }
    Ok(output)
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|said| String::from_utf8_lossy(said).into_owned())
        .concat()
}

#[test]
fn forced_it_pauses_first_so_that_a_prober_at_work_leaves_what_came_back() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "forced", ShootPlan::default()).await?;
        goes_down(&shoot).await?;
        let begin = shoot.history().len();
        let forced = restore(&shoot, &["--force", "--yes"]).await?;
        ensure!(
            forced.status.success() && said(&forced).contains(&format!("{PAUSE}-")),
            "{forced:?}"
        );
        shoot.free_at(&UP).await?;
        came_back_in_order(&shoot, begin)?;
        let restored = shoot.history().len();
        shoot.after_probes(3).await?;
        shoot.untouched_since(restored)?;

        // It was the pause that kept the prober from it.
        shoot.seed.annotate(&shoot.namespace, PAUSE, None).await?;
        shoot.held_down(&DOWN).await?;
        end_of_outage(shoot).await
    })
}
