//! The election on random schedules, on tokio's paused clock: replicas that start, end, are
//! suspended and cut off at any moment, over a network that delays and loses whatever is sent. What
//! must hold: no two fences are ever open at once.
//!
//! A seed repeats its schedule; whatever fails prints it, and what happened. `SCHEDULES` says how
//! many are run (60).

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use api_server::{Fault, When};
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::{Fence, LeaderElector};
use futures::future::{join_all, select_all};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use crate::bed::{ElectionBed, GARDEN, LEASE, LEASES, serve};
use crate::lossy_network::{GOOD, Link, LossyNetwork, NetworkConditions};

const REPLICAS: usize = 3;
const LEASE_DURATION: Duration = Duration::from_secs(4);
const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// How long replicas start and end.
const ROUGH_TIME: Duration = Duration::from_secs(60);
/// A process lives no longer than this, and pauses no longer before the next one.
const LIFE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(5);
/// How long a process is left in peace before it is suspended or cut off, and how long that lasts,
/// at most.
const PEACE: Duration = Duration::from_secs(20);
const TROUBLE: Duration = Duration::from_secs(8);
/// Longer than a few requests take when the network is good.
const MOMENT: Duration = Duration::from_millis(500);

const ROUGH: NetworkConditions = NetworkConditions {
    longest: Duration::from_secs(6),
    losses: 0.05,
    versions: true,
};

/// What the election rests on; each can be left out to show that it is needed.
#[derive(Clone, Copy, Debug)]
struct ScheduleRules {
    /// A PUT names the version that it rests on.
    versions: bool,
    renew_deadline: Duration,
    /// Nobody deletes the Lease.
    kept: bool,
}

/// With the longest deadline that the flags allow.
const OURS: ScheduleRules = ScheduleRules {
    versions: true,
    renew_deadline: LEASE_DURATION,
    kept: true,
};

fn settings(renew_deadline: Duration) -> LeaderElection {
    LeaderElection {
        enabled: true,
        namespace: GARDEN.into(),
        lease_duration: LEASE_DURATION,
        renew_deadline,
        retry_period: RETRY_PERIOD,
    }
}

struct Schedule {
    network: LossyNetwork,
    rules: ScheduleRules,
    end: Instant,
    fences: RefCell<Vec<Fence>>,
    /// How often somebody came to lead.
    leads: Cell<usize>,
    overlaps: Cell<usize>,
}

impl Schedule {
    async fn start(seed: u64, rules: ScheduleRules) -> Self {
        let server = serve(vec![]).await;
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        server.faults().add(
            When::matches(move |_| rng.lock().unwrap().random_ratio(1, 20)),
            Fault::status(500),
        );
        let network = LossyNetwork::new(
            server,
            seed,
            NetworkConditions {
                versions: rules.versions,
                ..ROUGH
            },
        );
        let fences = RefCell::new(vec![Fence::always_closed(); REPLICAS]);
        let end = Instant::now() + ROUGH_TIME;
        Self {
            network,
            rules,
            end,
            fences,
            leads: Cell::new(0),
            overlaps: Cell::new(0),
        }
    }

    /// The processes of one replica, one after the other.
    async fn live(&self, replica: usize) {
        for number in 1.. {
            sleep(self.network.time(PAUSE)).await;
            if Instant::now() >= self.end {
                break;
            }
            let link = self.network.link(&format!("{replica}.{number}"));
            self.process(replica, &link).await;
            self.fences.borrow_mut()[replica] = Fence::always_closed();
        }
    }

    async fn process(&self, replica: usize, link: &Link) {
        let (settings, identity) = (settings(self.rules.renew_deadline), link.of.to_string());
        let (mut elector, role) =
            LeaderElector::new(link.client(), settings, LEASE, identity, Events::none());
        let fence = role.write_fence();
        self.fences.borrow_mut()[replica] = fence.clone();
        let election = async {
            elector.acquire().await;
            elector.renew().await
        };
        let election = timeout(self.network.time(LIFE), self.disturbed(link, election));
        let lost = tokio::select! {
            biased;
            ended = election => ended.ok(),
            never = self.watch_over(link, &fence) => match never {},
        };
        match lost {
            Some(lost) => self.network.log(&link.of, &lost.to_string()),
            None if self.network.random(2) == 0 => self.network.log(&link.of, "is killed"),
            None => {
                self.network.log(&link.of, "is stopped");
                elector.release().await;
            }
        }
    }

    /// Does an act as a process does it that is suspended and cut off at times.
    async fn disturbed<T>(&self, link: &Link, act: impl Future<Output = T>) -> T {
        let mut act = pin!(act);
        loop {
            if let Ok(done) = timeout(self.network.time(PEACE), &mut act).await {
                return done;
            }
            let trouble = self.network.time(TROUBLE);
            if self.network.random(2) == 0 {
                self.network
                    .log(&link.of, &format!("is suspended for {trouble:?}"));
                sleep(trouble).await;
            } else {
                link.cut(true);
                let done = timeout(trouble, &mut act).await;
                link.cut(false);
                if let Ok(done) = done {
                    return done;
                }
            }
        }
    }

