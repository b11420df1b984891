//! One namespace: its Services, their windows, and the pods that may be deleted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use common::change::Key;
use tokio::time::Instant;

use super::deletion::{Deletion, Outcome, wait, wait_refused};
use super::news::{Cause, End, Event, Report};
use super::readiness::{Readiness, Turn};
use super::verdict::DeletionCandidate;
use super::window::{Opening, Phase, Window, spread};

#[derive(Debug)]
pub struct Namespace {
    name: String,
    pub readiness: Readiness,
    windows: BTreeMap<usize, Window>,
    pods: BTreeMap<String, Tracked>,
}

#[derive(Debug)]
struct Tracked {
    candidate: DeletionCandidate,
    attempt: Attempt,
    failures: u32,
    refusals: u32,
    /// The serial numbers of the windows that count it already, since an earlier attempt may have deleted it.
    counted: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be deleted as soon as a window is open.
    Due,
    InFlight,
    /// Failed: to be retried then.
    NotBefore(Instant),
    /// Deleted; the watch will show when it is gone.
    Done,
    /// Refused: to be retried then, after a change of the pod, or in another window.
    Refused(Instant),
    /// It is not as it was when it was judged: the watch will show how it is.
    Outdated,
}

impl Attempt {
    /// When time alone makes it due.
    const fn retry(self) -> Option<Instant> {
        match self {
            Self::NotBefore(then) | Self::Refused(then) => Some(then),
            Self::Due | Self::InFlight | Self::Done | Self::Outdated => None,
        }
    }
}

impl Tracked {
    /// When to retry after one more failure.
    fn failed(&mut self, retry_after: Option<Duration>, now: Instant) -> Attempt {
        self.failures = self.failures.saturating_add(1);
        Attempt::NotBefore(now + wait(self.failures, retry_after))
    }

    fn refused(&mut self, now: Instant) -> Attempt {
        self.refusals = self.refusals.saturating_add(1);
        Attempt::Refused(now + wait_refused(self.refusals))
    }
}

impl Namespace {
    pub fn new(name: String) -> Self {
        Self { name, readiness: Readiness::default(), windows: BTreeMap::new(), pods: BTreeMap::new() }
    }

    /// Opens and closes windows as the Services turned; `serial` is the last one given to a window.
    pub fn follow(&mut self, turns: Vec<Turn>, opening: Opening, serial: &mut u64) -> Vec<Report> {
        let mut reports = Vec::new();
        for turn in turns {
            match turn {
                Turn::Ready(service) => {
                    reports.extend(self.close(service, End::Renewed));
                    self.open(service, opening, serial);
                }
                Turn::NotReady(service) => reports.extend(self.close(service, End::NotReady)),
            }
        }
        reports
    }

    /// Opens the first window of each ready Service.
    pub fn lead(&mut self, opening: Opening, serial: &mut u64) {
        for service in self.readiness.ready().into_keys() {
            self.open(service, opening, serial);
        }
    }

    fn close(&mut self, service: usize, end: End) -> Option<Report> {
        let window = self.windows.remove(&service)?;
        window.is_open().then(|| Report { namespace: self.name.clone(), service, event: Event::Closed(end) })
    }

    fn open(&mut self, service: usize, opening: Opening, serial: &mut u64) {
        let Opening { cause, now, duration } = opening;
        let delay = match cause {
            Cause::Start => spread(&self.name, service, duration),
            Cause::Recovery => Duration::ZERO,
        };
        *serial += 1;
        self.windows.insert(service, Window::new(*serial, cause, now + delay, duration));
        // Whatever held a pod back has to do with an earlier window.
        for tracked in self.pods.values_mut().filter(|tracked| tracked.candidate.services.contains(&service)) {
            if tracked.attempt.retry().is_some() {
                tracked.attempt = Attempt::Due;
                (tracked.failures, tracked.refusals) = (0, 0);
            }
        }
    }

    /// Services have other places in the config now, or none any more; what happened to the windows of those.
    pub fn relocate(&mut self, place: impl Fn(usize) -> Option<usize>) -> Vec<Report> {
        self.readiness.relocate(&place);
        let dropped: Vec<usize> = self.windows.keys().copied().filter(|service| place(*service).is_none()).collect();
        let reports = dropped.into_iter().filter_map(|service| self.close(service, End::Dropped)).collect();
        let kept = std::mem::take(&mut self.windows).into_iter();
        self.windows = kept.filter_map(|(service, window)| Some((place(service)?, window))).collect();
        for tracked in self.pods.values_mut() {
            tracked.candidate.services = tracked.candidate.services.iter().filter_map(|&service| place(service)).collect();
        }
        reports
    }

