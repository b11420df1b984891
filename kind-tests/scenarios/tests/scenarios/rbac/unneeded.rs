//! Rights that Gardener grants and that are never used, or hardly ever.

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::gardener::{seed_access, shoot_access, weeder_access};
use testbed::page::metrics;
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, scenario};

use super::rights::without;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::{ETCD, Plane, State};
use crate::{DOWN, UP};

/// Takes these away from the roles of these manifests: by resource, then verbs.
async fn strip(api: &testbed::KubeApi, granted: Vec<(String, Value)>, unneeded: &[(&str, &[&str])]) -> Result<()> {
    for (collection, object) in granted {
        if object["rules"].is_array() {
            let rules =
                unneeded.iter().fold(object["rules"].clone(), |rules, (resource, verbs)| without(&rules, resource, verbs));
            api.replace(&format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap_or_default()), "/rules", &rules)
                .await?;
        }
    }
    Ok(())
}

#[test]
fn a_prober_does_without_what_it_never_uses() -> Result<()> {
    const ALL: [&str; 5] = ["get", "list", "watch", "update", "patch"];
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "unneeded", ShootPlan::default()).await?;
        let on_seed: [(&str, &[&str]); 6] = [
            ("clusters", &["get"]),
            ("namespaces", &["get"]),
            ("machines", &["get"]),
            ("deployments", &["update"]),
            ("deployments/scale", &ALL),
            ("events", &["get", "update"]),
        ];
        strip(seed.api(), seed_access(), &on_seed).await?;
        strip(shoot.plane.api(), shoot_access(), &[("nodes", &["get"]), ("leases", &["get"])]).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        // Somebody writes while the watch has not told of it yet: such a conflict is the only reason to get a Deployment, and
        // any order of the two is fine here.
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        ensure!(metrics(prober.log_file()).await?.value("dwd_events_lost_total")? == 0.0);
        ensure!(prober.terminate().await?.success());
        // The end of the scenario checks that nothing was forbidden.
        shoot.end().await
    })
}

#[test]
fn a_prober_that_may_not_get_secrets_waits_for_the_watch_when_its_credentials_are_refused() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "no-get", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        strip(seed.api(), seed_access(), &[("secrets", &["get"])]).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(2).await?;
        let begin = shoot.history().len();
        shoot.revoke_tokens().await?;
        shoot
            .eventually("credentials that cannot be read again", PATIENCE, async || {
                let told = prober.log("probe not complete");
                ensure!(told.iter().any(|line| line["category"] == "seed_unknown"), "{told:?}");
                Ok(())
            })
            .await?;
        shoot.untouched_since(begin)?;
        shoot.renew_secret().await?;
        shoot.after_probes(2).await?;
        shoot.end().await
    })
}

#[test]
fn a_weeder_does_without_what_it_never_uses() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let unneeded: [(&str, &[&str]); 3] = [("pods", &["get"]), ("endpointslices", &["get"]), ("events", &["get", "update"])];
        strip(ground.seed.api(), weeder_access(), &unneeded).await?;
        let weeder = ground.weeder(&[]).await?;
        weeder.leads().await?;
        ground.watched().await?;
        let plane = Plane::on(&ground, "unneeded", 1).await?;
        plane.all("main", State::NotReady).await?;
        plane.all("apiserver", State::Crashing).await?;
        plane.service(ETCD, false).await?;
        weeder.rests().await?;
        let servers = plane.pods("apiserver").await?;
        plane.all("main", State::Ready).await?;
        plane.replaced("apiserver", &servers).await?;
        ensure!(weeder.agent.terminate().await?.success());
        plane.end(1).await
    })
}
