//! A seed whose clock only tests advance, and what the weeder does there.

use super::*;
use crate::config::Service;
use crate::selector::Selector;
use crate::verdict::{CrashLoop, Termination};

pub const ETCD: &str = "etcd";
pub const API: &str = "api";
/// Seconds for which a window is open.
pub const WATCH: f64 = 300.0;

/// Every step is at the same time, unless it says otherwise.
pub struct Seed {
    pub namespaces: Namespaces,
    pub now: Instant,
    in_flight: Vec<Deletion>,
}

/// A standby that has listed nothing yet, with this limit per owner.
pub fn waiting(limit: Option<u32>) -> Seed {
    Seed {
        namespaces: Namespaces::new(config(&[ETCD, API], limit)),
        now: Instant::now(),
        in_flight: Vec::new(),
    }
}

/// The leader of an empty seed.
pub fn leading() -> Seed {
    leading_with(None)
}

pub fn leading_with(limit: Option<u32>) -> Seed {
    let mut seed = waiting(limit);
    seed.leads().lists_slices(&[]).lists_pods([]);
    seed
}

/// The same, where etcd has just become ready.
pub fn recovered() -> Seed {
    recovered_with(None)
}

pub fn recovered_with(limit: Option<u32>) -> Seed {
    let mut seed = leading_with(limit);
    seed.ready(ETCD);
    seed
}

/// What happens.
impl Seed {
    pub fn leads(&mut self) -> &mut Self {
        self.namespaces.lead(self.now);
        self
    }

    pub fn pass(&mut self, seconds: f64) -> &mut Self {
        self.now += Duration::from_secs_f64(seconds);
        self
    }

    /// The only slice of a Service, `namespace/service`, has a ready endpoint.
    pub fn ready(&mut self, service: &str) -> &mut Self {
        self.slice(service, service, "e")
    }

    pub fn unready(&mut self, service: &str) -> &mut Self {
        self.slice(service, service, "")
    }

    pub fn slice(&mut self, name: &str, service: &str, endpoints: &str) -> &mut Self {
        self.slices(Change::Applied(key(name), slice(service, endpoints)))
    }

    /// All slices are listed, each with its Service's name and these endpoints.
    pub fn lists_slices(&mut self, slices: &[(&str, &str)]) -> &mut Self {
        let slices = slices
            .iter()
            .map(|(service, endpoints)| (key(service), slice(service, endpoints)));
        self.slices(listed(slices.map(|(key, slice)| (key, Some(slice)))))
    }

    pub fn slices(&mut self, change: Change<Slice>) -> &mut Self {
        self.namespaces.apply_slices(change, self.now);
        self
    }

    pub fn pods(&mut self, change: Change<DeletionCandidate>) -> &mut Self {
        self.namespaces.apply_pods(change, self.now);
        self
    }

    /// A pod of `owner` that depends on etcd crash-loops.
    pub fn crashes(&mut self, pod: &str) -> &mut Self {
        self.shows(self::pod(pod))
    }

    pub fn shows(&mut self, pod: Pod) -> &mut Self {
        self.pods(Change::Applied(pod.key, pod.candidate))
    }

    /// So many pods of a namespace crash-loop, each of an owner of its own.
    pub fn crash_in(&mut self, namespace: &str, count: usize) -> &mut Self {
        for number in 0..count {
            self.shows(pod(&format!("{namespace}/{number:02}")).alone());
        }
        self
    }

    /// The same, and etcd recovers there.
    pub fn recovers_with(&mut self, namespace: &str, count: usize) -> &mut Self {
        self.crash_in(namespace, count);
        self.ready(&format!("{namespace}/{ETCD}"))
    }

    /// A pod is gone or well.
    pub fn heals(&mut self, pod: &str) -> &mut Self {
        self.pods(Change::Gone(key(pod)))
    }

    pub fn lists_pods(&mut self, pods: impl IntoIterator<Item = Pod>) -> &mut Self {
        let pods = pods.into_iter();
        let pods = pods.map(|pod| (pod.key, Some(pod.candidate)));
        self.pods(listed(pods))
    }

    pub fn reconfigures(&mut self, services: &[&str], limit: Option<u32>) -> &mut Self {
        let config = config(services, limit);
        self.namespaces.reconfigure(config, self.now);
        self
    }

    /// The right to delete pods is found to be missing.
    pub fn misses_right(&mut self) -> &mut Self {
        self.namespaces.miss_right(self.now);
        self
    }

    /// A DELETE in flight gets its answer.
    #[track_caller]
    pub fn answers(&mut self, uid: &str, outcome: Outcome) -> &mut Self {
        let sent = self.in_flight.iter().position(|sent| sent.uid == uid);
        let sent = self.in_flight.swap_remove(sent.expect("in flight"));
        self.namespaces.ended(&sent, outcome, self.now);
        self
    }
}

/// What follows.
impl Seed {
    /// Sends what is due, and returns it.
    pub fn send(&mut self) -> Vec<Deletion> {
        let sent = self.namespaces.due(self.now);
        self.in_flight.extend(sent.iter().cloned());
        sent
    }

    /// Deletions are sent of the pods with these UIDs, and get no answer yet.
    #[track_caller]
    pub fn sends(&mut self, uids: &str) -> &mut Self {
        let sent: Vec<_> = self.send().into_iter().map(|sent| sent.uid).collect();
        assert_eq!(sent.join(" "), uids);
        self
    }

