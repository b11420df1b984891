//! A seed in memory, candidates that have Gardener's rights there and no more, and the network between
//! them: without sockets, so that tokio's paused clock goes with it. A request arrives although its
//! sender has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use api_server::{
    Authority, Fault, FaultId, MemoryApi, Options, PATIENCE, Record, Rule, User, When, Wire,
};
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::{Election, LeaderElector, Lost, campaign};
use http::Request;
use http::Response;
use http::header::{AUTHORIZATION, HeaderValue};
use kube::Client;
use kube::client::Body;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub const GARDEN: &str = "garden";
pub const LEASE: &str = "dwd-prober-leader-election";
pub const LEASES: &str = "leases.coordination.k8s.io";
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// The longest time that a request or an answer is under way, in a good network and in a rough one,
/// where one of twenty gets lost, too; three of four take at most a twentieth of it.
const LONGEST: Duration = Duration::from_millis(50);
pub const LONGEST_IN_ROUGH: Duration = Duration::from_secs(24);
/// Longer than a few requests take in the good one.
pub const MOMENT: Duration = Duration::from_millis(500);

/// The default times of the flags, but for the renew deadline, which is 10 s.
pub fn settings(renew_deadline: u64) -> LeaderElection {
    LeaderElection {
        enabled: true,
        namespace: GARDEN.into(),
        lease_duration: LEASE_DURATION,
        renew_deadline: Duration::from_secs(renew_deadline),
        retry_period: RETRY_PERIOD,
    }
}

fn is_for_lease(record: &Record, verb: &str) -> bool {
    record.verb == verb && record.resource == LEASES
}

pub async fn soon<T>(act: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, act).await;
    done.expect("it does not take that long")
}

pub struct Bed {
    pub server: MemoryApi,
    pub is_rough: AtomicBool,
    rng: Mutex<StdRng>,
    log: Mutex<Vec<String>>,
    start: Instant,
}

/// One process's access to the network.
#[derive(Clone)]
pub struct Link {
    pub of: Arc<str>,
    bed: Arc<Bed>,
    cut: Arc<AtomicBool>,
}

impl Bed {
    pub async fn start() -> Arc<Self> {
        Self::with(0).await
    }

    /// A network whose random numbers begin with this seed.
    pub async fn with(seed: u64) -> Arc<Self> {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().unwrap();
        let server = MemoryApi::start(&authority, Options::default())
            .await
            .unwrap();
        // Less than rule 83 grants.
        let lease = Rule::new("get,update", LEASES).in_namespace(GARDEN);
        let rules = vec![
            Rule::new("create", LEASES).in_namespace(GARDEN),
            lease.named(LEASE),
            Rule::new("create", "events").in_namespace(GARDEN),
        ];
        server
            .access()
            .grant("prober", User::limited("prober", rules));
        Arc::new(Self {
            server,
            is_rough: AtomicBool::new(false),
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            log: Mutex::default(),
            start: Instant::now(),
        })
    }

    /// A random number below this.
    pub fn random(&self, below: u64) -> u64 {
        self.rng.lock().unwrap().random_range(0..below)
    }

    pub fn time(&self, longest: Duration) -> Duration {
        Duration::from_millis(self.random(longest.as_millis() as u64 + 1))
    }

    /// Logs what happens.
    pub fn log(&self, who: &str, what: &str) {
        let line = format!("{:>8.3} {who}: {what}", self.start.elapsed().as_secs_f64());
        self.log.lock().unwrap().push(line);
    }

