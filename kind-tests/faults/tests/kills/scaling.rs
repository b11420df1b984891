//! The prober: an outage and its end, with a kill at every write.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::api::Record;
use tokio::time::Instant;

use crate::explorer::{Kill, Point, Told, explore};
use crate::replicas::{LEASES, Replicas, takes_lead, took_effect};
use crate::world::{DEPLOYMENTS, KINDS, Kind, ONE, USERS, World, requests};

const LEASE: &str = "dwd-prober-leader-election";
const RENEW_DEADLINE: Duration = Duration::from_secs(5);
/// Between the moment a request is sent and the moment it is counted as arrived, on a machine that does much at once.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// How a story is told.
#[derive(Clone, Copy)]
struct Plan {
    kinds: &'static [Kind],
    election: bool,
    /// How many replicas there are. One that is killed is replaced only when it was alone.
    replicas: usize,
    /// Whether it is suspended instead of killed, until all is over.
    suspended: bool,
}

const ALONE: Plan = Plan { kinds: &DEPLOYMENTS, election: false, replicas: 1, suspended: false };

/// The Lease's holder; empty when nobody holds it.
pub fn holder(world: &World) -> String {
    let lease = world.seed.store().get(LEASES, "garden", LEASE).unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a replica that runs leads: one that was killed or is suspended renews no Lease.
async fn led(world: &World) -> Result<()> {
    let before = world.seed.requests().total();
    requests(&world.seed, 1, "somebody leads", |record| record.number >= before && takes_lead(record)).await
}

/// No write that restored was sent later than renewDeadline after its sender's last renewal. Whoever doesn't lead may protect, which is
/// over when the last dependent was lowered, and restores nothing within the minute that a story takes (D-50).
pub fn fenced(world: &World) -> Result<()> {
    let lowered = world.ledger().lowered.context("nothing was ever held down")?;
    let all = world.seed.requests().all();
    let renewed = |write: &Record| -> Option<Instant> {
        let renewals = all.iter().filter(|record| record.number < write.number && record.user == write.user);
        renewals.filter(|record| takes_lead(record)).filter_map(|record| record.at).next_back()
    };
    for write in all.iter().filter(|record| took_effect(record)) {
        let at = write.at.context("no time")?;
        if at <= lowered + ON_ITS_WAY {
            continue;
        }
        let story = || world.ledger().story.clone();
        let renewed = renewed(write).with_context(|| format!("{write:?} was sent by one that never led\n{}", story()))?;
        let since = at - renewed;
        ensure!(since <= RENEW_DEADLINE + ON_ITS_WAY, "{write:?} was sent {since:?} after the last renewal\n{}", story());
    }
    Ok(())
}

async fn tell(plan: Plan, kill: Option<Kill>) -> Result<Told> {
    let world = World::new(plan.kinds).await?;
    let start = |user| world.prober(user, plan.election);
    let replicas = Replicas::start(&world.seed, kill, plan.suspended, USERS[0], start(USERS[0])?)?;
    let tale = async {
        if plan.replicas > 1 {
            replicas.join(USERS[1], start(USERS[1])?).await?;
        }
        world.looks(3).await?;
        world.nodes.cut_all();
        world.held_down().await?;
        world.nodes.heal_all();
        world.free().await?;
        world.looks(3).await?;
        world.free().await?;
        if plan.election {
            led(&world).await?;
        }
        replicas.thaw().await?;
        world.free().await
    };
    let mut played = replicas.play(tale, async || led(&world).await).await?;
    if plan.election {
        ensure!(holder(&world).is_empty(), "the Lease is still held");
        fenced(&world)?;
    }
    world.ledger().balance(&world.intended())?;
    for api in [&world.seed, &world.shoot] {
        ensure!(api.requests().count(|record| matches!(record.status, Some(401 | 403))) == 0, "something was forbidden");
    }
    let scales = |point: &Point| point.verb == "patch" && point.resource != "events";
    played.points.retain(|point| (plan.replicas == 1 || !point.at_the_end) && (!plan.suspended || scales(point)));
    Ok(played)
}

async fn every_write(what: &str, plan: Plan, least: usize) -> Result<()> {
    explore(what, least, |kill| tell(plan, kill)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_to_deployments_nothing_is_lost() -> Result<()> {
    every_write("deployments", ALONE, 12).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_to_any_kind_nothing_is_lost() -> Result<()> {
    every_write("kinds", Plan { kinds: &KINDS, ..ALONE }, 16).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_of_a_leader_the_next_one_ends_its_work() -> Result<()> {
    every_write("a leader", Plan { kinds: &ONE, election: true, ..ALONE }, 14).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_the_other_replica_takes_the_lead_and_ends_the_work() -> Result<()> {
    every_write("two replicas", Plan { kinds: &KINDS, election: true, replicas: 2, ..ALONE }, 24).await
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_at_any_write_the_other_replica_ends_the_work_and_the_late_write_is_refused() -> Result<()> {
    every_write("a suspended leader", Plan { kinds: &KINDS, election: true, replicas: 2, suspended: true }, 16).await
}
