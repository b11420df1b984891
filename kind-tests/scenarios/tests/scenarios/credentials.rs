//! The Secret with the shoot's kubeconfig: missing, wrong, malicious, renewed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::Authority;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::gardener::PROBE;
use testbed::log::lines;
use testbed::{ShootCluster, ShootPlan, scenario};

use crate::{end_of_outage, goes_down, shoot};

/// Twice the grace: every lease has been expired for long.
const LONG: Duration = Duration::from_secs(12);
/// Several probe intervals.
const QUIET: Duration = Duration::from_secs(3);

/// Data of a Secret, each with the category of the probe's failure and what the log says of it. Two
/// in a row differ in the category: the log has a line only where it changes.
async fn unusable(
    shoot: &ShootCluster,
    exec: &str,
) -> Result<[(Option<Value>, &'static str, &'static str); 7]> {
    let encoded = |kubeconfig: &str| Some(json!({"kubeconfig": STANDARD.encode(kubeconfig)}));
    let with_token = |token: &str| shoot.kubeconfig(shoot.proxy.address(), token);
    let good = shoot.plane.api().token("kube-system", PROBE).await?;
    let stranger = Authority::new()?.pem();
    let untrusted = testbed::kube_api::kubeconfig(
        &format!("https://{}", shoot.proxy.address()),
        &stranger,
        &good,
    );
    let program = format!(
        "exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: touch\n      args: [{exec}]\n"
    );
    // The file holds a good token: using it would look like success.
    let file = testbed::reaper::folder("token")?.join("token");
    std::fs::write(&file, &good)?;
    Ok([
        (Some(json!({"other": ""})), "kubeconfig", "no key"),
        (
            encoded(&with_token("nobody-knows-this-token")),
            "unauthorized",
            "",
        ),
        (encoded("{{ not: [yaml"), "kubeconfig", "not YAML"),
        (encoded(&untrusted), "tls", ""),
        (
            encoded(&with_token("x").replace("token: x", &program)),
            "kubeconfig",
            "user.exec is refused",
        ),
        (None, "no_secret", ""),
        (
            encoded(
                &with_token("x").replace("token: x", &format!("tokenFile: {}", file.display())),
            ),
            "kubeconfig",
            "user.tokenFile is refused",
        ),
    ])
}

/// The failures of this shoot's probes that the log has.
pub fn failures(shoot: &ShootCluster) -> Vec<Value> {
    let mut failures = lines(&shoot.seed.log(), "probe not complete");
    failures.retain(|line| line.to_string().contains(&shoot.namespace));
    failures
}

/// Waits until the last one is such a one.
async fn fails(shoot: &ShootCluster, category: &str, word: &str) -> Result<()> {
    shoot
        .eventually(
            &format!("a failure of the category {category}: {word}"),
            async || {
                let failures = failures(shoot);
                let last = failures.last().context("no failure")?;
                ensure!(
                    last["category"] == category
                        && last["error"]
                            .as_str()
                            .is_some_and(|error| error.contains(word)),
                    "{last}"
                );
                Ok(())
            },
        )
        .await
}

#[test]
fn a_secret_that_is_missing_or_cannot_be_used_changes_nothing_and_a_good_one_is_used() -> Result<()>
{
    scenario(async |bed| {
        let shoot = shoot(
            bed,
            "secrets",
            ShootPlan {
                secret: false,
                ..ShootPlan::default()
            },
        )
        .await?;
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        shoot.leases_older_than(LONG).await?;
        fails(&shoot, "no_secret", "").await?;
        ensure!(shoot.proxy.connections() == 0);
        let trace = testbed::reaper::folder("exec")?.join("it-ran");
        for (data, category, word) in unusable(&shoot, &trace.display().to_string()).await? {
            match data {
                Some(data) => shoot.write_secret_data(data).await?,
                None => shoot.delete_secret().await?,
            }
            fails(&shoot, category, word).await?;
        }
        shoot.silent_for(QUIET).await?;
        shoot.untouched_since(begin)?;
        ensure!(
            bed.is_given() || shoot.probes() == 0,
            "leases have been listed\n{}",
            shoot.story()
        );
        ensure!(!trace.exists(), "a Secret has started a process");
        shoot.renew_secret().await?;
        goes_down(&shoot).await?;

        // The good one goes away in the outage, and its end is not seen before it is back.
        shoot.delete_secret().await?;
        shoot.silent_for(QUIET).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.silent_for(QUIET).await?;
        shoot.untouched_since(begin)?;
        shoot.renew_secret().await?;
        end_of_outage(shoot).await
    })
}
