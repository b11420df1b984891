//! A seed whose clock only tests advance, and stories of what happens there and what the weeder
//! does.
//!
//! ```text
//! lead; slices etcd=e api=; pods 1 on etcd+api; deletes 1; windows etcd start; waits 300 s
//! ```
//! A slice `namespace/etcd-1=e+f` belongs to the Service etcd, and has the endpoints e and f. A pod
//! `namespace/name=uid` crash-loops, depends on etcd, and has an owner in common with all others,
//! but for what is said.

use std::num::NonZeroU32;

use super::*;
use crate::config::Dependants;
use crate::selector::Selector;
use crate::verdict::{CrashLoop, Termination};

/// Seconds for which a window is open.
pub const WATCH: f64 = 300.0;

/// A standby at first that has listed nothing yet. Every step is at the same time, unless it says
/// otherwise.
pub struct Seed {
    pub namespaces: Namespaces,
    pub now: Instant,
    in_flight: Vec<Deletion>,
}

/// Tells stories, one a line: what it shows, and its steps.
#[track_caller]
pub fn tell(stories: &str) {
    for line in stories.lines().filter(|line| !line.trim().is_empty()) {
        let (what, story) = line.split_once(": ").expect(line);
        println!("{what}");
        begin(story);
    }
}

#[track_caller]
pub fn begin(story: &str) -> Seed {
    let config = Config {
        watch_duration: seconds(WATCH),
        services: ["etcd", "api"]
            .map(|name| (name.into(), every_pod()))
            .into(),
        max_deletions_per_owner: None,
    };
    let mut seed = Seed {
        namespaces: Namespaces::new(Arc::new(config)),
        now: Instant::now(),
        in_flight: Vec::new(),
    };
    seed.then(story);
    seed
}

impl Seed {
    #[track_caller]
    pub fn then(&mut self, story: &str) -> &mut Self {
        for step in story.split("; ") {
            let words: Vec<_> = step.trim().split(' ').collect();
            if !self.happens(&words) {
                let (expected, found) = self.follows(&words);
                assert_eq!(found, expected, "{step}");
            }
        }
        self
    }

    /// Something happens, if the words say so.
    #[rustfmt::skip]
    fn happens(&mut self, words: &[&str]) -> bool {
        let now = self.now;
        match *words {
            // The leader of an empty seed.
            ["leading"] => drop(self.then("lead; slices none; pods none")),
            // The same, where etcd has just become ready.
            ["recovered"] => drop(self.then("leading; etcd ready")),
            ["lead"] => self.namespaces.lead(now),
            [time, "s"] => self.now += seconds(number(time)),
            ["slices", "lost"] => self.namespaces.apply_slices(Change::Lost, now),
            ["slices", ref all @ ..] => self.namespaces.apply_slices(listed(all.iter().filter_map(|text| slice(text))), now),
            [name, "ready"] => self.apply_slice(&format!("{name}=e")),
            [name, "ready", endpoints] => self.apply_slice(&format!("{name}={endpoints}")),
            [name, "unready"] => self.apply_slice(&format!("{name}=")),
            [name, "removed"] => self.namespaces.apply_slices(Change::Gone(key(name)), now),
            ["pods", "lost"] => self.namespaces.apply_pods(Change::Lost, now),
            ["pods", "watched"] => self.namespaces.apply_pods(Change::Watched, now),
            ["pods", "none"] => self.namespaces.apply_pods(listed([]), now),
            ["pods", ref all @ ..] => self.namespaces.apply_pods(listed(pods(all)), now),
            ["crash", ref all @ ..] => {
                for (key, pod) in pods(all) {
                    self.namespaces.apply_pods(Change::Applied(key, pod.expect("readable")), now);
                }
            }
            // So many, each of an owner of its own.
            [count, "crash", "in", namespace, ref version @ ..] => {
                for number in 0..number(count) as usize {
                    let pod = format!("{namespace}/{number:02}");
                    self.happens(&[&["crash", &*pod, "alone"][..], version].concat());
                }
            }
            // The same, and etcd recovers there.
            [count, "recover", "in", namespace] => drop(self.then(&format!("{count} crash in {namespace}; {namespace}/etcd ready"))),
            ["gone", name] => self.namespaces.apply_pods(Change::Gone(key(name)), now),
            ["limit", limit] => self.reconfigure(|config| config.max_deletions_per_owner = NonZeroU32::new(number(limit) as u32)),
            ["watch", time, "s"] => self.reconfigure(|config| config.watch_duration = seconds(number(time))),
            ["drop"] => self.namespaces.drop_windows(now),
            ["answer", uid, ref outcome @ ..] => self.answer(uid, self::outcome(outcome)),
            _ => return false,
        }
        true
    }

