//! Faults whose reality matters: what a real API server, a real etcd and a real network do when they fail.

mod hostile;
mod restarts;
mod throttling;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::gardener::{SCALERS, more_access};
use testbed::prober::dependent;
use testbed::relay::{Path, Relay};
use testbed::seed::{Dependent, Entry};
use testbed::shoot::{CA, KCM, MCM, PATIENCE};
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, scenario};

use crate::weeder::on_ground;
use crate::weeder::plane::{ETCD, Plane, State};
use crate::{DOWN, UP};

/// A kubeconfig for a prober on this seed, by way of a relay.
async fn kubeconfig_through(seed: &Seed, relay: &Relay) -> Result<PathBuf> {
    let direct = seed.prober_kubeconfig().await?;
    let file = seed.folder().join("kubeconfig-through-the-relay");
    std::fs::write(&file, direct.replace(&seed.plane().url(), &format!("https://{}", relay.address())))?;
    Ok(file)
}

/// Leadership outlasts every stop of a seed: a prober that loses it ends, and what is shown is what it does otherwise.
const PATIENT: [&str; 2] = ["--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s"];

#[test]
fn a_watch_that_died_in_silence_costs_neither_the_memory_nor_the_way_back() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "silent-watches", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let relay = Relay::start(seed.plane().address()).await?;
        let mut args: Vec<String> = PATIENT.map(Into::into).into();
        args.push(format!("--kubeconfig={}", kubeconfig_through(&seed, &relay).await?.display()));
        let _prober = Prober::start(&seed, ProberConfig { args, ..ProberConfig::default() }).await?;
        shoot.after_probes(2).await?;

        // The network forgets the connections of all watches, and what changes from now on is not shown.
        relay.freeze();
        shoot.scale(MCM, 3).await?;
        shoot.nodes.cut_all();
        let down = [(KCM, "2"), (MCM, "3"), (CA, "1")];
        shoot.held_down(&down).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 2), (MCM, 3), (CA, 1)]).await?;
        let ups = shoot.writes_since(begin);
        ensure!(ups.len() == 3, "{ups:#?}");
        shoot.end().await
    })
}

#[test]
fn a_seed_whose_answers_are_lost_is_caught_up_with() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "seed-half-open", ShootPlan::default()).await?;
        let relay = Relay::start(seed.plane().address()).await?;
        let mut args: Vec<String> = PATIENT.map(Into::into).into();
        args.push(format!("--kubeconfig={}", kubeconfig_through(&seed, &relay).await?.display()));
        let prober = Prober::start(&seed, ProberConfig { args, ..ProberConfig::default() }).await?;
        shoot.after_probes(2).await?;
        for cut in [true, false] {
            let begin = shoot.history().len();
            relay.set(Path::HalfOpen);
            if cut {
                shoot.nodes.cut_all();
                shoot
                    .eventually("a write without an answer", PATIENCE, async || {
                        ensure!(!prober.log("resource cannot be scaled").is_empty(), "none");
                        Ok(())
                    })
                    .await?;
            } else {
                shoot.nodes.heal_all();
                shoot.leases_younger_than(Duration::from_secs(3)).await?;
                shoot.after_probes(2).await?;
            }
            relay.cut();
            relay.set(Path::Open);
            if cut {
                shoot.held_down(&DOWN).await?
            } else {
                shoot.free_at(&UP).await?
            }
            // What was sent may have arrived, but nothing was kept for later: none goes the other way.
            let down = |entry: &Entry| entry.state.as_ref().is_some_and(|state| state.replicas == 0);
            let strays: Vec<Entry> = shoot.writes_since(begin).into_iter().filter(|entry| down(entry) != cut).collect();
            ensure!(strays.is_empty(), "{strays:?}\n{}", shoot.story());
        }
        shoot.end().await
    })
}

#[test]
fn where_only_the_scale_is_forbidden_the_marker_goes_again_with_the_outage() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let mut access = more_access();
        for (_, object) in &mut access {
            if let Some(rules) = object["rules"].as_array_mut() {
                rules[1]["resources"] = json!(["scalers"]);
                rules.push(json!({"apiGroups": ["bed.example.org"], "resources": ["scalers/scale"], "verbs": ["get"]}));
            }
        }
        seed.apply(access).await?;
        let plan = ShootPlan { deployments: vec![(KCM, 2)], forbidden: true, ..ShootPlan::default() };
        let shoot = Shoot::create(bed, &seed, "scale-forbidden", plan).await?;
        shoot.create_workload(SCALERS, "scalers", "Scaler", "autoscaler", 4).await?;
        let config = ProberConfig {
            dependents: vec![
                dependent("apps/v1", "Deployment", KCM, 0, 1),
                dependent("bed.example.org/v1", "Scaler", "autoscaler", 1, 0),
            ],
            ..ProberConfig::default()
        };
        let prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        // It stops no other resource, and is told.
        shoot.held_down(&[DOWN[0]]).await?;
        let failures = async |prober: &Prober| {
            let told = prober.log("resource cannot be scaled");
            ensure!(told.iter().any(|line| line["category"] == "forbidden"), "{told:?}");
            Ok(())
        };
        shoot.eventually("it is told", PATIENCE, async || failures(&prober).await).await?;
        let path = format!("{SCALERS}/namespaces/{}/scalers/autoscaler", shoot.namespace);
        let scaler = async || Ok::<_, anyhow::Error>(Dependent::of(&seed.api().get(&path).await?));
        ensure!(scaler().await?.replicas == 4);
        shoot.nodes.heal_all();
        shoot.free_at(&[UP[0]]).await?;
        shoot
            .eventually("no trace is left", PATIENCE, async || {
                let scaler = scaler().await?;
                ensure!(scaler.is_free_at(4), "{scaler}");
                Ok(())
            })
            .await?;
        shoot.end().await
    })
}

#[test]
fn a_disruption_budget_is_no_obstacle_to_a_pod_that_cannot_serve_anyway() -> Result<()> {
    on_ground(async |bed| {
        let plane = Plane::create(bed, "budget", 1).await?;
        let budgets = plane.path("/apis/policy/v1", "poddisruptionbudgets");
        let selector = json!({"matchLabels": {"role": "apiserver"}});
        let budget = json!({"metadata": {"name": "none"}, "spec": {"maxUnavailable": 0, "selector": selector}});
        plane.api().create(&budgets, &budget).await?;
        plane.all("main", State::NotReady).await?;
        plane.all("apiserver", State::Crashing).await?;
        plane.service(ETCD, false).await?;
        let servers = plane.pods("apiserver").await?;
        plane.all("main", State::Ready).await?;
        plane.replaced("apiserver", &servers).await?;
        plane.end(1).await
    })
}
