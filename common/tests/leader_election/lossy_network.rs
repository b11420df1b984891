//! The way between candidates and the API server in memory: without sockets, so that tokio's paused
//! clock goes with it. Requests and answers take any time and get lost, and a request arrives
//! although its sender has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api_server::{MemoryApi, Wire};
use chrono::{DateTime, SecondsFormat};
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::oneshot::{self, error::RecvError};
use tokio::time::{Instant, sleep};

use crate::bed::{GARDEN, LEASE, LEASES, TOKEN};

/// How the network treats what is sent.
#[derive(Clone, Copy, Debug)]
pub struct NetworkConditions {
    /// The longest time that a request or an answer is under way; three of four take at most a
    /// twentieth of it.
    pub longest: Duration,
    /// The probability with which a request gets lost, and an answer.
    pub losses: f64,
    /// Whether a PUT names the version that it was sent with; else the one that there is when it
    /// arrives.
    pub versions: bool,
}

pub const GOOD: NetworkConditions = NetworkConditions {
    longest: Duration::from_millis(50),
    losses: 0.0,
    versions: true,
};

/// What happens to one request or answer.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives(Duration),
    /// The connection ends.
    Breaks,
    /// Nobody hears anything.
    Vanishes,
}

/// Cheap to clone; all clones share the random numbers and the log.
#[derive(Clone)]
pub struct LossyNetwork {
    pub server: Arc<MemoryApi>,
    state: Arc<Mutex<NetworkState>>,
}

struct NetworkState {
    conditions: NetworkConditions,
    rng: StdRng,
    log: Vec<String>,
    start: Instant,
}

/// One process's access to the network.
#[derive(Clone)]
pub struct Link {
    pub of: Arc<str>,
    network: LossyNetwork,
    cut: Arc<AtomicBool>,
}

impl LossyNetwork {
    pub fn new(server: Arc<MemoryApi>, seed: u64, conditions: NetworkConditions) -> Self {
        let state = NetworkState {
            conditions,
            rng: StdRng::seed_from_u64(seed),
            log: Vec::new(),
            start: Instant::now(),
        };
        Self {
            server,
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub fn set(&self, conditions: NetworkConditions) {
        self.state().conditions = conditions;
    }

    pub fn link(&self, of: &str) -> Link {
        Link {
            of: of.into(),
            network: self.clone(),
            cut: Arc::default(),
        }
    }

    /// A random time.
    pub fn time(&self, longest: Duration) -> Duration {
        self.state().time(longest)
    }

    /// A random number below this.
    pub fn random(&self, below: u32) -> u32 {
        self.state().rng.random_range(0..below)
    }

    /// Logs what happens.
    pub fn log(&self, who: &str, what: &str) {
        let mut state = self.state();
        let line = format!("{:>8.3} {who}: {what}", state.start.elapsed().as_secs_f64());
        state.log.push(line);
    }

    pub fn logged(&self) -> String {
        self.state().log.join("\n")
    }

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap()
    }

    /// A request as it arrives. Its sender's clock shows anything: no rule may rest on it.
    async fn arriving(&self, request: Request<Body>) -> Request<Body> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(
            AUTHORIZATION,
            HeaderValue::try_from(format!("Bearer {TOKEN}")).unwrap(),
        );
        let mut body = body.collect_bytes().await.unwrap().to_vec();
        if let Ok(mut object) = serde_json::from_slice::<Value>(&body)
            && object["kind"] == "Lease"
        {
            object["spec"]["renewTime"] = self.state().stamp().into();
            if head.method == Method::PUT && !self.state().conditions.versions {
                let there = self
                    .server
                    .store()
                    .get(LEASES, GARDEN, LEASE)
                    .unwrap_or_default();
                object["metadata"]["resourceVersion"] =
                    there["metadata"]["resourceVersion"].clone();
            }
            body = object.to_string().into_bytes();
        }
        Request::from_parts(head, body.into())
    }
}

impl NetworkState {
    fn time(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_millis()).unwrap();
        Duration::from_millis(self.rng.random_range(0..=longest))
    }

    fn fate(&mut self) -> Fate {
        let NetworkConditions {
            longest, losses, ..
        } = self.conditions;
        if self.rng.random_bool(losses) {
            return if self.rng.random() {
                Fate::Breaks
            } else {
                Fate::Vanishes
            };
        }
        let slow = self.rng.random_ratio(1, 4);
        Fate::Arrives(self.time(if slow { longest } else { longest / 20 }))
    }

    /// Some moment from 1970 to 2096.
    fn stamp(&mut self) -> String {
        let micros = self.rng.random_range(0..4_000_000_000_000_000);
        DateTime::from_timestamp_micros(micros)
            .unwrap()
            .to_rfc3339_opts(SecondsFormat::Micros, true)
    }
}

impl Link {
    pub fn client(&self) -> Client {
        let link = self.clone();
        Client::new(
            tower::service_fn(move |request: Request<Body>| link.clone().send(request)),
            GARDEN,
        )
    }

    /// Whether from now on no request or answer arrives. Open watches go on.
    pub fn cut(&self, cut: bool) {
        self.network.log(
            &self.of,
            if cut {
                "is cut off"
            } else {
                "is connected again"
            },
        );
        self.cut.store(cut, Ordering::Relaxed);
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Wire>, RecvError> {
        let fates = {
            let mut state = self.network.state();
            [state.fate(), state.fate()]
        };
        let (to, answer) = oneshot::channel();
        // It goes on when its sender waits no longer, or has ended.
        tokio::spawn(self.carry(request, fates, to));
        answer.await
    }

    async fn carry(
        self,
        request: Request<Body>,
        [there, back]: [Fate; 2],
        mut to: oneshot::Sender<Response<Wire>>,
    ) {
        let watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch"));
        let what = if watch {
            "watch".to_owned()
        } else {
            request.method().to_string()
        };
        if !self.travels(there, &mut to).await {
            return self.network.log(&self.of, &format!("{what} is lost"));
        }
        let request = self.network.arriving(request).await;
        let Ok(answer) = self.network.server.answer(request).await else {
            return;
        };
        self.network.log(
            &self.of,
            &format!("{what} is answered {}, {back:?}", answer.status()),
        );
        if self.travels(back, &mut to).await {
            // Whoever does not wait for it any longer needs no answer.
            to.send(answer).ok();
        }
    }

    /// Waits until it has got there, or is known not to. Returns whether it has.
    async fn travels(&self, fate: Fate, sender: &mut oneshot::Sender<Response<Wire>>) -> bool {
        match fate {
            Fate::Arrives(after) => sleep(after).await,
            Fate::Breaks => return false,
            Fate::Vanishes => {}
        }
        let lost = matches!(fate, Fate::Vanishes) || self.cut.load(Ordering::Relaxed);
        if lost {
            sender.closed().await;
        }
        !lost
    }
}