    /// What is expected of the weeder, and what it does.
    #[rustfmt::skip]
    fn follows(&mut self, words: &[&str]) -> (String, String) {
        let (words, outcome) = match words.iter().position(|word| word.ends_with(':')) {
            Some(at) => (&words[..=at], outcome(&words[at + 1..])),
            None => (words, Outcome::Deleted),
        };
        let rest = words[1..].join(" ");
        let expected = rest.trim_end_matches(':').replace("nothing", "").replace("none", "");
        let found = match *words {
            // DELETEs get no answer yet.
            ["sends", "for", ..] => {
                let Deletion { service, cause, .. } = &self.send()[0];
                format!("for {service} {}", cause.into_str())
            }
            ["sends", ..] => uids(self.send()),
            [count, "sent"] => return (count.to_owned(), self.send().len().to_string()),
            ["deletes" | "tries", ..] => uids(self.try_all(outcome)),
            [count, "tried:"] => return (count.to_owned(), self.try_all(outcome).len().to_string()),
            // Nothing is due for so many seconds, which pass.
            ["waits", time, "s"] => {
                let wait = self.idle_for();
                self.now += seconds(number(time));
                format!("{} s", wait.unwrap_or_default())
            }
            ["next", ..] => format!("{} s", self.next().unwrap_or_default()),
            ["rests"] => self.idle_for().map(|wait| wait.to_string()).unwrap_or_default(),
            // These have opened and closed since the last time, each for its reason.
            ["windows", ..] => self.windows(),
            ["holds", ..] => format!("{} namespaces", self.namespaces.count()),
            _ => panic!("{words:?}"),
        };
        (expected, found)
    }

    fn apply_slice(&mut self, text: &str) {
        let (key, slice) = slice(text).expect(text);
        let change = Change::Applied(key, slice.expect(text));
        self.namespaces.apply_slices(change, self.now);
    }

    fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = Config::clone(&self.namespaces.config);
        change(&mut config);
        self.namespaces.reconfigure(Arc::new(config), self.now);
    }

    /// A DELETE in flight gets its answer.
    pub fn answer(&mut self, uid: &str, outcome: Outcome) {
        let sent = self.in_flight.iter().position(|sent| sent.uid == uid);
        let sent = self.in_flight.swap_remove(sent.expect("in flight"));
        self.namespaces.ended(&sent, outcome, self.now);
    }

    /// Sends what is due, and returns it.
    pub fn send(&mut self) -> Vec<Deletion> {
        let sent = self.namespaces.due(self.now);
        self.in_flight.extend(sent.iter().cloned());
        sent
    }

    /// Sends what is due, and gives each the same answer.
    pub fn try_all(&mut self, outcome: Outcome) -> Vec<Deletion> {
        let sent = self.namespaces.due(self.now);
        for sent in &sent {
            self.namespaces.ended(sent, outcome, self.now);
        }
        sent
    }

    /// Seconds until the next deadline.
    pub fn next(&self) -> Option<f64> {
        let next = self.namespaces.next()?;
        Some((next - self.now).as_secs_f64())
    }

    /// Seconds until the next deadline, where nothing is due.
    fn idle_for(&mut self) -> Option<f64> {
        assert_eq!(self.send(), []);
        self.next()
    }

    fn windows(&mut self) -> String {
        assert_eq!(self.send(), []);
        let events = self.namespaces.take_events().into_iter().map(|event| {
            let reason = match event.change {
                WindowChange::Opened(reason) => reason.into_str(),
                WindowChange::Closed(reason) => reason.into_str(),
            };
            format!("{} {reason}", event.service)
        });
        events.collect::<Vec<_>>().join(", ")
    }
}

