//! A shoot that has moved to another seed although nobody could say so on the old one: the owner record does.
//!
//! Both seeds have a control plane of the shoot that says that it is theirs, and Machines for the same nodes.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::dns::{Dns, Reply};
use testbed::page::metrics;
use testbed::shoot::{Body, CA, KCM, MCM, PATIENCE};
use testbed::{Bed, Prober, ProberConfig, Seed, Shoot, ShootPlan, own_scenario};

use crate::{DOWN, UP, came_back_in_order};

const OLD: &str = "old";
const NEW: &str = "new";
/// Several intervals of probes and of checks.
const LONG: Duration = Duration::from_secs(4);

/// The shoot on both seeds, and what the record says.
struct Pair {
    dns: Dns,
    old: Shoot,
    new: Shoot,
    old_prober: Prober,
    new_prober: Prober,
}

impl Pair {
    async fn start(bed: &'static Bed, on_loss: &str) -> Result<Self> {
        let dns = Dns::start(Reply::text(OLD)).await?;
        let (old_seed, new_seed) = (bed.own_seed().await?, bed.own_seed().await?);
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
        let (old_prober, new_prober) = (prober(&old_seed, &dns, on_loss).await?, prober(&new_seed, &dns, on_loss).await?);
        old.after_probes(4).await?;
        Ok(Self { dns, old, new, old_prober, new_prober })
    }

    async fn end(self) -> Result<()> {
        // Both share an API server, which the other gives back.
        self.new.delete_cluster().await?;
        self.old.end().await
    }
}

async fn prober(seed: &Seed, dns: &Dns, on_loss: &str) -> Result<Prober> {
    let ask = format!("name: 'owner.{{{{namespace}}}}.example.org', value: '{{{{seed}}}}', servers: ['{}']", dns.address());
    let lines = format!("ownerCheck: {{{ask}, interval: 1s, timeout: 500ms, tolerance: 1h, onLoss: {on_loss}}}\n");
    Prober::start(seed, ProberConfig { lines, ..ProberConfig::default() }).await
}

/// Waits until a prober finds its shoot in this standing.
async fn stands(shoot: &Shoot, prober: &Prober, standing: &str) -> Result<()> {
    shoot
        .eventually("its owner record is known", PATIENCE, async || {
            let shoots = metrics(prober.log_file()).await?.value(&format!("dwd_owner_shoots{{standing=\"{standing}\"}}"))?;
            ensure!(shoots == 1.0, "{shoots}");
            Ok(())
        })
        .await
}

#[test]
fn a_move_in_mid_outage_leaves_the_old_seed_as_it_is_and_the_new_one_protects() -> Result<()> {
    own_scenario("needs two seeds", async |bed| {
        let pair = Pair::start(bed, "standDown").await?;
        let Pair { dns, old, new, old_prober, new_prober } = &pair;
        let at_new = new.history().len();
        old.nodes.cut_all();
        old.held_down(&DOWN).await?;
        stands(new, new_prober, "elsewhere").await?;
        new.silent_for(LONG).await?;
        new.untouched_since(at_new)?;

        dns.say(Reply::text(NEW));
        stands(old, old_prober, "elsewhere").await?;
        let at_old = old.history().len();
        new.held_down(&DOWN).await?;
        let down = new.history().len();
        old.nodes.heal_all();
        new.free_at(&UP).await?;
        came_back_in_order(new, down)?;
        old.silent_for(LONG).await?;
        old.untouched_since(at_old)?;

        let at_new = new.history().len();
        dns.say(Reply::text(OLD));
        old.free_at(&UP).await?;
        stands(new, new_prober, "elsewhere").await?;
        new.untouched_since(at_new)?;
        pair.end().await
    })
}

#[test]
fn what_has_moved_away_is_passivated_and_restored_when_it_is_back() -> Result<()> {
    own_scenario("needs two seeds", async |bed| {
        let pair = Pair::start(bed, "passivate").await?;
        let Pair { dns, old, new, .. } = &pair;
        new.held_down(&DOWN).await?;
        let (at_old, at_new) = (old.history().len(), new.history().len());
        dns.say(Reply::text(NEW));
        old.held_down(&DOWN).await?;
        let order = old.order(at_old, |state| state.replicas == 0);
        ensure!(order.last() == Some(&KCM.to_owned()) && order.len() == [KCM, MCM, CA].len(), "{order:?}\n{}", old.story());
        new.free_at(&UP).await?;
        came_back_in_order(new, at_new)?;

        let at_old = old.history().len();
        dns.say(Reply::text(OLD));
        new.held_down(&DOWN).await?;
        old.free_at(&UP).await?;
        came_back_in_order(old, at_old)?;
        pair.end().await
    })
}
