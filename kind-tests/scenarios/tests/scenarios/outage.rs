//! The main job: an outage, and the way back.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testbed::log::lines;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{Prober, ProberConfig, ShootCluster, ShootPlan, eventually, scenario};
use tokio::time::Instant;

use crate::{ORDERLY, UP, alone, came_back_in_order, comes_back, end_alone, goes_down, healthy};

#[test]
fn an_outage_takes_all_to_zero_in_order_and_recovery_brings_them_back_in_order() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(
            bed,
            "outage",
            ShootPlan {
                grace: ORDERLY,
                ..ShootPlan::default()
            },
        )
        .await?;
        let begin = shoot.history().len();
        let cut = Instant::now();
        goes_down(&shoot).await?;

        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(
            order.last().is_some_and(|last| last == KCM),
            "{order:?}\n{}",
            shoot.story()
        );
        in_time(&shoot, cut)?;

        let begin = shoot.history().len();
        comes_back(&shoot).await?;
        came_back_in_order(&shoot, begin)?;

        // Each level waits until the one before it is ready, and machine-controller-manager 2 s
        // more.
        let history: Vec<_> = shoot.history().into_iter().skip(begin).collect();
        let first = |name: &str, so: &dyn Fn(i64, i64) -> bool| {
            let entry = history.iter().find(|entry| {
                entry.name == name
                    && entry
                        .state
                        .as_ref()
                        .is_some_and(|state| so(state.replicas, state.ready))
            });
            entry
                .map(|entry| entry.at)
                .with_context(|| format!("{name}\n{}", shoot.story()))
        };
        let (ready, machines) = (
            first(KCM, &|_, ready| ready > 0)?,
            first(MCM, &|wanted, _| wanted > 0)?,
        );
        // A tenth less: the watch that shows it is no stop-watch.
        ensure!(
            machines - ready > Duration::from_millis(1800),
            "{:?}\n{}",
            machines - ready,
            shoot.story()
        );
        ensure!(
            first(CA, &|wanted, _| wanted > 0)? >= first(MCM, &|_, ready| ready > 0)?,
            "{}",
            shoot.story()
        );
        shoot.end().await
    })
}

/// kube-controller-manager was at 0 before it could give up the first node.
fn in_time(shoot: &ShootCluster, cut: Instant) -> Result<()> {
    let zero = shoot.history().into_iter().rfind(|entry| {
        entry.name == KCM
            && entry.at > cut
            && entry
                .state
                .as_ref()
                .is_some_and(|state| state.replicas == 0)
    });
    let late = zero.context("never at 0")?.at - cut;
    ensure!(
        late < ORDERLY,
        "at 0 only {late:?} after the nodes were cut off\n{}",
        shoot.story()
    );
    Ok(())
}

#[test]
fn the_delay_of_the_machine_controller_is_waited_only_when_it_has_to_be_scaled() -> Result<()> {
    scenario(async |bed| {
        let config = ProberConfig {
            machine_delay: "600s",
            ..ProberConfig::default()
        };
        let (shoot, prober) = alone(bed, "delay", ShootPlan::default(), config).await?;
        // Nothing here is waited for as long as that. Probes do not wait for it,
        shoot.after_probes(4).await?;
        // nor does the level after it.
        shoot.scale(CA, 0).await?;
        shoot.free_at(&UP).await?;
        end_alone(shoot, prober).await
    })
}

#[test]
fn an_outage_that_outlives_its_prober_is_told_by_both_in_their_logs() -> Result<()> {
    scenario(async |bed| {
        let (shoot, prober) =
            alone(bed, "record", ShootPlan::default(), ProberConfig::default()).await?;
        goes_down(&shoot).await?;
        let first = prober.log_file().to_owned();
        ensure!(prober.terminate().await?.success());
        let next = Prober::start(&shoot.seed, ProberConfig::default()).await?;
        comes_back(&shoot).await?;
        eventually("two records", async || {
            let told = |log: &Path| -> Result<Value> {
                let [line] = &lines(log, "dependency-watchdog.outage/v1")[..] else {
                    bail!("not one line")
                };
                ensure!(
                    line["msg"] == "outage ended" && line["namespace"] == *shoot.namespace,
                    "{line}"
                );
                Ok(serde_json::from_str(
                    line["record"].as_str().context("no record")?,
                )?)
            };
            let (cut_short, whole) = (told(&first)?, told(next.log_file())?);
            let ends =
                [&cut_short, &whole].map(|record| [&record["end"], &record["foundHeldDown"]]);
            ensure!(
                ends == [
                    [&json!("still_held_down"), &json!(false)],
                    [&json!("restored"), &json!(true)]
                ],
                "{ends:?}"
            );
            let wrote = |record: &Value, down: bool| {
                let of_leader =
                    |write: &&Value| (write["to"] == 0) == down && write["asLeader"] == true;
                record["writes"]
                    .as_array()
                    .map(|writes| writes.iter().filter(of_leader).count())
            };
            ensure!(
                wrote(&cut_short, true) == Some(3) && wrote(&whole, false) == Some(3),
                "{cut_short} {whole}"
            );
            Ok(())
        })
        .await?;
        end_alone(shoot, next).await
    })
}