    /// Counts, whenever this fence opens, whether another one is open. It needs no process that
    /// runs: what a process that is suspended finds when it goes on is an open fence.
    async fn watch_over(&self, link: &Link, fence: &Fence) -> Infallible {
        loop {
            fence.opened().await;
            if fence.is_open() {
                self.leads.update(|leads| leads + 1);
                let open = self
                    .fences
                    .borrow()
                    .iter()
                    .filter(|fence| fence.is_open())
                    .count();
                self.network
                    .log(&link.of, &format!("may write, one of {open}"));
                self.overlaps
                    .update(|overlaps| overlaps + usize::from(open > 1));
            }
            fence.while_open(std::future::pending::<()>()).await;
            // One that has run out stays so until its elector runs.
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// What others do to the Lease and to the watches.
    async fn others(&self) {
        let store = self.network.server.store();
        while Instant::now() < self.end {
            sleep(self.network.time(PEACE / 2)).await;
            match self.network.random(4) {
                0 => {
                    let label = self.network.random(1000).to_string();
                    let patch = json!({"metadata": {"labels": {"a": label}}, "spec": {"preferredHolder": "x"}});
                    // There may be none.
                    store.patch(LEASES, GARDEN, LEASE, &patch).ok();
                }
                1 => store.break_watches(),
                2 => store.compact(),
                _ if self.rules.kept => {}
                _ => {
                    self.network.log("somebody", "deletes the Lease");
                    store.delete(LEASES, GARDEN, LEASE).ok();
                }
            }
        }
    }

    /// Whatever has happened: who is left leads when the Lease is over, and gives it up.
    async fn settle(&self) {
        self.network.server.faults().clear();
        self.network.set(GOOD);
        // What is still under way arrives.
        sleep(2 * ROUGH.longest).await;
        let bed = ElectionBed::behind(&self.network);
        let (mut last, _) = bed.candidate("last", settings(LEASE_DURATION));
        let leads = timeout(LEASE_DURATION + MOMENT, last.acquire()).await;
        assert!(
            leads.is_ok(),
            "the last one does not lead\n{}",
            self.network.logged()
        );
        last.release().await;
        assert_eq!(bed.holder(), "");
        bed.check();
    }
}

fn on_paused_clock<T>(act: impl Future<Output = T>) -> T {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(act)
}

fn run(seed: u64, rules: ScheduleRules) -> Schedule {
    println!("seed {seed}");
    on_paused_clock(async {
        let schedule = Schedule::start(seed, rules).await;
        let replicas = join_all((0..REPLICAS).map(|replica| schedule.live(replica)));
        tokio::join!(replicas, schedule.others());
        schedule.settle().await;
        schedule
    })
}

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("SCHEDULES").map_or(60, |count| count.parse().expect("a number of schedules"))
}

#[test]
fn no_two_candidates_ever_lead_at_once() {
    let mut leads = 0;
    for seed in seeds() {
        let schedule = run(seed, OURS);
        assert_eq!(
            schedule.overlaps.get(),
            0,
            "two lead with seed {seed}\n{}",
            schedule.network.logged()
        );
        leads += schedule.leads.get();
    }
    println!("somebody came to lead {leads} times");
    assert!(
        leads as u64 >= 3 * seeds().end,
        "{leads} times: the schedules do not reach what they should"
    );
}

#[test]
fn without_any_rule_two_lead() {
    for rules in [
        ScheduleRules {
            versions: false,
            ..OURS
        },
        ScheduleRules {
            renew_deadline: LEASE_DURATION + RETRY_PERIOD,
            ..OURS
        },
        // As with client-go: who has not seen the last renewal knows nothing of it. What the two
        // write names its version.
        ScheduleRules {
            kept: false,
            ..OURS
        },
    ] {
        let overlaps = |seed| run(seed, rules).overlaps.get() > 0;
        assert!(seeds().any(overlaps), "{rules:?} are enough");
    }
}

#[test]
fn a_seed_repeats_its_schedule() {
    let [one, other] = [run(1, OURS), run(1, OURS)];
    assert_eq!(one.network.logged(), other.network.logged());
}

#[test]
fn whoever_leads_no_more_is_followed_in_time() {
    for seed in 0..10 {
        on_paused_clock(followed(seed));
    }
}

/// Leaders that are stopped or killed, one after the other.
async fn followed(seed: u64) {
    let network = LossyNetwork::new(serve(vec![]).await, seed, GOOD);
    let bed = ElectionBed::behind(&network);
    let mut replicas: Vec<_> = (0..REPLICAS)
        .map(|number| bed.replica(&number.to_string(), settings(LEASE_DURATION)))
        .collect();
    let (mut gone, mut limit) = (None, MOMENT);
    for number in REPLICAS..12 {
        let opened = select_all(
            replicas
                .iter()
                .map(|replica| Box::pin(replica.fence.opened())),
        );
        let leader = timeout(limit, opened).await.map(|(_, leader, _)| leader);
        let leader = leader.unwrap_or_else(|_| {
            panic!(
                "seed {seed}: nobody leads after {limit:?}\n{}",
                network.logged()
            )
        });
        let leader = replicas.swap_remove(leader);
        let mut others = replicas.iter().map(|replica| &replica.fence).chain(&gone);
        assert!(
            !others.any(Fence::is_open),
            "seed {seed}: two lead\n{}",
            network.logged()
        );
        sleep(network.time(3 * LEASE_DURATION)).await;
        assert!(
            leader.fence.is_open(),
            "seed {seed}: it does not lead on\n{}",
            network.logged()
        );
        gone = Some(leader.fence.clone());
        limit = if network.random(2) == 0 {
            network.log("leader", "is stopped");
            leader.end().await;
            MOMENT
        } else {
            network.log("leader", "is killed");
            leader.kill().await;
            LEASE_DURATION + RETRY_PERIOD
        };
        replicas.push(bed.replica(&number.to_string(), settings(LEASE_DURATION)));
    }
}
