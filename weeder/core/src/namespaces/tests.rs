mod cost;
mod deletions;
mod fairness;
mod histories;
mod model;
mod observing;
mod reconfigure;
mod refusals;
mod rounds;
mod standby;
mod terminations;
mod windows;

use std::time::Duration;

use super::*;
use crate::config::Service;
use crate::selector::Selector;
use crate::verdict::{CrashLoop, Termination};
use crate::window::{CloseReason, WindowChange};

const SECOND: Duration = Duration::from_secs(1);
/// Time for which a container must be observed terminated.
const TERMINATED_FOR: Duration = Duration::from_secs(4);
const WATCH_DURATION: Duration = Duration::from_secs(300);
const ETCD: &str = "etcd";
const API: &str = "api";

/// A seed whose clock only tests advance.
struct TestSeed {
    namespaces: Namespaces,
    now: Instant,
}

impl TestSeed {
    /// An empty seed on which this process leads.
    fn leading(limit: Option<u32>) -> Self {
        let mut seed = Self::waiting(limit);
        seed.lead();
        seed.list_slices(&[]);
        seed.list_pods(&[]);
        seed
    }

    /// The same, where a Service has just become ready.
    fn recovered(limit: Option<u32>) -> Self {
        let mut seed = Self::leading(limit);
        seed.slice("s", ETCD, &["e"]);
        seed
    }

    fn waiting(limit: Option<u32>) -> Self {
        Self {
            namespaces: Namespaces::new(config(&[ETCD, API], limit)),
            now: Instant::now(),
        }
    }

    fn lead(&mut self) {
        self.namespaces.lead(self.now);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn slice(&mut self, name: &str, service: &str, ready: &[&str]) {
        self.namespaces
            .apply_slices(Change::Applied(key(name), slice(service, ready)), self.now);
    }

    /// That Service fails and recovers.
    fn flap(&mut self) {
        self.slice("s", ETCD, &[]);
        self.slice("s", ETCD, &["e"]);
    }

    fn remove_slice(&mut self, name: &str) {
        self.namespaces
            .apply_slices(Change::Gone(key(name)), self.now);
    }

    fn lose_slices(&mut self) {
        self.namespaces.apply_slices(Change::Lost, self.now);
    }

    fn lose_pods(&mut self) {
        self.namespaces.apply_pods(Change::Lost, self.now);
    }

    fn list_slices(&mut self, slices: &[(&str, Slice)]) {
        let slices = slices
            .iter()
            .map(|(name, slice)| (*name, Some(slice.clone())));
        self.namespaces
            .apply_slices(Change::Listed(listed(slices)), self.now);
    }

    fn list_pods(&mut self, pods: &[(&str, DeletionCandidate)]) {
        let pods = pods
            .iter()
            .map(|(name, candidate)| (*name, Some(candidate.clone())));
        self.namespaces
            .apply_pods(Change::Listed(listed(pods)), self.now);
    }

    /// A pod that depends on these Services crash-loops.
    fn pod(&mut self, name: &str, uid: &str, services: &[&str]) {
        self.show(name, candidate(uid, "owner", services));
    }

    /// Lets the watch deliver a pod.
    fn show(&mut self, name: &str, candidate: DeletionCandidate) {
        self.namespaces
            .apply_pods(Change::Applied(key(name), candidate), self.now);
    }

    /// The container of a pod terminated, after so many restarts.
    fn terminated(&mut self, name: &str, uid: &str, restarts: i32) {
        self.show(name, terminated(uid, &[("c", restarts)], &[ETCD]));
    }

    fn pod_is_fine(&mut self, name: &str) {
        self.namespaces
            .apply_pods(Change::Gone(key(name)), self.now);
    }

    fn due(&mut self) -> Vec<Deletion> {
        self.namespaces.due(self.now)
    }

    fn ended(&mut self, deletion: &Deletion, outcome: Outcome) {
        self.namespaces.ended(deletion, outcome, self.now);
    }

    /// UIDs of the pods deleted now, with this outcome for every DELETE.
    fn deletes(&mut self, outcome: Outcome) -> Vec<String> {
        let due = self.due();
        due.iter()
            .for_each(|deletion| self.ended(deletion, outcome));
        due.into_iter().map(|deletion| deletion.uid).collect()
    }

    fn deleted(&mut self) -> Vec<String> {
        self.deletes(Outcome::Deleted)
    }

    /// Window events so far.
    fn events(&mut self) -> Vec<(&'static str, WindowChange)> {
        let due = self.due();
        assert!(due.is_empty(), "{due:?}");
        let name = |service: &str| {
            let mut names = [ETCD, API, "one", "two"].into_iter();
            names.find(|name| *name == service).expect("a known name")
        };
        let events = self.namespaces.take_events();
        events
            .iter()
            .map(|event| (name(&event.service), event.change))
            .collect()
    }

    /// True if no state is left.
    fn is_empty(&mut self) -> bool {
        self.namespaces.take_events();
        self.namespaces.count() == 0
    }

    /// Time of the next deadline.
    fn next(&self) -> Option<Instant> {
        self.namespaces.next(self.now)
    }

    fn reconfigure(&mut self, config: Arc<Config>) {
        self.namespaces.reconfigure(config, self.now);
    }

    /// Advances to the next deadline.
    fn skip(&mut self) -> Duration {
        let next = self.next().expect("something is to come");
        let waited = next - self.now;
        self.now = next;
        waited
    }
}

/// A config with these Services, whose selectors match any pod, and this limit.
fn config(services: &[&str], max_deletions_per_owner: Option<u32>) -> Arc<Config> {
    let service = |name: &&str| Service {
        name: (*name).into(),
        selectors: vec![Selector::all_of([])],
    };
    let services = services.iter().map(service).collect();
    Arc::new(Config {
        watch_duration: WATCH_DURATION,
        services,
        max_deletions_per_owner,
    })
}

fn key(name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap_or(("shoot", name));
    Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A list as a watch delivers it.
fn listed<'a, V>(objects: impl IntoIterator<Item = (&'a str, Option<V>)>) -> Listed<V> {
    let mut listed = Listed::new();
    for (name, object) in objects {
        let Key { namespace, name } = key(name);
        listed.entry(namespace).or_default().insert(name, object);
    }
    listed
}

