//! The prober: an outage and its end, with a kill at every write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use nix::sys::signal::Signal;
use testbed::agent::Start;
use testbed::api::Record;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::explorer::{Blow, Ending, Kill, Moment, Told, Trap, explore, points};
use crate::process::Replica;
use crate::world::{DEPLOYMENTS, KINDS, Kind, ONE, PATIENCE, USERS, World};

pub const LEASE: &str = "dwd-prober-leader-election";
pub const LEASES: &str = "leases.coordination.k8s.io";
/// A killed leader's Lease ends soon; there is room between the times for a machine that does much at once.
pub const ELECTION: [&str; 4] = [
    "--enable-leader-election=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
];
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

/// The replicas of one story, and whether one was hit as planned.
struct Replicas {
    all: Mutex<Vec<(&'static str, Replica)>>,
    /// The one that is suspended.
    suspended: Mutex<Option<(&'static str, Replica)>>,
    hit: watch::Sender<bool>,
}

pub fn start(world: &World, user: &str, election: bool) -> Result<Start> {
    world.prober(user, if election { &ELECTION } else { &["--enable-leader-election=false"] })
}

impl Replicas {
    fn start(world: &World, plan: Plan) -> Result<Self> {
        let first = Replica::start(start(world, USERS[0], plan.election)?)?;
        Ok(Self { all: Mutex::new(vec![(USERS[0], first)]), suspended: Mutex::default(), hit: watch::Sender::new(false) })
    }

    /// Starts the second one as soon as the first one has begun to take the lead.
    async fn join(&self, world: &World, plan: Plan) -> Result<()> {
        if plan.replicas == 1 {
            return Ok(());
        }
        // Who kills waits until there is a second one.
        let mut all = self.all.lock().await;
        let asked = world.seed.requests().wait_for(|all| all.iter().any(|record| record.resource == LEASES).then_some(()));
        timeout(PATIENCE, asked).await?;
        all.push((USERS[1], Replica::start(start(world, USERS[1], plan.election)?)?));
        Ok(())
    }

    /// Hits the one that sends the fatal write.
    async fn strike(&self, world: &World, plan: Plan, trap: &Trap) -> Result<()> {
        let user = trap.sprung(&world.seed).await;
        let mut all = self.all.lock().await;
        if plan.replicas == 1 {
            all[0].1.kill_and_replace().await?;
        } else {
            let at = all.iter().position(|(name, _)| *name == user).context("nobody sent it")?;
            let (user, mut replica) = all.remove(at);
            if plan.suspended {
                replica.signal(Signal::SIGSTOP)?;
                *self.suspended.lock().await = Some((user, replica));
            } else {
                replica.kill().await?;
            }
        }
        self.hit.send_replace(true);
        Ok(())
    }

    /// Starts those again that end by themselves, as a Deployment does: on a machine that does too much at once a leader cannot
    /// renew its Lease in time, and ends.
    async fn keep(&self, ending: &Ending) -> Error {
        let mut looks = interval(Duration::from_millis(200));
        loop {
            looks.tick().await;
            let mut all = self.all.lock().await;
            if ending.load(Ordering::Relaxed) {
                continue;
            }
            for (_, replica) in all.iter_mut() {
                if let Err(error) = replica.keep() {
                    return error;
                }
            }
        }
    }

    /// Asks all to end.
    async fn terminate(&self) -> Result<()> {
        self.all.lock().await.iter().try_for_each(|(_, replica)| replica.signal(Signal::SIGTERM))
    }

    /// Waits until all have ended, well.
    async fn ended(&self) -> Result<()> {
        for (user, replica) in self.all.lock().await.iter_mut() {
            let code = replica.end().await?;
            ensure!(code == 0, "{user}: exit code {code}");
        }
        Ok(())
    }

    /// Lets the suspended one go on after its late write has arrived: it has nothing left to say.
    async fn thaw(&self, world: &World, late: &CancellationToken, kill: Option<&Kill>) -> Result<()> {
        let Some((user, mut replica)) = self.suspended.lock().await.take() else { return Ok(()) };
        let requests = world.seed.requests();
        let last = requests.total();
        let open = |record: &&Record| record.user == user && scales(record) && record.status.is_none();
        let on_its_way = requests.all().iter().find(open).context("no write is on its way")?.number;
        late.cancel();
        if kill.is_some_and(|kill| kill.moment == Moment::Before) {
            let refused = |all: &VecDeque<Record>| {
                all.iter().any(|record| record.number == on_its_way && record.status == Some(409)).then_some(())
            };
            timeout(PATIENCE, requests.wait_for(refused)).await.context("the late write is not refused")?;
        }
        replica.signal(Signal::SIGCONT)?;
        if !requests.all().iter().any(|record| record.user == user && takes_lead(record)) {
            // Whoever protected without the lead has none to lose, and goes on.
            self.all.lock().await.push((user, replica));
            return Ok(());
        }
        let code = replica.end().await?;
        ensure!(code == 1, "{user}: exit code {code}\n{}", replica.tail());
        // What it had handed to a connection when it was suspended may leave late; it names a version that is gone.
        let harm: Vec<_> = requests.all().into_iter().filter(|r| r.number >= last && r.user == user && took_effect(r)).collect();
        ensure!(harm.is_empty(), "{user} went on writing: {harm:?}");
        Ok(())
    }

    /// What they say, for a person who reads why a story went wrong.
    async fn tail(&self) -> String {
        let all = self.all.lock().await;
        all.iter().map(|(user, replica)| format!("the log of {user}:\n{}", replica.tail())).collect::<Vec<_>>().join("\n")
    }
}

/// Whether a request is a write to a dependent.
pub fn scales(record: &Record) -> bool {
    record.verb == "patch" && record.resource != "events"
}

/// Whether it is one with which a replica takes or keeps the lead.
fn takes_lead(record: &Record) -> bool {
    record.resource == LEASES && record.is_write() && matches!(record.status, Some(200 | 201))
}

/// The Lease's holder; empty when nobody holds it.
pub fn holder(world: &World) -> String {
    let lease = world.seed.store().get(LEASES, "garden", LEASE).unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Whether it is one that was not refused for naming a version that is gone.
fn took_effect(record: &Record) -> bool {
    scales(record) && record.status != Some(409)
}

/// Waits until a replica that runs leads: one that was killed or is suspended renews no Lease.
async fn led(world: &World) -> Result<()> {
    let requests = world.seed.requests();
    let before = requests.total();
    let renewal = |record: &Record| record.number >= before && record.resource == LEASES && record.verb == "update";
    let renewed = requests.wait_for(|all| all.iter().any(|record| renewal(record) && record.status == Some(200)).then_some(()));
    timeout(PATIENCE, renewed).await.context("nobody leads")
}

/// No write that restored was sent later than renewDeadline after its sender's last renewal. Whoever doesn't lead may protect, which is
/// over when the last dependent was lowered, and restores nothing within the minute that a story takes (D-50).
pub fn fenced(world: &World) -> Result<()> {
    let lowered = world.ledger.lowered().context("nothing was ever held down")?;
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
        let story = || world.ledger.story();
        let renewed = renewed(write).with_context(|| format!("{write:?} was sent by one that never led\n{}", story()))?;
        let since = at - renewed;
        ensure!(since <= RENEW_DEADLINE + ON_ITS_WAY, "{write:?} was sent {since:?} after the last renewal\n{}", story());
    }
    Ok(())
}

async fn tell(plan: Plan, kill: Option<Kill>) -> Result<Told> {
    let world = World::new(plan.kinds).await?;
    let ending = Arc::new(AtomicBool::new(false));
    let late = CancellationToken::new();
    let blow = if plan.suspended { Blow::Suspend(late.clone()) } else { Blow::Kill };
    let trap = kill.as_ref().map(|kill| kill.prepare(&world.seed, &ending, &blow));
    let replicas = Replicas::start(&world, plan)?;
    let strike = async {
        if let Some(trap) = &trap
            && let Err(error) = replicas.strike(&world, plan, trap).await
        {
            return error;
        }
        std::future::pending().await
    };
    let keep = replicas.keep(&ending);
    let tale = async {
        replicas.join(&world, plan).await?;
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
        replicas.thaw(&world, &late, kill.as_ref()).await?;
        world.free().await?;
        let ended = world.seed.requests().total();
        ending.store(true, Ordering::Relaxed);
        replicas.terminate().await?;
        if kill.as_ref().is_some_and(Kill::is_at_the_end) {
            // The successor takes the lead, and only then ends.
            let _ = timeout(PATIENCE, replicas.hit.subscribe().wait_for(|hit| *hit)).await?;
            led(&world).await?;
            replicas.terminate().await?;
        }
        replicas.ended().await?;
        anyhow::Ok(ended)
    };
    let told = tokio::select! {
        told = tale => told,
        error = strike => Err(error),
        error = keep => Err(error),
    };
    let ended = match told {
        Ok(told) => told,
        Err(error) => return Err(error.context(replicas.tail().await)),
    };
    if plan.election {
        ensure!(holder(&world).is_empty(), "the Lease is still held");
        fenced(&world)?;
    }
    world.ledger.balance(&world.intended())?;
    for api in [&world.seed, &world.shoot] {
        ensure!(api.requests().count(|record| matches!(record.status, Some(401 | 403))) == 0, "something was forbidden");
    }
    let killed = *replicas.hit.borrow();
    let points = points(&world.seed, ended).into_iter().filter(|point| plan.replicas == 1 || !point.is_at_the_end());
    Ok(Told { points: points.filter(|point| !plan.suspended || point.scales()).collect(), killed })
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
