//! The prober: an outage and its end, with a kill at every write.

use anyhow::{Result, ensure};

use crate::explorer::{Kill, Point, Told, explore};
use crate::replicas::{KilledReplicas, LEASES, takes_lead};
use crate::world::{DEPLOYMENTS, KINDS, KillWorld, ONE, ScaledKind, USERS, requests};

const LEASE: &str = "dwd-prober-leader-election";

/// How a story runs.
#[derive(Clone, Copy)]
struct KillPlan {
    kinds: &'static [ScaledKind],
    election: bool,
    /// How many replicas there are. One that is killed is replaced only when it was alone.
    replicas: usize,
    /// Whether it is suspended instead of killed, until all is over.
    suspended: bool,
}

const ALONE: KillPlan = KillPlan {
    kinds: &DEPLOYMENTS,
    election: false,
    replicas: 1,
    suspended: false,
};

/// The Lease's holder; empty when nobody holds it.
pub fn holder(world: &KillWorld) -> String {
    let lease = world
        .seed
        .store()
        .get(LEASES, "garden", LEASE)
        .unwrap_or_default();
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Waits until a replica that runs leads: one that was killed or is suspended renews no Lease.
pub async fn led(world: &KillWorld) -> Result<()> {
    let before = world.seed.requests().total();
    requests(&world.seed, 1, "somebody leads", |record| {
        record.number >= before && takes_lead(record)
    })
    .await
}

async fn tell(plan: KillPlan, kill: Option<Kill>) -> Result<Told> {
    let world = KillWorld::new(plan.kinds).await?;
    let start = |user| world.prober(user, plan.election);
    let replicas = KilledReplicas::start(
        &world.seed,
        kill,
        plan.suspended,
        USERS[0],
        start(USERS[0])?,
    )?;
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
        world.ledger.lock().fenced()?;
    }
    world.ledger.lock().balance(|kind| kind.changes)?;
    for api in [&world.seed, &world.shoot] {
        ensure!(
            api.requests()
                .count(|record| matches!(record.status, Some(401 | 403)))
                == 0,
            "something was forbidden"
        );
    }
    let scales = |point: &Point| point.verb == "patch" && point.resource != "events";
    played.points.retain(|point| {
        (plan.replicas == 1 || !point.at_the_end) && (!plan.suspended || scales(point))
    });
    Ok(played)
}

async fn every_write(what: &str, plan: KillPlan, least: usize) -> Result<()> {
    explore(what, least, |kill| tell(plan, kill)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_to_deployments_nothing_is_lost() -> Result<()> {
    every_write("deployments", ALONE, 12).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_to_any_kind_nothing_is_lost() -> Result<()> {
    every_write(
        "kinds",
        KillPlan {
            kinds: &KINDS,
            ..ALONE
        },
        16,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_of_a_leader_the_next_one_ends_its_work() -> Result<()> {
    every_write(
        "a leader",
        KillPlan {
            kinds: &ONE,
            election: true,
            ..ALONE
        },
        14,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_the_other_replica_takes_the_lead_and_ends_the_work() -> Result<()> {
    every_write(
        "two replicas",
        KillPlan {
            kinds: &KINDS,
            election: true,
            replicas: 2,
            ..ALONE
        },
        24,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_at_any_write_the_other_replica_ends_the_work_and_the_late_write_is_refused()
-> Result<()> {
    every_write(
        "a suspended leader",
        KillPlan {
            kinds: &KINDS,
            election: true,
            replicas: 2,
            suspended: true,
        },
        16,
    )
    .await
}