    pub fn logged(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub fn link(self: &Arc<Self>, of: &str) -> Link {
        Link {
            of: of.into(),
            bed: Arc::clone(self),
            cut: Arc::default(),
        }
    }

    /// A replica that leads.
    pub async fn leader(self: &Arc<Self>) -> Replica {
        let replica = self.replica("one");
        replica.leads().await;
        replica
    }

    /// A replica whose work is to wait for its end.
    pub fn replica(self: &Arc<Self>, identity: &str) -> Replica {
        let link = self.link(identity);
        let (events, recorder) = link.events();
        let (elector, election) = link.candidate(settings(10), events);
        let (stop, alive) = (CancellationToken::new(), Arc::new(()));
        let (until, work) = (stop.clone().cancelled_owned(), Arc::downgrade(&alive));
        let campaign = campaign(elector, async move {
            let _alive = alive;
            until.await;
        });
        Replica {
            task: tokio::spawn(async move {
                let _recorder = recorder;
                campaign.await
            }),
            link,
            election,
            stop,
            work,
        }
    }

    /// The spec of the Lease; null when there is none.
    pub fn lease(&self) -> Value {
        let lease = self.server.store().get(LEASES, GARDEN, LEASE);
        lease.unwrap_or_default()["spec"].take()
    }

    pub fn holder(&self) -> String {
        self.lease()["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn patch(&self, patch: &str) {
        let (store, patch) = (self.server.store(), patch.parse().unwrap());
        store.patch(LEASES, GARDEN, LEASE, &patch).unwrap();
    }

    pub fn delete(&self) {
        self.server.store().delete(LEASES, GARDEN, LEASE).unwrap();
    }

    /// So many requests for the Lease with this verb meet a fault.
    pub fn fails(&self, verb: &str, times: u64, fault: &Fault) -> FaultId {
        let when = When::verb(verb, LEASES).times(times);
        self.server.faults().add(when, fault.clone())
    }

    pub fn count(&self, verb: &str) -> usize {
        self.server
            .requests()
            .count(|record| is_for_lease(record, verb))
    }

    /// Waits for more requests for the Lease with this verb.
    pub async fn asked(&self, verb: &str, more: usize) {
        let count = self.count(verb) + more;
        let asked = self.server.requests().wait_for(|records| {
            let asked = records.iter().filter(|record| is_for_lease(record, verb));
            (asked.count() >= count).then_some(())
        });
        soon(asked).await;
    }

    /// Fails if anything was forbidden.
    pub fn check(&self) {
        let is_forbidden = |record: &Record| matches!(record.status, Some(401 | 403));
        assert_eq!(self.server.requests().count(is_forbidden), 0);
    }
}

impl Link {
    pub fn candidate(&self, settings: LeaderElection, events: Events) -> (LeaderElector, Election) {
        LeaderElector::new(self.client(), settings, LEASE, &self.of, events)
    }

    /// Takes Events, which are written as long as the task is kept.
    pub fn events(&self) -> (Events, AbortOnDropHandle<()>) {
        Events::start(self.client(), GARDEN, LEASE)
    }

    /// Until it is undone, nothing that arrives is heard of.
    pub fn cut(&self, cut: bool) {
        self.bed.log(
            &self.of,
            if cut {
                "is cut off"
            } else {
                "is connected again"
            },
        );
        self.cut.store(cut, Ordering::Relaxed);
    }

    fn client(&self) -> Client {
        let link = self.clone();
        let send = move |mut request: Request<Body>| {
            let token = HeaderValue::from_static("Bearer prober");
            request.headers_mut().insert(AUTHORIZATION, token);
            let (to, answer) = oneshot::channel();
            tokio::spawn(link.clone().carry(request, to));
            answer
        };
        Client::new(tower::service_fn(send), GARDEN)
    }

    async fn carry(self, request: Request<Body>, mut to: oneshot::Sender<Response<Wire>>) {
        let asked = format!("{} {}", request.method(), request.uri());
        if self.travels(&mut to).await
            && let Ok(answer) = self.bed.server.answer(request).await
        {
            self.bed.log(
                &self.of,
                &format!("{asked} is answered {}", answer.status()),
            );
            if self.travels(&mut to).await {
                // Whoever does not wait for it any longer needs no answer.
                to.send(answer).ok();
            }
        }
    }

    /// Waits until it has got there, or is known not to. Returns whether it has.
    async fn travels(&self, sender: &mut oneshot::Sender<Response<Wire>>) -> bool {
        let (bed, is_rough) = (&self.bed, self.bed.is_rough.load(Ordering::Relaxed));
        let is_lost = is_rough && bed.random(20) == 0;
        if is_lost && bed.random(2) == 0 {
            // The connection ends.
            return false;
        }
        let longest = if is_rough { LONGEST_IN_ROUGH } else { LONGEST };
        let is_slow = bed.random(4) == 0;
        sleep(bed.time(if is_slow { longest } else { longest / 20 })).await;
        if is_lost || self.cut.load(Ordering::Relaxed) {
            sender.closed().await;
            return false;
        }
        true
    }
}

pub struct Replica {
    pub link: Link,
    pub election: Election,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Lost>>,
    /// Its work, until it has ended.
    work: Weak<()>,
}

impl Replica {
    pub async fn leads(&self) {
        soon(self.election.elected()).await;
    }

    /// Ends its work.
    pub async fn end(self) {
        self.stop.cancel();
        self.ended().await.unwrap();
    }

    /// Waits for its end.
    pub async fn ended(self) -> Result<(), Lost> {
        let ended = soon(self.task).await.unwrap();
        assert!(!self.election.leads() && self.work.strong_count() == 0);
        ended
    }
}
