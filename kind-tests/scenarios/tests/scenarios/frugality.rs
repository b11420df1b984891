//! What a healthy shoot costs.

use anyhow::{Result, ensure};
use testbed::{ProberConfig, ShootPlan, own_scenario};

use crate::{alone, end_alone};

#[test]
fn a_healthy_probe_is_one_request_on_a_kept_connection_and_none_to_the_seed() -> Result<()> {
    own_scenario("needs an audit log", async |bed| {
        let plan = ShootPlan { nodes: 5, ..ShootPlan::default() };
        let (shoot, prober) = alone(bed, "frugal", plan, ProberConfig::default()).await?;
        let (begin, before) = (shoot.history().len(), shoot.asked().len());
        let (turns, (up, down)) = (shoot.relay.turns(), shoot.relay.bytes());
        let mark = shoot.seed.plane().mark();
        shoot.after_probes(10).await?;
        let requests: Vec<_> = shoot.asked().into_iter().skip(before).collect();
        ensure!(
            requests.iter().all(|asked| asked.verb == "list" && asked.resource == "leases" && asked.code == 200),
            "{requests:#?}"
        );
        ensure!(shoot.relay.connections() == 1, "{} connections", shoot.relay.connections());
        // One more may be under way.
        let turns = usize::try_from(shoot.relay.turns() - turns)?;
        ensure!(turns.abs_diff(requests.len()) <= 1, "{turns} turns for {} requests", requests.len());
        let bytes = shoot.relay.bytes();
        ensure!(bytes.0 > up && bytes.1 > down, "no bytes: {bytes:?}");

        let of_seed = shoot.seed.asked_since(&mark);
        let election = |asked: &testbed::audit::Asked| asked.resource == "leases" && asked.namespace == "garden";
        // One renewal in 2 s.
        ensure!(of_seed.iter().all(election) && of_seed.len() <= 12, "{of_seed:#?}");

        // A kept connection that dies costs a new one and no verdict.
        for _ in 0..3 {
            shoot.relay.cut();
            shoot.after_probes(2).await?;
        }
        ensure!(shoot.relay.connections() == 1 + 3, "{} connections\n{}", shoot.relay.connections(), shoot.story());
        shoot.untouched_since(begin)?;
        end_alone(shoot, prober).await
    })
}
