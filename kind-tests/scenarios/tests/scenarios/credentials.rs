//! The Secret with the shoot's kubeconfig: missing, renewed, wrong, malicious.

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::authority::Authority;
use testbed::{Bed, ShootPlan, scenario};

use crate::{DOWN, UP, healthy, shoot, through_an_outage};

/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);

#[test]
fn without_a_secret_nothing_happens_and_with_one_all_does() -> Result<()> {
    scenario(async |bed| {
        let shoot = shoot(bed, "no-secret", ShootPlan { secret: false, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        shoot.leases_older_than(LONG).await?;
        ensure!(shoot.relay.connections() == 0);
        shoot.untouched_since(begin)?;
        shoot.renew_secret().await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_secret_that_goes_away_in_an_outage_changes_nothing_until_it_is_back() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "secret-gone", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.delete_secret().await?;
        shoot.silent_for(Duration::from_secs(3)).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.silent_for(Duration::from_secs(3)).await?;
        shoot.untouched_since(begin)?;
        shoot.renew_secret().await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_renewed_token_is_used_and_the_old_one_forgotten() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "rotated", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        shoot.revoke_tokens().await?;
        shoot.renew_secret().await?;
        // The API server forgets within 10 s what it has accepted; after that only the new token is good.
        shoot.after_probes(12).await?;
        shoot.untouched_since(begin)?;
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

/// With this kubeconfig nothing is written in an outage; with the right one all is well again.
async fn harmless(bed: &'static Bed, name: &str, spoil: impl AsyncFnOnce(&testbed::Shoot) -> Result<Value>) -> Result<()> {
    let shoot = healthy(bed, name, ShootPlan::default()).await?;
    let data = spoil(&shoot).await?;
    shoot.write_secret_data(data).await?;
    let begin = shoot.history().len();
    let probes = shoot.probes();
    shoot.nodes.cut_all();
    shoot.leases_older_than(LONG).await?;
    shoot.untouched_since(begin)?;
    if !bed.is_given() {
        // The one under way when the Secret changed, and the interval before it, may have counted.
        ensure!(shoot.probes() <= probes + 2, "still probing\n{}", shoot.story());
    }
    shoot.renew_secret().await?;
    shoot.held_down(&DOWN).await?;
    shoot.nodes.heal_all();
    shoot.free_at(&UP).await?;
    shoot.end().await
}

fn encoded(kubeconfig: &str) -> Value {
    json!({"kubeconfig": STANDARD.encode(kubeconfig)})
}

#[test]
fn a_wrong_token_changes_nothing() -> Result<()> {
    scenario(async |bed| {
        harmless(bed, "wrong-token", async |shoot| {
            Ok(encoded(&shoot.kubeconfig(shoot.relay.address(), "nobody-knows-this-token")))
        })
        .await
    })
}

#[test]
fn an_untrusted_certificate_changes_nothing() -> Result<()> {
    scenario(async |bed| {
        harmless(bed, "untrusted", async |shoot| {
            let stranger = Authority::new()?.pem();
            let url = format!("https://{}", shoot.relay.address());
            let token = shoot.plane.api().token("kube-system", "dependency-watchdog-probe").await?;
            Ok(encoded(&testbed::kube_api::kubeconfig(&url, &stranger, &token)))
        })
        .await
    })
}

#[test]
fn a_secret_without_its_key_changes_nothing() -> Result<()> {
    scenario(async |bed| harmless(bed, "no-key", async |_| Ok(json!({"other": ""}))).await)
}

#[test]
fn a_kubeconfig_that_is_none_changes_nothing() -> Result<()> {
    scenario(async |bed| harmless(bed, "garbage", async |_| Ok(encoded("{{ not: [yaml"))).await)
}

#[test]
fn a_kubeconfig_cannot_run_a_command_here() -> Result<()> {
    scenario(async |bed| {
        let trace = testbed::leash::folder("exec")?.join("it-ran");
        harmless(bed, "exec", async |shoot| {
            let mut text = shoot.kubeconfig(shoot.relay.address(), "x");
            text.truncate(text.find("    token:").unwrap_or(text.len()));
            text.push_str(&format!(
                "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: touch\n      args: [{}]\n",
                trace.display()
            ));
            Ok(encoded(&text))
        })
        .await?;
        ensure!(!trace.exists(), "a Secret has started a process");
        Ok(())
    })
}

#[test]
fn a_kubeconfig_cannot_read_a_file_here() -> Result<()> {
    scenario(async |bed| {
        harmless(bed, "token-file", async |shoot| {
            // The file holds a good token: using it would look like success.
            let file = testbed::leash::folder("token")?.join("token");
            std::fs::write(&file, shoot.plane.api().token("kube-system", "dependency-watchdog-probe").await?)?;
            let text = shoot.kubeconfig(shoot.relay.address(), "x");
            Ok(encoded(&text.replace("token: x", &format!("tokenFile: {}", file.display()))))
        })
        .await
    })
}
