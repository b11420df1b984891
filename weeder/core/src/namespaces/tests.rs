mod deletions;
mod model;
mod observing;
mod reconfigure;
mod terminations;
mod windows;

use super::*;
use crate::config::Service;
use crate::selector::Selector;
use crate::verdict::{CrashLoop, Termination};

const SECOND: Duration = Duration::from_secs(1);
const WATCH_DURATION: Duration = Duration::from_secs(300);
const ETCD: usize = 0;
const API: usize = 1;

/// A seed in which time passes only as a test says.
struct Seed {
    namespaces: Namespaces,
    now: Instant,
}

impl Seed {
    /// A seed without slices and pods on which this process leads.
    fn leading(limit: Option<u32>) -> Self {
        let mut seed = Self::waiting(limit);
        seed.namespaces.lead(seed.now);
        seed.list_slices(&[]);
        seed.list_pods(&[]);
        seed
    }

    fn waiting(limit: Option<u32>) -> Self {
        Self {
            namespaces: Namespaces::new(config(&["etcd", "api"], limit)),
            now: Instant::now(),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn slice(&mut self, name: &str, service: usize, ready: &[&str]) {
        self.namespaces
            .slices(Change::Applied(key(name), slice(service, ready)), self.now);
    }

    fn list_slices(&mut self, slices: &[(&str, Slice)]) {
        let objects = slices
            .iter()
            .map(|(name, slice)| (key(name), slice.clone()))
            .collect();
        self.namespaces.slices(
            Change::Listed {
                objects,
                unreadable: HashSet::new(),
            },
            self.now,
        );
    }

    fn list_pods(&mut self, pods: &[(&str, DeletionCandidate)]) {
        let objects = pods
            .iter()
            .map(|(name, candidate)| (key(name), candidate.clone()))
            .collect();
        self.namespaces.pods(
            Change::Listed {
                objects,
                unreadable: HashSet::new(),
            },
            self.now,
        );
    }

    /// A pod crash-loops that waits for these Services.
    fn pod(&mut self, name: &str, uid: &str, services: &[usize]) {
        self.show(name, candidate(uid, "owner", services));
    }

    /// The watch shows a pod so.
    fn show(&mut self, name: &str, candidate: DeletionCandidate) {
        self.namespaces
            .pods(Change::Applied(key(name), candidate), self.now);
    }

    fn pod_is_fine(&mut self, name: &str) {
        self.namespaces.pods(Change::Gone(key(name)), self.now);
    }

    /// The deletions to send now.
    fn due(&mut self) -> Vec<Deletion> {
        self.namespaces.due(self.now)
    }

    /// The UIDs of the pods that are deleted now, every DELETE having this outcome.
    fn deletes(&mut self, outcome: Outcome) -> Vec<String> {
        let due = self.due();
        due.iter()
            .for_each(|deletion| self.namespaces.ended(deletion, outcome, self.now));
        due.into_iter().map(|deletion| deletion.uid).collect()
    }

    fn deleted(&mut self) -> Vec<String> {
        self.deletes(Outcome::Deleted)
    }

    /// What happened to windows until now.
    fn events(&mut self) -> Vec<(usize, Event)> {
        let due = self.due();
        assert!(due.is_empty(), "{due:?}");
        self.namespaces
            .reports()
            .into_iter()
            .map(|report| (report.service, report.event))
            .collect()
    }

    /// Whether there is nothing to remember.
    fn is_empty(&self) -> bool {
        let Namespaces {
            readiness,
            windows,
            pods,
            ..
        } = &self.namespaces;
        readiness.is_empty()
            && windows.is_empty()
            && pods.is_empty()
            && self.namespaces.count() == 0
    }

    /// Goes to the next instant at which something is to be done by itself.
    fn skip(&mut self) -> Duration {
        let next = self.namespaces.next().expect("something is to come");
        let waited = next - self.now;
        self.now = next;
        waited
    }
}

/// A config with these Services, whose selectors match any pod, and this limit.
fn config(services: &[&str], max_deletions_per_owner: Option<u32>) -> Arc<Config> {
    let service = |name: &&str| Service {
        name: (*name).to_owned(),
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

fn slice(service: usize, ready: &[&str]) -> Slice {
    Slice {
        service,
        ready: ready
            .iter()
            .map(|endpoint| (*endpoint).to_owned())
            .collect(),
    }
}

fn candidate(uid: &str, owner: &str, services: &[usize]) -> DeletionCandidate {
    candidate_at("1", uid, owner, services)
}

/// A pod in this state.
fn candidate_at(
    resource_version: &str,
    uid: &str,
    owner: &str,
    services: &[usize],
) -> DeletionCandidate {
    let [uid, resource_version, owner] = [uid, resource_version, owner].map(str::to_owned);
    DeletionCandidate {
        uid,
        resource_version,
        owner,
        services: services.to_vec(),
        crash_loop: CrashLoop::Reported,
    }
}

/// A pod whose containers are terminated, each after so many restarts.
fn terminated(uid: &str, containers: &[(&str, i32)], services: &[usize]) -> DeletionCandidate {
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

const OPENED: Event = Event::Opened(Cause::Recovery);