    /// A pod may be deleted, as far as it goes by itself.
    pub fn apply_pod(&mut self, name: String, candidate: DeletionCandidate) {
        match self.pods.get_mut(&name) {
            Some(tracked) if tracked.candidate.uid == candidate.uid => {
                tracked.candidate = candidate;
                if matches!(tracked.attempt, Attempt::Refused(_) | Attempt::Outdated) {
                    tracked.attempt = Attempt::Due;
                }
            }
            _ => drop(
                self.pods.insert(name, Tracked { candidate, attempt: Attempt::Due, failures: 0, refusals: 0, counted: vec![] }),
            ),
        }
    }

    /// A pod is gone or must not be deleted any more.
    pub fn remove_pod(&mut self, name: &str) {
        self.pods.remove(name);
    }

    /// Only these pods are left: those listed, and those that could not be read.
    pub fn replace_pods(&mut self, candidates: HashMap<String, DeletionCandidate>, unreadable: &HashSet<String>) {
        self.pods.retain(|name, _| candidates.contains_key(name) || unreadable.contains(name));
        for (name, candidate) in candidates {
            self.apply_pod(name, candidate);
        }
    }

    /// Lets time go on for the windows; what happened to them.
    pub fn advance(&mut self, now: Instant) -> Vec<Report> {
        let mut reports = Vec::new();
        self.windows.retain(|&service, window| {
            let was_open = window.is_open();
            let phase = window.advance(now);
            let event = match phase {
                Phase::Opened => Some(Event::Opened(window.cause)),
                Phase::Over if was_open => Some(Event::Closed(End::Over)),
                Phase::Ahead | Phase::Open | Phase::Over => None,
            };
            reports.extend(event.map(|event| Report { namespace: self.name.clone(), service, event }));
            phase != Phase::Over
        });
        reports
    }

    /// Up to `room` deletions that are due because of windows with this cause, each marked as sent.
    pub fn due(&mut self, cause: Cause, limit: Option<u32>, room: usize, now: Instant) -> Vec<Deletion> {
        let mut deletions = Vec::new();
        for (name, tracked) in &mut self.pods {
            if deletions.len() == room {
                break;
            }
            if tracked.attempt.retry().is_some_and(|then| then <= now) {
                tracked.attempt = Attempt::Due;
            }
            let DeletionCandidate { uid, resource_version, owner, services } = &tracked.candidate;
            let is_counted = |window: &Window| tracked.counted.contains(&window.serial);
            let has_room = |window: &Window| {
                window.cause == cause && window.is_open() && (is_counted(window) || window.has_room(owner, limit))
            };
            let mut windows = services.iter().filter_map(|service| self.windows.get(service));
            if tracked.attempt != Attempt::Due || !windows.any(has_room) {
                continue;
            }
            let open = self.windows.iter_mut().filter(|(service, window)| services.contains(service) && window.is_open());
            let charged = open
                .filter(|(_, window)| !is_counted(window))
                .map(|(_, window)| {
                    window.charge(owner);
                    window.serial
                })
                .collect();
            tracked.attempt = Attempt::InFlight;
            let pod = Key { namespace: self.name.clone(), name: name.clone() };
            let [uid, resource_version, owner] = [uid, resource_version, owner].map(String::clone);
            deletions.push(Deletion { pod, uid, resource_version, owner, charged });
        }
        deletions
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        let tracked = self.pods.get_mut(&deletion.pod.name).filter(|tracked| tracked.candidate.uid == deletion.uid);
        if !matches!(outcome, Outcome::Deleted | Outcome::Unknown) {
            let charged = self.windows.values_mut().filter(|window| deletion.charged.contains(&window.serial));
            charged.for_each(|window| window.refund(&deletion.owner));
        }
        let Some(tracked) = tracked else { return };
        tracked.attempt = match outcome {
            Outcome::Deleted | Outcome::Gone => Attempt::Done,
            Outcome::Refused => tracked.refused(now),
            // The watch may have been faster than the answer.
            Outcome::Changed if tracked.candidate.resource_version != deletion.resource_version => Attempt::Due,
            Outcome::Changed => Attempt::Outdated,
            Outcome::Later(retry_after) => tracked.failed(retry_after, now),
            Outcome::Unknown => {
                tracked.counted.retain(|serial| self.windows.values().any(|window| window.serial == *serial));
                tracked.counted.extend(&deletion.charged);
                tracked.failed(None, now)
            }
        };
    }

    /// When time changes something next; asked after [`Namespace::advance`] and [`Namespace::due`].
    pub fn next(&self) -> Option<Instant> {
        let waits = |tracked: &&Tracked| tracked.candidate.services.iter().any(|service| self.windows.contains_key(service));
        let retries = self.pods.values().filter(waits).filter_map(|tracked| tracked.attempt.retry());
        retries.chain(self.next_phase()).min()
    }

    /// When time changes a window next.
    pub fn next_phase(&self) -> Option<Instant> {
        self.windows.values().map(Window::next).min()
    }

    pub fn open_windows(&self) -> usize {
        self.windows.values().filter(|window| window.is_open()).count()
    }

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.readiness.is_empty() && self.windows.is_empty() && self.pods.is_empty()
    }
}
