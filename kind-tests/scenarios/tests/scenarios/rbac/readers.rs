//! Agents that may not list or watch one of the resources that they read. All run side by side: none has anything to write.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use testbed::gardener::{seed_access, weeder_access};
use testbed::log::lines;
use testbed::page::{metrics, page};
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, eventually, scenario};

use super::rights::Rights;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;

/// A resource that the prober reads on the seed, with what `/readyz` says of it, and the series that tells of its absence.
const READ: [(&str, Option<&str>, &str); 5] = [
    ("clusters", Some("Clusters are not known"), ""),
    ("machines", Some("Machines are not known"), "dwd_probes_total{stage=\"machines\",result=\"seed_unknown\"}"),
    ("secrets", Some("Secrets are not known"), "dwd_probes_total{stage=\"kubeconfig\",result=\"seed_unknown\"}"),
    ("deployments", None, "dwd_probes_total{stage=\"nodes\",result=\"complete\"}"),
    ("namespaces", None, "dwd_probes_total{stage=\"leases\",result=\"complete\"}"),
];

/// The log says which resource may not be listed or watched.
fn is_told(log: &Path, verb: &str, resource: &str) -> Result<()> {
    let forbidden = format!("cannot {verb} resource");
    let told = lines(log, &forbidden);
    let named = |line: &serde_json::Value| {
        line.to_string().contains(&format!("resource \\\\\\\"{resource}"))
            || line["error"].as_str().is_some_and(|error| error.contains(&format!("cannot {verb} resource \"{resource}\"")))
    };
    ensure!(told.iter().any(named), "no word of {verb} {resource}: {told:?}");
    Ok(())
}

/// The flags of an agent with this token that leads at once.
fn flags(seed: &Seed, name: &str, token: &str) -> Result<[String; 2]> {
    let kubeconfig = seed.folder().join(name);
    std::fs::write(&kubeconfig, seed.plane().kubeconfig(&seed.plane().url(), token))?;
    Ok(["--enable-leader-election=false".into(), format!("--kubeconfig={}", kubeconfig.display())])
}

/// A prober by this name that may not do one thing with one resource, and has said so.
async fn prober_without(rights: &Rights<'_>, seed: &Seed, name: &str, verb: &str, resource: &str) -> Result<Prober> {
    let token = rights.somebody_without(name, resource, &[verb]).await?;
    let args = flags(seed, name, &token)?.into();
    let prober = Prober::start(seed, ProberConfig { args, ..ProberConfig::default() }).await?;
    let told = eventually("it is told", PATIENCE, async || is_told(prober.log_file(), verb, resource)).await;
    told.with_context(|| prober.tail(20))?;
    Ok(prober)
}

/// Gives an agent by this name all the rights that it should have.
async fn grant(rights: &Rights<'_>, name: &str) -> Result<()> {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
    let (_, role) = &rights.granted.iter().find(|(_, object)| object["kind"] == "ClusterRole").context("a role")?;
    rights.api.replace(&path, "/rules", &role["rules"]).await
}

/// Waits until `/readyz` says this.
async fn ready(log: &Path, status: u16, word: &str) -> Result<()> {
    eventually(&format!("/readyz says {status} {word}"), PATIENCE, async || {
        let (said, body) = page(log, "/readyz").await?;
        ensure!(said == status && body.contains(word), "{said}: {body}");
        Ok(())
    })
    .await
}

async fn counted(log: &Path, series: &str) -> Result<()> {
    eventually(series, PATIENCE, async || {
        let value = metrics(log).await?.value(series)?;
        ensure!(value >= 1.0, "{value}");
        Ok(())
    })
    .await
}

#[test]
fn what_a_prober_may_not_list_it_does_not_know_and_says_so() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "unlisted", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let rights = Rights { api: seed.api(), granted: seed_access() };
        let begin = shoot.history().len();
        let checks = READ.map(async |(resource, unready, series)| {
            let name = format!("lists-no-{resource}");
            let prober = prober_without(&rights, &seed, &name, "list", resource).await?;
            let log = prober.log_file();
            match unready {
                Some(word) => ready(log, 500, word).await?,
                None => ready(log, 200, "ok").await?,
            }
            eventually("dwd_seed_known", PATIENCE, async || {
                let shown = metrics(log).await?.value("dwd_seed_known")?;
                ensure!(shown == 0.0, "{resource}: {shown}");
                Ok(())
            })
            .await?;
            if !series.is_empty() {
                counted(log, series).await?;
            }
            let probed = metrics(log).await?.value("dwd_shoots{state=\"probed\"}").unwrap_or_default();
            ensure!((probed == 1.0) == (resource != "clusters"), "{resource}: {probed}");

            // Once it may, it goes on by itself.
            grant(&rights, &name).await?;
            ready(log, 200, "ok").await?;
            counted(log, "dwd_probes_total{stage=\"leases\",result=\"complete\"}").await
        });
        try_join_all(checks).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn what_a_prober_may_not_watch_it_lists_again_and_again_and_says_so() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "unwatched", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let rights = Rights { api: seed.api(), granted: seed_access() };
        let begin = shoot.history().len();
        let checks = READ.map(async |(resource, ..)| {
            let name = format!("watches-no-{resource}");
            let prober = prober_without(&rights, &seed, &name, "watch", resource).await?;
            let log = prober.log_file();
            ready(log, 200, "ok").await?;
            counted(log, "dwd_probes_total{stage=\"leases\",result=\"complete\"}").await
        });
        try_join_all(checks).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn what_a_weeder_may_not_list_or_watch_it_says() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let rights = Rights { api: ground.seed.api(), granted: weeder_access() };
        let checks = ["pods", "endpointslices"].map(async |resource| {
            for verb in ["list", "watch"] {
                let name = format!("weeder-no-{verb}-{resource}");
                let token = rights.somebody_without(&name, resource, &[verb]).await?;
                let flags = flags(&ground.seed, &name, &token)?;
                let weeder = ground.weeder(&flags.each_ref().map(String::as_str)).await?;
                eventually("it is told", PATIENCE, async || is_told(&weeder.log, verb, resource)).await?;
                counted(&weeder.log, &format!("dwd_weeder_watch_restarts_total{{resource=\"{resource}\"}}")).await?;
                if verb == "list" {
                    ready(&weeder.log, 500, "have not been listed yet").await?;
                } else {
                    ready(&weeder.log, 200, "ok").await?;
                }
                grant(&rights, &name).await?;
                ready(&weeder.log, 200, "ok").await?;
            }
            anyhow::Ok(())
        });
        try_join_all(checks).await?;
        Ok(())
    })
}
