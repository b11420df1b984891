//! Agents that lose one right after the other while they work.

use anyhow::{Context, Result, ensure};
use testbed::gardener::{GARDEN, seed_access, shoot_access, weeder_access};
use testbed::page::metrics;
use testbed::shoot::{KCM, PATIENCE};
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, eventually, scenario};

use super::rights::Rights;
use crate::election::QUICK;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::{ETCD, Plane, State};
use crate::{DOWN, UP};

fn config() -> ProberConfig {
    ProberConfig { args: QUICK.map(Into::into).into(), ..ProberConfig::default() }
}

/// Waits until a series is at least 1.
async fn counted(prober: &Prober, series: &str) -> Result<()> {
    eventually(series, PATIENCE, async || {
        let value = metrics(prober.log_file()).await?.value(series)?;
        ensure!(value >= 1.0, "{value}");
        Ok(())
    })
    .await
}

/// Waits until a line of the log has this message and this in its error or category.
async fn told(prober: &Prober, message: &str, word: &str) -> Result<()> {
    eventually(&format!("{message}: {word}"), PATIENCE, async || {
        let lines = prober.log(message);
        ensure!(lines.iter().any(|line| line.to_string().contains(word)), "{lines:?}\n{}", prober.tail(5));
        Ok(())
    })
    .await
}

/// How many Events in garden have this reason.
async fn events(seed: &Seed, reason: &str) -> Result<usize> {
    let events = seed.api().get(&format!("/api/v1/namespaces/{GARDEN}/events")).await?;
    Ok(events["items"].as_array().into_iter().flatten().filter(|event| event["reason"] == reason).count())
}

#[test]
fn a_prober_that_loses_a_right_says_so_and_goes_on_once_it_has_it_again() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "rights", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let on_seed = Rights { api: seed.api(), granted: seed_access() };
        let on_shoot = Rights { api: shoot.plane.api(), granted: shoot_access() };
        let mut prober = Prober::start(&seed, config()).await?;
        shoot.after_probes(2).await?;
        let begin = shoot.history().len();

        // The shoot: leases, then nodes, which are asked for in an outage only.
        on_shoot.without(true, "leases", &["list"]).await?;
        counted(&prober, "dwd_probes_total{stage=\"leases\",result=\"forbidden\"}").await?;
        told(&prober, "probe not complete", "\"stage\":\"leases\"").await?;
        on_shoot.without(false, "nodes", &["list"]).await?;
        // A probe only fails by the nodes when it needs them.
        on_seed.without(false, "deployments", &["patch"]).await?;
        shoot.nodes.cut_all();
        counted(&prober, "dwd_probes_total{stage=\"nodes\",result=\"forbidden\"}").await?;
        shoot.untouched_since(begin)?;

        // The seed: writes.
        on_shoot.all().await?;
        let refused =
            format!("dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"forbidden\"}}");
        counted(&prober, &refused).await?;
        told(&prober, "resource cannot be scaled", "cannot patch resource").await?;
        eventually("an Event", PATIENCE, async || {
            ensure!(events(&seed, "ScalingFailed").await? > 0);
            Ok(())
        })
        .await?;
        shoot.untouched_since(begin)?;
        on_seed.all().await?;
        shoot.held_down(&DOWN).await?;

        // Events: what is done does not depend on them.
        on_seed.without(true, "events", &["create", "patch"]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        counted(&prober, "dwd_events_lost_total").await?;
        told(&prober, "Event could not be written", "is forbidden").await?;

        // The Lease: whoever cannot renew it ends.
        on_seed.without(true, "leases", &["update"]).await?;
        let status = eventually("the prober ends", PATIENCE, async || prober.ended()?.context("it runs")).await?;
        ensure!(status.code() == Some(1), "{status}");
        told(&prober, "Lease could not be renewed", "cannot update resource").await?;
        on_seed.all().await?;
        shoot.end().await
    })
}

#[test]
fn a_prober_that_may_not_take_the_lease_waits_and_says_so() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "lease-rights", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let rights = Rights { api: seed.api(), granted: seed_access() };
        let leads = async |prober: &Prober| {
            eventually("it leads", PATIENCE, async || {
                ensure!(prober.log("\"leading\"").iter().any(|line| line["msg"] == "leading"), "{}", prober.tail(5));
                Ok(())
            })
            .await
        };
        let mut last = None;
        for verb in ["create", "get"] {
            drop(last.take());
            seed.api()
                .delete(&format!("/apis/coordination.k8s.io/v1/namespaces/{GARDEN}/leases/dwd-prober-leader-election"))
                .await?;
            rights.without(true, "leases", &[verb]).await?;
            let prober = Prober::start(&seed, config()).await?;
            told(&prober, "Lease cannot be read or written", &format!("cannot {verb} resource")).await?;
            eventually("it probes without leading", PATIENCE, async || {
                ensure!(shoot.probes() > 0);
                Ok(())
            })
            .await?;
            rights.all().await?;
            leads(&prober).await?;
            last = Some(prober);
        }
        // Without a watch of it a waiting replica looks in the rhythm of its retry period.
        rights.without(true, "leases", &["watch"]).await?;
        let second = Prober::start(&seed, config()).await?;
        let watches = async || {
            let asked = seed.asked();
            ensure!(asked.iter().any(|asked| asked.verb == "watch" && asked.resource == "leases" && asked.code == 403));
            Ok(())
        };
        eventually("a refused watch", PATIENCE, watches).await?;
        last.context("the leader")?.terminate().await?;
        leads(&second).await?;
        shoot.end().await
    })
}

#[test]
fn a_weeder_that_may_not_delete_says_so_and_deletes_in_the_same_window_once_it_may() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let rights = Rights { api: ground.seed.api(), granted: weeder_access() };
        let weeder = ground.weeder(&[]).await?;
        weeder.leads().await?;
        ground.watched().await?;
        let plane = Plane::on(&ground, "rights", 1).await?;
        rights.without(false, "pods", &["delete"]).await?;
        plane.all("main", State::NotReady).await?;
        plane.all("apiserver", State::Crashing).await?;
        plane.service(ETCD, false).await?;
        let servers = plane.pods("apiserver").await?;
        plane.all("main", State::Ready).await?;
        eventually("a refused deletion", PATIENCE, async || {
            let refused = metrics(&weeder.log).await?.value("dwd_weeder_deletions_total{result=\"forbidden\"}")?;
            ensure!(refused >= 1.0, "{refused}");
            let told = testbed::log::lines(&weeder.log, "pod could not be deleted");
            ensure!(told.iter().any(|line| line["result"] == "forbidden" && line["level"] == "error"), "{told:?}");
            Ok(())
        })
        .await?;
        ensure!(plane.pods("apiserver").await? == servers);
        rights.all().await?;
        // No pod changes and no Service recovers: it tries again by itself, seldom.
        plane.replaced("apiserver", &servers).await?;
        let answers: Vec<u64> = plane.answers().into_iter().map(|(_, code)| code).collect();
        ensure!(answers.ends_with(&[403, 200]) && answers.len() <= 4, "{answers:?}");
        plane.clear(answers.len()).await
    })
}
