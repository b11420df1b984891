//! The election on random schedules, on tokio's paused clock: replicas that start, end, are
//! suspended and cut off at any moment, over a network that delays and loses whatever is sent. What
//! must hold: no two ever lead at once.
//!
//! A seed repeats its schedule; whatever fails prints it, and what happened. `SCHEDULES` says how
//! many are run (60).

use std::cell::RefCell;
use std::convert::Infallible;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{Fault, When};
use common::events::Events;
use common::leader_election::Election;
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use crate::bed::{
    Bed, GARDEN, LEASE, LEASE_DURATION, LEASES, LONGEST_IN_ROUGH, Link, MOMENT, RETRY_PERIOD,
    settings,
};

/// How long replicas start and end.
const ROUGH_TIME: Duration = Duration::from_secs(240);
/// A process lives no longer than this, and pauses no longer before the next one.
const LIFE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_secs(20);
/// How long a process is left in peace before it is suspended or cut off, and how long that lasts,
/// at most.
const PEACE: Duration = Duration::from_secs(80);
const TROUBLE: Duration = Duration::from_secs(32);

struct Schedule {
    bed: Arc<Bed>,
    renew_deadline: u64,
    end: Instant,
    /// Those of all processes.
    elections: RefCell<Vec<Election>>,
    /// How many led, each time that one began to.
    leading: RefCell<Vec<usize>>,
}

impl Schedule {
    async fn run(seed: u64, renew_deadline: u64) -> Self {
        let bed = Bed::with(seed).await;
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        let some = When::matches(move |_| rng.lock().unwrap().random_ratio(1, 20));
        bed.server.faults().add(some, Fault::status(500));
        bed.is_rough.store(true, Ordering::Relaxed);
        let schedule = Self {
            bed,
            renew_deadline,
            end: Instant::now() + ROUGH_TIME,
            elections: RefCell::default(),
            leading: RefCell::default(),
        };
        let replicas = join_all((0..3).map(|replica| schedule.live(replica)));
        tokio::join!(replicas, schedule.others());
        schedule.settle().await;
        schedule
    }

    /// The processes of one replica, one after the other.
    async fn live(&self, replica: usize) {
        for number in 1.. {
            sleep(self.bed.time(PAUSE)).await;
            if Instant::now() >= self.end {
                break;
            }
            self.process(&self.bed.link(&format!("{replica}.{number}")))
                .await;
        }
    }

    async fn process(&self, link: &Link) {
        let settings = settings(self.renew_deadline);
        let (mut elector, election) = link.candidate(settings, Events::none());
        self.elections.borrow_mut().push(election.clone());
        let part = async {
            elector.acquire().await;
            elector.renew().await
        };
        let part = timeout(self.bed.time(LIFE), self.disturbed(link, part));
        let lost = tokio::select! {
            biased;
            ended = part => ended.ok(),
            never = self.watch_over(link, &election) => match never {},
        };
        match lost {
            Some(lost) => self.bed.log(&link.of, &lost.to_string()),
            None if self.bed.random(2) == 0 => self.bed.log(&link.of, "is killed"),
            None => {
                self.bed.log(&link.of, "is stopped");
                elector.release().await;
            }
        }
    }

    /// Does an act as a process does it that is suspended and cut off at times.
    async fn disturbed<T>(&self, link: &Link, act: impl Future<Output = T>) -> T {
        let mut act = pin!(act);
        loop {
            if let Ok(done) = timeout(self.bed.time(PEACE), &mut act).await {
                return done;
            }
            let trouble = self.bed.time(TROUBLE);
            if self.bed.random(2) == 0 {
                self.bed
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

    /// Counts, whenever this process begins to lead, how many do. It needs no process that runs:
    /// one that is suspended goes on as it was.
    async fn watch_over(&self, link: &Link, election: &Election) -> Infallible {
        loop {
            election.elected().await;
            let leading = {
                let elections = self.elections.borrow();
                elections.iter().filter(|election| election.leads()).count()
            };
            self.bed.log(&link.of, &format!("leads, one of {leading}"));
            self.leading.borrow_mut().push(leading);
            election.while_leading(std::future::pending::<()>()).await;
        }
    }

    /// Changes of the Lease by others.
    async fn others(&self) {
        let store = self.bed.server.store();
        while Instant::now() < self.end {
            sleep(self.bed.time(PEACE / 2)).await;
            let label = self.bed.random(1000);
            let patch = json!({"metadata": {"labels": {"a": label.to_string()}}});
            // There may be none.
            store.patch(LEASES, GARDEN, LEASE, &patch).ok();
        }
    }

    /// Whatever has happened: who is left leads when the Lease is over, and gives it up.
    async fn settle(&self) {
        self.bed.server.faults().clear();
        self.bed.is_rough.store(false, Ordering::Relaxed);
        // What is still under way arrives.
        sleep(2 * LONGEST_IN_ROUGH).await;
        let (mut last, _) = self
            .bed
            .link("last")
            .candidate(settings(10), Events::none());
        let leads = timeout(LEASE_DURATION + RETRY_PERIOD + MOMENT, last.acquire()).await;
        leads.unwrap_or_else(|_| panic!("the last one does not lead\n{}", self.bed.logged()));
        last.release().await;
        assert_eq!(self.bed.holder(), "");
        self.bed.check();
    }

    fn overlaps(&self) -> bool {
        self.leading.borrow().iter().any(|leading| *leading > 1)
    }
}

fn run(seed: u64, renew_deadline: u64) -> Schedule {
    println!("seed {seed}");
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(Schedule::run(seed, renew_deadline))
}

fn seeds() -> Range<u64> {
    0..std::env::var("SCHEDULES").map_or(60, |count| count.parse().expect("a number of schedules"))
}

#[test]
fn no_two_candidates_ever_lead_at_once() {
    let mut leads = 0;
    for seed in seeds() {
        // With the longest deadline that the flags allow.
        let schedule = run(seed, LEASE_DURATION.as_secs());
        assert!(!schedule.overlaps(), "two lead\n{}", schedule.bed.logged());
        leads += schedule.leading.borrow().len() as u64;
    }
    assert!(
        leads >= 3 * seeds().end,
        "{leads} times: schedules do not reach what they should"
    );
}

#[test]
fn with_a_longer_deadline_two_lead() {
    // Polls, which see a renewal late, forgive a few seconds.
    let two_lead = |seed| run(seed, 22).overlaps();
    assert!(seeds().any(two_lead), "nobody notices");
}
