//! What the process says to bad input, and with which exit code. No control plane is needed for that.

use std::path::PathBuf;
use std::process::Output;

use anyhow::{Result, ensure};
use testbed::{agent::binary, leash};
use tokio::process::Command;

async fn run(args: &[&str]) -> Result<Output> {
    Ok(Command::new(binary()?).args(args).env_remove("KUBECONFIG").output().await?)
}

fn config(text: &str) -> Result<(PathBuf, String)> {
    let path = leash::folder("config")?.join("dep-config.yaml");
    std::fs::write(&path, text)?;
    let flag = format!("--config-file={}", path.display());
    Ok((path, flag))
}

#[test]
fn a_bad_config_file_is_told_in_full_with_file_field_and_value() -> Result<()> {
    testbed::scenario(async |_| {
        let (path, flag) = config(
            "kubeConfigSecretName: ''\nprobeInterval: 30\nnodeLeaseFailureFraction: 1.5\ndependentResourceInfos:\n\
             - ref: {kind: Deployment, name: a, apiVersion: apps/v/1}\n",
        )?;
        let output = run(&["prober", &flag]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1), "{:?}: {said}", output.status);
        ensure!(said.contains(&path.display().to_string()), "{said}");
        ensure!(said.contains("probeInterval") && said.contains("30"), "{said}");
        Ok(())
    })
}

#[test]
fn several_bad_values_are_told_at_once() -> Result<()> {
    testbed::scenario(async |_| {
        let (_, flag) = config(
            "kubeConfigSecretName: ' '\nnodeLeaseFailureFraction: 1.5\ndependentResourceInfos:\n\
             - ref: {kind: Deployment, name: a, apiVersion: apps/v/1}\n",
        )?;
        let output = run(&["prober", &flag]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1), "{:?}: {said}", output.status);
        for field in ["kubeConfigSecretName", "nodeLeaseFailureFraction", "1.5", "apps/v/1", "scaleUp", "scaleDown"] {
            ensure!(said.contains(field), "nothing about {field}: {said}");
        }
        Ok(())
    })
}

#[test]
fn a_missing_config_file_ends_the_process() -> Result<()> {
    testbed::scenario(async |_| {
        let output = run(&["prober", "--config-file=/nowhere/dep-config.yaml"]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1) && said.contains("/nowhere/dep-config.yaml"), "{said}");
        let output = run(&["prober"]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1) && said.contains("config-file"), "{said}");
        Ok(())
    })
}

#[test]
fn an_unknown_flag_is_one_line() -> Result<()> {
    testbed::scenario(async |_| {
        let output = run(&["prober", "--no-such-flag"]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(2), "{:?}: {said}", output.status);
        ensure!(said.trim().lines().count() == 1 && said.contains("no-such-flag"), "{said}");
        Ok(())
    })
}
