//! Agents that lose one right after the other while they work.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::gardener::{GARDEN, seed_access, shoot_access, weeder_access};
use testbed::shoot::KCM;
use testbed::{Prober, SeedCluster, ShootCluster, ShootPlan, eventually, scenario};

use super::rights::Rights;
use crate::election::{ends_with_1, leading};
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::{Plane, PodPhase};
use crate::{DOWN, LEASES, QUICK, UP, alone, end_alone, logs, shows, with_args};

/// How many Events in garden have this reason.
async fn events(seed: &SeedCluster, reason: &str) -> Result<usize> {
    let events = seed
        .api()
        .get(&format!("/api/v1/namespaces/{GARDEN}/events"))
        .await?;
    Ok(events["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|event| event["reason"] == reason)
        .count())
}

#[test]
fn a_prober_that_loses_a_right_says_so_and_goes_on_once_it_has_it_again() -> Result<()> {
    scenario(async |bed| {
        let plan = ShootPlan {
            forbidden: true,
            ..ShootPlan::default()
        };
        let (shoot, mut prober) = alone(bed, "rights", plan, with_args(&QUICK)).await?;
        let seed = shoot.seed.clone();
        let on_seed = Rights {
            api: seed.api(),
            granted: seed_access(),
        };
        let on_shoot = Rights {
            api: shoot.plane.api(),
            granted: shoot_access(),
        };
        let counted = async |series: &str| shows(prober.log_file(), series, 1.0..).await;
        let begin = shoot.history().len();

        // Secrets: new credentials are those that the watch brings.
        on_seed.without("secrets", &["get"]).await?;
        shoot.revoke_tokens().await?;
        logs(
            &prober,
            "probe not complete",
            "\"category\":\"seed_unknown\"",
        )
        .await?;
        shoot.renew_secret().await?;
        shoot.after_probes(2).await?;

        // The shoot: leases, then nodes, which are asked for in an outage only. What is not known
        // is no outage.
        on_shoot.without("leases", &["list"]).await?;
        counted("dwd_probes_total{stage=\"leases\",result=\"forbidden\"}").await?;
        logs(&prober, "probe not complete", "\"stage\":\"leases\"").await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(Duration::from_secs(12)).await?;
        shoot.untouched_since(begin)?;
        on_seed.without("deployments", &["patch"]).await?;
        on_shoot.without("nodes", &["list"]).await?;
        counted("dwd_probes_total{stage=\"nodes\",result=\"forbidden\"}").await?;
        shoot.untouched_since(begin)?;

        // The seed: writes.
        on_shoot.all().await?;
        let refused = format!(
            "dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"forbidden\"}}"
        );
        counted(&refused).await?;
        logs(
            &prober,
            "resource cannot be scaled",
            "cannot patch resource",
        )
        .await?;
        eventually("an Event", async || {
            ensure!(events(&seed, "ScalingFailed").await? > 0);
            Ok(())
        })
        .await?;
        shoot.untouched_since(begin)?;
        on_seed.all().await?;
        shoot.held_down(&DOWN).await?;

        // Events: what is done does not depend on them.
        on_seed.without("events", &["create", "patch"]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        counted("dwd_events_lost_total").await?;
        logs(&prober, "Event could not be written", "is forbidden").await?;

        // The Lease: whoever cannot renew it ends.
        on_seed.without("leases", &["update"]).await?;
        ends_with_1(&mut prober).await?;
        logs(
            &prober,
            "Lease could not be renewed",
            "cannot update resource",
        )
        .await?;
        on_seed.all().await?;
        end_alone(shoot, prober).await
    })
}

#[test]
fn a_prober_that_may_not_take_the_lease_waits_and_says_so() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(
            bed,
            &seed,
            "lease-rights",
            ShootPlan {
                forbidden: true,
                ..ShootPlan::default()
            },
        )
        .await?;
        let rights = Rights {
            api: seed.api(),
            granted: seed_access(),
        };
        let mut last = None;
        for verb in ["create", "get"] {
            drop(last.take());
            seed.api()
                .delete(&format!("{LEASES}/dwd-prober-leader-election"))
                .await?;
            rights.without("leases", &[verb]).await?;
            let prober = Prober::start(&seed, with_args(&QUICK)).await?;
            logs(
                &prober,
                "Lease cannot be read or written",
                &format!("cannot {verb} resource"),
            )
            .await?;
            // It probes without leading.
            shoot.after_probes(1).await?;
            rights.all().await?;
            leading(&prober).await?;
            last = Some(prober);
        }
        // Without a watch of it a waiting replica looks in the rhythm of its retry period.
        rights.without("leases", &["watch"]).await?;
        let second = Prober::start(&seed, with_args(&QUICK)).await?;
        let watches = async || {
            let asked = seed.asked();
            ensure!(asked.iter().any(|asked| asked.verb == "watch"
                && asked.resource == "leases"
                && asked.code == 403));
            Ok(())
        };
        eventually("a refused watch", watches).await?;
        last.context("the leader")?.terminate().await?;
        leading(&second).await?;
        rights.all().await?;
        end_alone(shoot, second).await
    })
}

#[test]
fn a_weeder_that_may_not_delete_says_so_and_deletes_in_the_same_window_once_it_may() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let seed = ground.seed.clone();
        let rights = Rights {
            api: seed.api(),
            granted: weeder_access(),
        };
        let weeder = ground.leader(&[]).await?;
        let plane = Plane::on(&ground, "rights", 1).await?;
        rights.without("pods", &["delete"]).await?;
        let servers = plane.outage(None).await?;
        plane.all("main", PodPhase::Ready).await?;
        shows(
            weeder.log_file(),
            "dwd_weeder_deletions_total{result=\"forbidden\"}",
            1.0..,
        )
        .await?;
        eventually("a refused deletion", async || {
            let lines = weeder.log("pod could not be deleted");
            ensure!(
                lines
                    .iter()
                    .any(|line| line["result"] == "forbidden" && line["level"] == "error"),
                "{lines:?}"
            );
            Ok(())
        })
        .await?;
        let missing = "the right to delete pods is missing in all namespaces";
        eventually("it says that the right is missing", async || {
            let said = weeder.log(missing).len();
            ensure!(said == 1, "said {said} times");
            Ok(())
        })
        .await?;
        ensure!(plane.pods("apiserver").await? == servers);
        rights.all().await?;
        // No pod changes and no Service recovers: it tries again by itself, seldom.
        plane.replaced("apiserver", &servers).await?;
        let answers: Vec<u64> = plane.answers().into_iter().map(|(_, code)| code).collect();
        ensure!(
            answers.ends_with(&[403, 200]) && answers.len() <= 4,
            "{answers:?}"
        );
        ensure!(weeder.log(missing).len() == 1, "once is enough");
        plane.clear(answers.len()).await
    })
}
