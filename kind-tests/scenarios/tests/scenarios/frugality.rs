//! What a healthy shoot costs.

use anyhow::{Result, ensure};
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, own_scenario};

#[test]
fn a_healthy_probe_is_one_request_on_a_kept_connection_and_none_to_the_seed() -> Result<()> {
    own_scenario("needs an audit log", async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "frugal", ShootPlan { nodes: 5, ..ShootPlan::default() }).await?;
        let _prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(3).await?;

        let (before, connections, turns) = (shoot.asked().len(), shoot.relay.connections(), shoot.relay.turns());
        let mark = seed.plane().mark();
        shoot.after_probes(10).await?;
        let requests: Vec<_> = shoot.asked().into_iter().skip(before).collect();
        ensure!(
            requests.iter().all(|asked| asked.verb == "list" && asked.resource == "leases" && asked.code == 200),
            "{requests:#?}"
        );
        ensure!(shoot.relay.connections() == connections, "a new connection");
        // One more may be under way.
        let turns = usize::try_from(shoot.relay.turns() - turns)?;
        ensure!(turns <= requests.len() + 1, "{turns} turns for {} requests", requests.len());

        let seed_requests = seed.asked_since(&mark);
        let mut election = 0;
        for asked in &seed_requests {
            ensure!(asked.resource == "leases" && asked.namespace == "garden", "{asked:?}");
            election += 1;
        }
        // One renewal in 2 s.
        ensure!(election <= 12, "{election}");
        ensure!(shoot.relay.connections() == 1, "{} connections in all", shoot.relay.connections());
        shoot.end().await
    })
}

#[test]
fn nothing_that_the_prober_asks_for_is_forbidden() -> Result<()> {
    own_scenario("needs an audit log", async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "allowed", ShootPlan::default()).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&crate::DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&crate::UP).await?;
        ensure!(prober.terminate().await?.success());
        // All of it, from the prober's start to its end, whatever the namespace.
        let (seed_requests, shoot_requests) = (seed.asked(), shoot.asked());
        ensure!(!seed_requests.is_empty() && !shoot_requests.is_empty(), "the audit log is empty");
        for asked in seed_requests.iter().chain(&shoot_requests) {
            ensure!(asked.code != 403 && asked.code != 401, "{asked:?}");
        }
        shoot.end().await
    })
}
