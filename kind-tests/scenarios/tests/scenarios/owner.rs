//! A shoot that has moved to another seed although nobody could say so on the old one: the owner record does.
//!
//! Both seeds have a control plane of the shoot that says that it is theirs, and Machines for the same nodes.

use std::time::Duration;

use anyhow::{Context, Result};
use testbed::dns::{Dns, Reply};
use testbed::shoot::Body;
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, own_scenario};

use crate::{DOWN, UP, came_back_in_order, end_alone, goes_down, hand_on, own_seed, shows};

const OLD: &str = "old";
const NEW: &str = "new";
/// Several intervals of probes and of checks.
const LONG: Duration = Duration::from_secs(4);

async fn prober(seed: &Seed, dns: &Dns) -> Result<Prober> {
    let ask = format!("name: 'owner.{{{{namespace}}}}.example.org', value: '{{{{seed}}}}', servers: ['{}']", dns.address());
    let lines = format!("ownerCheck: {{{ask}, interval: 1s, timeout: 500ms, tolerance: 1h, onLoss: standDown}}\n");
    Prober::start(seed, ProberConfig { lines, ..ProberConfig::default() }).await
}

/// Waits until a prober finds that its shoot belongs to another seed.
async fn is_elsewhere(shoot: &Shoot, prober: &Prober) -> Result<()> {
    let shown = shows(prober.log_file(), "dwd_owner_shoots{standing=\"elsewhere\"}", 1.0..=1.0).await;
    shown.with_context(|| shoot.story())
}

#[test]
fn a_move_in_mid_outage_leaves_the_old_seed_as_it_is_and_the_new_one_protects() -> Result<()> {
    own_scenario("needs two seeds", async |bed| {
        let dns = Dns::start(Reply::text(OLD)).await?;
        let (old_seed, new_seed) = (own_seed(bed).await?, own_seed(bed).await?);
        let plane = bed.lend().await?;
        let plan = |seed, nodes| {
            let body = Body { cluster_seed: seed, seeds: (seed, seed), ..Body::default() };
            ShootPlan { nodes, body, ..ShootPlan::default() }
        };
        // What makes a shoot removes the nodes that are there, so the one that has none is the first.
        let new = Shoot::create_at(plane.clone(), bed, &new_seed, "moved", plan(NEW, 0)).await?;
        let old = Shoot::create_at(plane, bed, &old_seed, "moved", plan(OLD, 3)).await?;
        for node in old.nodes.names() {
            new.add_machine(node, node).await?;
        }
        let (old_prober, new_prober) = (prober(&old_seed, &dns).await?, prober(&new_seed, &dns).await?);
        old.after_probes(4).await?;

        let at_new = new.history().len();
        goes_down(&old).await?;
        is_elsewhere(&new, &new_prober).await?;
        new.silent_for(LONG).await?;
        new.untouched_since(at_new)?;

        dns.say(Reply::text(NEW));
        is_elsewhere(&old, &old_prober).await?;
        let at_old = old.history().len();
        new.held_down(&DOWN).await?;
        let down = new.history().len();
        old.nodes.heal_all();
        new.free_at(&UP).await?;
        came_back_in_order(&new, down)?;
        old.silent_for(LONG).await?;
        old.untouched_since(at_old)?;

        let at_new = new.history().len();
        dns.say(Reply::text(OLD));
        old.free_at(&UP).await?;
        is_elsewhere(&new, &new_prober).await?;
        new.untouched_since(at_new)?;
        // Both share an API server, which the other gives back.
        new.delete_cluster().await?;
        end_alone(bed, old, (old_prober, new_prober)).await?;
        hand_on(bed, &new_seed).await
    })
}
