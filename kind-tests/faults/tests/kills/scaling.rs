//! The prober: an outage and its end, with a kill at every write.

use anyhow::{Result, ensure};
use api_server::Record;

use crate::explorer::{Kill, Point, Told, explore};
use crate::replicas::{KilledReplicas, LEASES, takes_lead};
use crate::world::{KillWorld, USERS, requests};

const LEASE: &str = "dwd-prober-leader-election";

/// How a story runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KillPlan {
    /// One replica, without an election.
    Alone,
    /// Two; the one that is killed is not replaced.
    Two,
    /// Two, of which one is suspended until all is over instead of killed.
    Suspended,
}

/// The Lease's holder; empty when nobody holds it.
fn holder(world: &KillWorld) -> String {
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
async fn led(world: &KillWorld) -> Result<()> {
    let before = world.seed.requests().total();
    requests(&world.seed, 1, "somebody leads", |record| {
        record.number >= before && takes_lead(record)
    })
    .await
}

async fn tell(plan: KillPlan, kill: Option<Kill>) -> Result<Told> {
    let world = KillWorld::new().await?;
    let (has_election, suspends) = (plan != KillPlan::Alone, plan == KillPlan::Suspended);
    let start = |user| world.prober(user, has_election);
    let replicas = KilledReplicas::start(&world.seed, kill, suspends, USERS[0], start(USERS[0])?)?;
    let tale = async {
        if has_election {
            replicas.join(USERS[1], start(USERS[1])?).await?;
        }
        world.looks(3).await?;
        world.nodes.cut_all();
        world.held_down().await?;
        world.nodes.heal_all();
        world.free().await?;
        world.looks(3).await?;
        world.free().await?;
        if has_election {
            led(&world).await?;
        }
        replicas.thaw().await?;
        world.free().await
    };
    let mut played = replicas.play(tale).await?;
    if has_election {
        ensure!(holder(&world).is_empty(), "the Lease is still held");
        world.ledger.lock().fenced()?;
    }
    world.ledger.lock().balance(|kind| kind.changes)?;
    for api in [&world.seed, &world.shoot] {
        let refused = |record: &Record| matches!(record.status, Some(401 | 403));
        ensure!(
            api.requests().count(refused) == 0,
            "something was forbidden"
        );
    }
    if suspends {
        played.points.retain(Point::scales);
    }
    Ok(played)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_nothing_is_lost() -> Result<()> {
    explore("alone", 16, |kill| tell(KillPlan::Alone, kill)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_the_other_replica_ends_the_work() -> Result<()> {
    explore("two replicas", 24, |kill| tell(KillPlan::Two, kill)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_at_any_write_its_late_write_is_refused() -> Result<()> {
    explore("suspended", 16, |kill| tell(KillPlan::Suspended, kill)).await
}