pub fn uids(sent: Vec<Deletion>) -> String {
    let uids: Vec<_> = sent.into_iter().map(|sent| sent.uid).collect();
    uids.join(" ")
}

fn number(text: &str) -> f64 {
    text.parse().expect(text)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn every_pod() -> Dependants {
    Dependants {
        pod_selectors: vec![Some(Selector::default())],
    }
}

fn outcome(words: &[&str]) -> Outcome {
    match words {
        ["deleted"] => Outcome::Deleted,
        ["gone"] => Outcome::Gone,
        ["changed"] => Outcome::Changed,
        ["retry"] => Outcome::Retry(None),
        ["retry", "in", time, "s"] => Outcome::Retry(Some(seconds(number(time)))),
        ["unknown"] => Outcome::Unknown,
        ["refused"] => Outcome::Refused,
        _ => panic!("{words:?}"),
    }
}

/// `namespace/name`, or a name in the usual namespace.
pub fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').unwrap_or(("shoot", text));
    Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// `namespace/service-number=endpoint+endpoint`, or `=unreadable`; none where there is no `=`.
fn slice(text: &str) -> Option<(Key, Option<Slice>)> {
    let (name, endpoints) = text.split_once('=')?;
    let key = key(name);
    if endpoints == "unreadable" {
        return Some((key, None));
    }
    let endpoints = endpoints.split('+').filter(|endpoint| !endpoint.is_empty());
    let slice = Slice {
        service: key.name.split('-').next()?.into(),
        ready: endpoints.map(str::to_owned).collect(),
    };
    Some((key, Some(slice)))
}

/// Pods that crash-loop, one after each comma:
/// `NAME [alone] [unreadable] [on SERVICE+SERVICE] [version VERSION] [terminated CONTAINER:RESTARTS+...]`.
fn pods(words: &[&str]) -> Vec<(Key, Option<DeletionCandidate>)> {
    let words = words.join(" ");
    words.split(", ").map(pod).collect()
}

pub fn pod(text: &str) -> (Key, Option<DeletionCandidate>) {
    let mut words = text.split(' ');
    let name = words.next().expect(text);
    let (name, uid) = name.split_once('=').unwrap_or((name, name));
    let mut pod = DeletionCandidate {
        uid: uid.to_owned(),
        resource_version: "1".to_owned(),
        owner: "owner".to_owned(),
        services: vec!["etcd".into()],
        crash_loop: CrashLoop::Reported,
    };
    while let Some(word) = words.next() {
        match word {
            "alone" => pod.owner = uid.to_owned(),
            "unreadable" => return (key(name), None),
            _ => {
                let values = words.next().expect(text);
                let each = values.split('+');
                match word {
                    "on" => pod.services = each.map(Into::into).collect(),
                    "version" => values.clone_into(&mut pod.resource_version),
                    "terminated" => {
                        pod.crash_loop = CrashLoop::Terminated(each.map(termination).collect());
                    }
                    _ => panic!("{text}"),
                }
            }
        }
    }
    (key(name), Some(pod))
}

fn termination(text: &str) -> Termination {
    let (container, restarts) = text.split_once(':').expect(text);
    Termination {
        container: container.to_owned(),
        restarts: restarts.parse().expect(text),
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
