//! What the real binary serves: metrics, which are those that the document names, and health.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testbed::page::{Metrics, SERVED, metrics, page};
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, eventually, scenario};

use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::{DOWN, UP};

/// What the document says of an agent's metrics.
fn documented(agent: &str) -> Result<Metrics> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md"))?;
    let mut metrics = Metrics::default();
    let mut section = "";
    for line in text.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        if ![agent, "Both agents"].contains(&section) {
            continue;
        }
        let Some((series, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | ")) else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let kind = rest.split(' ').next().with_context(|| line.to_owned())?;
        metrics.types.insert(name.into(), kind.into());
        let labels: BTreeSet<_> = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()).collect();
        metrics.labels.insert(name.into(), labels.into_iter().map(Into::into).collect());
    }
    Ok(metrics)
}

/// What is served is what the document says, in names, types and labels.
fn as_documented(served: &Metrics, agent: &str) -> Result<()> {
    let mut documented = documented(agent)?;
    // Only a dry run has these.
    documented.types.remove("dwd_dry_run_writes_total");
    let differ = |a: &Metrics, b: &Metrics| -> Vec<_> {
        let those = a.types.iter().filter(|(name, kind)| b.types.get(*name) != Some(kind));
        those.map(|(name, kind)| format!("{name} {kind}")).collect()
    };
    let (unserved, unnamed) = (differ(&documented, served), differ(served, &documented));
    ensure!(
        unserved.is_empty() && unnamed.is_empty(),
        "documented and not served: {unserved:#?}, served and not documented: {unnamed:#?}"
    );
    for (name, labels) in &served.labels {
        ensure!(documented.labels.get(name) == Some(labels), "{name}: {labels:?} instead of {:?}", documented.labels.get(name));
    }
    Ok(())
}

/// Waits until a process passes a health check.
async fn passes(log: &Path, path: &str) -> Result<()> {
    eventually(&format!("{path} passes"), PATIENCE, async || {
        let (status, body) = page(log, path).await?;
        ensure!(status == 200 && body.ends_with("ok\n"), "{status}: {body}");
        Ok(())
    })
    .await
}

/// Waits until a process shows that it leads, or that it does not.
async fn shows_leadership(log: &Path, lease: &str, leads: bool) -> Result<()> {
    eventually(&format!("leadership is shown as {leads}"), PATIENCE, async || {
        let value = metrics(log).await?.value(&format!("leader_election_master_status{{name=\"{lease}\"}}"))?;
        ensure!(value == f64::from(u8::from(leads)), "{value}");
        Ok(())
    })
    .await
}

#[test]
fn the_prober_serves_the_metrics_of_the_document_and_its_health() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "instruments", ShootPlan::default()).await?;
        let config = || ProberConfig { args: SERVED.map(Into::into).into(), ..ProberConfig::default() };
        let lease = "dwd-prober-leader-election";
        let mut with_shoots = config();
        with_shoots.args.push("--metrics-per-shoot".into());
        let first = Prober::start(&seed, with_shoots).await?;
        shows_leadership(first.log_file(), lease, true).await?;
        let second = Prober::start(&seed, config()).await?;
        shows_leadership(second.log_file(), lease, false).await?;
        for prober in [&first, &second] {
            passes(prober.log_file(), "/healthz").await?;
            passes(prober.log_file(), "/readyz").await?;
        }

        shoot.after_probes(2).await?;
        let value = async |series: &str| metrics(first.log_file()).await?.value(series);
        ensure!(value("dwd_shoots{state=\"probed\"}").await? == 1.0);
        ensure!(value("dwd_leases{state=\"candidate\"}").await? == 3.0);
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        let held = "dwd_held_down{kind=\"Deployment\",name=\"kube-controller-manager\"}";
        shoot
            .eventually("the metrics tell of it", PATIENCE, async || {
                let held = value(held).await?;
                ensure!(held == 1.0, "{held}");
                Ok(())
            })
            .await?;
        as_documented(&metrics(first.log_file()).await?, "Prober")?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot
            .eventually("the metrics tell of its end", PATIENCE, async || {
                let metrics = metrics(first.log_file()).await?;
                let held = metrics.values.get(held).copied().unwrap_or_default();
                ensure!(held == 0.0, "{held}");
                Ok(())
            })
            .await?;

        ensure!(first.terminate().await?.success());
        shows_leadership(second.log_file(), lease, true).await?;
        shoot.after_probes(2).await?;
        let names: Vec<_> = metrics(second.log_file()).await?.types.into_keys().collect();
        ensure!(names.iter().any(|name| name == "dwd_leases"), "{names:?}");
        ensure!(!names.iter().any(|name| name.starts_with("dwd_shoot_")), "shoots are told apart unasked: {names:?}");
        shoot.end().await
    })
}

#[test]
fn the_weeder_serves_the_metrics_of_the_document_and_its_health() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let lease = "dwd-weeder-leader-election";
        let first = ground.weeder(&[]).await?;
        shows_leadership(&first.log, lease, true).await?;
        let second = ground.weeder(&[]).await?;
        shows_leadership(&second.log, lease, false).await?;
        for weeder in [&first, &second] {
            passes(&weeder.log, "/healthz").await?;
            passes(&weeder.log, "/readyz").await?;
        }
        as_documented(&metrics(&first.log).await?, "Weeder")?;
        ensure!(first.agent.terminate().await?.success());
        shows_leadership(&second.log, lease, true).await?;
        passes(&second.log, "/readyz").await?;
        ground.lawful()
    })
}
