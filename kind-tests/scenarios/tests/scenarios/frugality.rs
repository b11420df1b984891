//! What a healthy shoot costs.

use anyhow::{Result, ensure};
use testbed::audit::Asked;
use testbed::page::metrics;
use testbed::{Prober, ProberConfig, ShootCluster, ShootPlan, own_scenario};
use tokio::time::Instant;

use crate::{alone, end_alone};

#[test]
fn a_healthy_probe_is_one_request_on_a_kept_connection_and_none_to_the_seed() -> Result<()> {
    own_scenario("needs an audit log", async |bed| {
        let plan = ShootPlan {
            nodes: 5,
            ..ShootPlan::default()
        };
        let (shoot, prober) = alone(bed, "frugal", plan, ProberConfig::default()).await?;
        let (begin, before) = (shoot.history().len(), shoot.asked().len());
        let (turns, (up, down)) = (shoot.proxy.turns(), shoot.proxy.bytes());
        let (mark, since) = (shoot.seed.plane().mark(), Instant::now());
        shoot.after_probes(10).await?;
        let requests: Vec<_> = shoot.asked().into_iter().skip(before).collect();
        ensure!(
            requests
                .iter()
                .all(|asked| asked.verb == "list" && asked.resource == "leases"),
            "{requests:#?}"
        );
        let again = asked_again(&shoot, &prober).await?;
        ensure!(
            2 * again < requests.len(),
            "most are answered in time: {requests:#?}"
        );
        connected(&shoot, &prober, 1).await?;
        // One more may be under way; another connection takes two.
        let (turns, slack) = (usize::try_from(shoot.proxy.turns() - turns)?, 1 + 2 * again);
        ensure!(
            turns.abs_diff(requests.len()) <= slack,
            "{turns} turns for {} requests",
            requests.len()
        );
        let bytes = shoot.proxy.bytes();
        ensure!(bytes.0 > up && bytes.1 > down, "no bytes: {bytes:?}");

        let of_seed = shoot.seed.asked_since(&mark);
        let election = |asked: &Asked| asked.resource == "leases" && asked.namespace == "garden";
        // One renewal in 2 s.
        let renewals = 2 + since.elapsed().as_secs() / 2;
        ensure!(
            of_seed.iter().all(election) && of_seed.len() as u64 <= renewals,
            "{renewals} at most: {of_seed:#?}"
        );

        // A kept connection that dies costs a new one and no verdict.
        for _ in 0..3 {
            shoot.proxy.cut();
            shoot.after_probes(2).await?;
        }
        connected(&shoot, &prober, 1 + 3).await?;
        shoot.untouched_since(begin)?;
        end_alone(shoot, prober).await
    })
}

/// Requests beside the complete probes: what was asked again on another connection since an answer
/// came too late or a cut took it, and what is under way.
async fn asked_again(shoot: &ShootCluster, prober: &Prober) -> Result<usize> {
    let complete = metrics(prober.log_file())
        .await?
        .value("dwd_probes_total{stage=\"leases\",result=\"complete\"}")?;
    let requests = shoot
        .asked()
        .into_iter()
        .filter(|asked| asked.resource == "leases")
        .count();
    Ok(requests.saturating_sub(complete as usize))
}

/// The prober made this many connections: none but those, and one for each request on another one.
async fn connected(shoot: &ShootCluster, prober: &Prober, usual: usize) -> Result<()> {
    let (connections, most) = (
        usize::try_from(shoot.proxy.connections())?,
        usual + asked_again(shoot, prober).await?,
    );
    ensure!(
        (usual..=most).contains(&connections),
        "{connections} connections instead of {usual}\n{}",
        shoot.story()
    );
    Ok(())
}
