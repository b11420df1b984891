//! What is scaled: what operators ignore, what others write.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::seed::{IGNORE, MEMORY};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootPlan, scenario};

use crate::{DOWN, UP, healthy};

#[test]
fn an_ignored_resource_is_not_scaled_in_either_direction() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "ignored", ShootPlan::default()).await?;
        shoot.annotate(KCM, IGNORE, Some("true")).await?;
        shoot.annotate(CA, IGNORE, Some("foo")).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(MCM, "1"), (CA, "1")]).await?;
        shoot.after_probes(2).await?;
        ensure!(
            shoot.dependent(KCM).await?.is_free_at(2),
            "{}",
            shoot.story()
        );

        // What is held down already loses the marker, keeps its memory and stays, also when the
        // outage is over.
        shoot.annotate(KCM, IGNORE, None).await?;
        shoot.held_down(&DOWN).await?;
        shoot.annotate(KCM, IGNORE, Some("1")).await?;
        let stays = async || {
            let state = shoot.dependent(KCM).await?;
            ensure!(
                state.marker.is_none()
                    && state.replicas == 0
                    && state.memory.as_deref() == Some("2"),
                "{state}"
            );
            anyhow::Ok(())
        };
        shoot.eventually("the marker is gone", stays).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(MCM, 1), (CA, 1)]).await?;
        shoot.after_probes(2).await?;
        stays().await?;
        shoot.annotate(KCM, IGNORE, None).await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn what_others_write_in_an_outage_costs_neither_protection_nor_a_good_memory_nor_the_way_back()
-> Result<()> {
    scenario(async |bed| {
        let plan = ShootPlan {
            deployments: vec![(KCM, 3), (MCM, 3), (CA, 3)],
            ..ShootPlan::default()
        };
        let shoot = healthy(bed, "others-write", plan).await?;
        let down = [(KCM, "3"), (MCM, "3"), (CA, "3")];
        shoot.nodes.cut_all();
        shoot.held_down(&down).await?;
        shoot.scale(KCM, 1).await?;
        shoot.held_down(&down).await?;
        // As a writer leaves it that died between the two: it had remembered 5.
        shoot
            .patch(
                MCM,
                json!({"spec": {"replicas": 1}, "metadata": {"annotations": {MEMORY: "5"}}}),
            )
            .await?;
        shoot.held_down(&[(MCM, "5")]).await?;
        // Only the first of these is garbage.
        shoot.annotate(KCM, MEMORY, Some("foo")).await?;
        shoot.annotate(CA, MEMORY, Some("+2")).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1), (MCM, 5), (CA, 2)]).await?;
        shoot.end().await
    })
}