fn slice(service: &str, ready: &[&str]) -> Slice {
    Slice {
        service: service.into(),
        ready: ready
            .iter()
            .map(|endpoint| (*endpoint).to_owned())
            .collect(),
    }
}

fn candidate(uid: &str, owner: &str, services: &[&str]) -> DeletionCandidate {
    candidate_at("1", uid, owner, services)
}

/// A pod of this version.
fn candidate_at(
    resource_version: &str,
    uid: &str,
    owner: &str,
    services: &[&str],
) -> DeletionCandidate {
    let [uid, resource_version, owner] = [uid, resource_version, owner].map(str::to_owned);
    DeletionCandidate {
        uid,
        resource_version,
        owner,
        services: services.iter().map(|name| (*name).into()).collect(),
        crash_loop: CrashLoop::Reported,
    }
}

/// A pod whose containers are terminated, each after so many restarts.
fn terminated(uid: &str, containers: &[(&str, i32)], services: &[&str]) -> DeletionCandidate {
    let termination = |(container, restarts): &(&str, i32)| Termination {
        container: (*container).to_owned(),
        restarts: *restarts,
    };
    let crash_loop = CrashLoop::Terminated(containers.iter().map(termination).collect());
    DeletionCandidate {
        crash_loop,
        ..candidate(uid, "owner", services)
    }
}

const OPENED: WindowChange = WindowChange::Opened(OpenReason::Recovery);
const OPENED_AT_START: WindowChange = WindowChange::Opened(OpenReason::Start);
const OVER: WindowChange = WindowChange::Closed(CloseReason::Over);
const NOT_READY: WindowChange = WindowChange::Closed(CloseReason::NotReady);