    /// Sends what is due, and gives each the same answer. Returns the UIDs.
    pub fn try_all(&mut self, outcome: Outcome) -> Vec<String> {
        let sent = self.namespaces.due(self.now);
        for sent in &sent {
            self.namespaces.ended(sent, outcome, self.now);
        }
        sent.into_iter().map(|sent| sent.uid).collect()
    }

    #[track_caller]
    pub fn tries(&mut self, uids: &str, outcome: Outcome) -> &mut Self {
        assert_eq!(self.try_all(outcome).join(" "), uids);
        self
    }

    #[track_caller]
    pub fn deletes(&mut self, uids: &str) -> &mut Self {
        self.tries(uids, Outcome::Deleted)
    }

    /// Time until the next deadline.
    pub fn next(&self) -> Option<f64> {
        let next = self.namespaces.next(self.now)?;
        Some((next - self.now).as_secs_f64())
    }

    /// Nothing is due for so many seconds, which pass.
    #[track_caller]
    pub fn waits(&mut self, seconds: f64) -> &mut Self {
        self.sends("");
        assert_eq!(self.next(), Some(seconds));
        self.pass(seconds)
    }

    /// A first window of a Service that was ready before opens within half a minute.
    #[track_caller]
    pub fn waits_for_its_turn(&mut self) -> &mut Self {
        self.sends("");
        let wait = self.next().expect("a first window");
        assert!(wait > 0.0 && wait <= 30.0, "{wait}");
        self.pass(wait)
    }

    /// Nothing is to come.
    #[track_caller]
    pub fn rests(&mut self) -> &mut Self {
        self.sends("");
        assert_eq!(self.next(), None);
        self
    }

    /// These windows have opened and closed since the last time, each for its reason.
    #[track_caller]
    pub fn windows(&mut self, expected: &str) -> &mut Self {
        self.sends("");
        let events = self.namespaces.take_events();
        let word = |change| match change {
            WindowChange::Opened(reason) => reason.into_str(),
            WindowChange::Closed(reason) => reason.into_str(),
        };
        let events: Vec<_> = events
            .iter()
            .map(|event| format!("{} {}", event.service, word(event.change)))
            .collect();
        assert_eq!(events.join(", "), expected);
        self
    }

    /// No state is left.
    #[track_caller]
    pub fn is_empty(&mut self) {
        self.rests();
        assert_eq!(self.namespaces.count(), 0);
    }
}

/// A pod that crash-loops.
#[derive(Clone)]
pub struct Pod {
    pub key: Key,
    pub candidate: DeletionCandidate,
}

/// `namespace/name=uid`, of `owner` and dependent on etcd.
pub fn pod(text: &str) -> Pod {
    let (name, uid) = text.split_once('=').unwrap_or((text, text));
    Pod {
        key: key(name),
        candidate: DeletionCandidate {
            uid: uid.to_owned(),
            resource_version: "1".to_owned(),
            owner: "owner".to_owned(),
            services: vec![ETCD.into()],
            crash_loop: CrashLoop::Reported,
        },
    }
}

impl Pod {
    fn with(mut self, change: impl FnOnce(&mut DeletionCandidate)) -> Self {
        change(&mut self.candidate);
        self
    }

    /// It has an owner of its own.
    pub fn alone(self) -> Self {
        self.with(|pod| pod.owner = pod.uid.clone())
    }

    pub fn on(self, services: &[&str]) -> Self {
        self.with(|pod| pod.services = services.iter().map(|name| (*name).into()).collect())
    }

    pub fn version(self, version: &str) -> Self {
        self.with(|pod| pod.resource_version = version.to_owned())
    }

    /// Its containers are terminated, each after so many restarts.
    pub fn terminated(self, containers: &[(&str, i32)]) -> Self {
        let termination = |(container, restarts): &(&str, i32)| Termination {
            container: (*container).to_owned(),
            restarts: *restarts,
        };
        let terminations = containers.iter().map(termination).collect();
        self.with(|pod| pod.crash_loop = CrashLoop::Terminated(terminations))
    }
}

/// A config with these Services, whose selectors match any pod, and this limit.
pub fn config(services: &[&str], max_deletions_per_owner: Option<u32>) -> Arc<Config> {
    let service = |name: &&str| Service {
        name: (*name).into(),
        selectors: vec![Selector::all_of([])],
    };
    Arc::new(Config {
        watch_duration: Duration::from_secs_f64(WATCH),
        services: services.iter().map(service).collect(),
        max_deletions_per_owner,
    })
}

/// `namespace/name`, or a name in the usual namespace.
pub fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').unwrap_or(("shoot", text));
    Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A list as a watch delivers it; `None` stands for what cannot be read.
pub fn listed<V>(objects: impl IntoIterator<Item = (Key, Option<V>)>) -> Change<V> {
    let mut listed = Listed::<V>::new();
    for (Key { namespace, name }, object) in objects {
        listed.entry(namespace).or_default().insert(name, object);
    }
    Change::Listed(listed)
}

/// `service` may be a key.
pub fn slice(service: &str, endpoints: &str) -> Slice {
    Slice {
        service: key(service).name.into(),
        ready: endpoints.split_whitespace().map(str::to_owned).collect(),
    }
}
