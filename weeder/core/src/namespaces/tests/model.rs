//! Random histories against the rule in its plainest form: a pod is sent once, as soon as a Service
//! it depends on has been ready continuously and became so less than watchDuration ago. (Each pod
//! has its own owner, since delays of replacements are another rule.) If a kubelet only reports a
//! container as terminated, that must have been observed for 4 s.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum ModelEvent {
    /// A slice exists, ready or not.
    Slice(&'static str, bool),
    SliceGone(&'static str),
    /// A new pod that depends on these Services crash-loops, or is terminated after so many
    /// restarts.
    Pod(&'static str, &'static [&'static str], Option<i32>),
    /// The existing pod is reported as terminated after so many restarts.
    Terminated(&'static str, i32),
    PodGone(&'static str),
    /// The watch of the slices fails.
    Lost,
    /// All slices are listed again, unchanged.
    Relist,
    Pass(f64),
}

fn any_event() -> impl Strategy<Value = ModelEvent> {
    use ModelEvent::*;
    let slices = [
        "n0/etcd",
        "n0/etcd-1",
        "n0/api",
        "n0/api-1",
        "n1/etcd",
        "n1/etcd-1",
        "n1/api",
        "n1/api-1",
    ];
    let slice = || prop::sample::select(slices.to_vec());
    let pod = || prop::sample::select(vec!["n0/a", "n0/b", "n0/c", "n1/a", "n1/b", "n1/c"]);
    let services: Vec<&[&str]> = vec![&[ETCD], &[API], &[ETCD, API]];
    let new = (
        pod(),
        prop::sample::select(services),
        prop::option::of(1..3),
    );
    prop_oneof![
        4 => (slice(), any::<bool>()).prop_map(|(name, ready)| Slice(name, ready)),
        1 => slice().prop_map(SliceGone),
        3 => new.prop_map(|(name, services, restarts)| Pod(name, services, restarts)),
        2 => (pod(), 1..3).prop_map(|(name, restarts)| Terminated(name, restarts)),
        1 => pod().prop_map(PodGone),
        1 => Just(Lost),
        2 => Just(Relist),
        2 => (1..12).prop_map(|tenths| Pass(30.0 * f64::from(tenths))),
        2 => (1..12).prop_map(|tenths| Pass(0.4 * f64::from(tenths))),
    ]
}

struct ModelPod {
    uid: String,
    services: &'static [&'static str],
    /// Number of restarts before the termination, and its time; `None` if it is reported to
    /// crash-loop.
    terminated: Option<(i32, Instant)>,
}

impl ModelPod {
    fn shown(&self, name: &str) -> Pod {
        let pod = pod(&format!("{name}={}", self.uid))
            .alone()
            .on(self.services);
        match self.terminated {
            None => pod,
            Some((restarts, _)) => pod.terminated(&[("c", restarts)]),
        }
    }
}

#[derive(Default)]
struct DeletionModel {
    slices: BTreeMap<&'static str, bool>,
    /// Time since which each Service has been ready.
    ready: BTreeMap<String, Instant>,
    pods: BTreeMap<&'static str, ModelPod>,
    sent: HashSet<String>,
    /// True if the state may be outdated.
    lost: bool,
}

/// The Service of a slice.
fn service(slice: &str) -> &str {
    slice.trim_end_matches("-1")
}

impl DeletionModel {
    fn settle(&mut self, now: Instant) {
        let ready = self.slices.iter().filter(|(_, ready)| **ready);
        let ready = ready.map(|(slice, _)| service(slice).to_owned());
        let since = |service: String| {
            let since = self.ready.get(&service).copied().unwrap_or(now);
            (service, since)
        };
        self.ready = ready.map(since).collect();
    }

    /// UIDs of the pods to send now, which then count as sent.
    fn due(&mut self, now: Instant) -> Vec<String> {
        let is_within = |since: Instant, seconds| now - since < Duration::from_secs_f64(seconds);
        let is_due = |(name, pod): &(&&str, &ModelPod)| {
            let crash_loops = pod
                .terminated
                .is_none_or(|(_, since)| !is_within(since, 4.0));
            let is_open = |service: &&str| {
                let ready = self
                    .ready
                    .get(&format!("{}/{service}", key(name).namespace));
                ready.is_some_and(|since| is_within(*since, WATCH))
            };
            crash_loops && !self.sent.contains(&pod.uid) && pod.services.iter().any(is_open)
        };
        let pods = self.pods.iter().filter(|_| !self.lost);
        let due: Vec<_> = pods
            .filter(is_due)
            .map(|(_, pod)| pod.uid.clone())
            .collect();
        self.sent.extend(due.iter().cloned());
        due
    }
}

proptest! {
    #[test]
    fn any_history_follows_the_rule(
        events in prop::collection::vec(any_event(), 0..60),
        outcomes in prop::collection::vec(prop::sample::select(vec![Outcome::Deleted, Outcome::Gone]), 1..5),
    ) {
        let mut seed = leading();
        let mut model = DeletionModel::default();
        for (number, event) in events.into_iter().enumerate() {
            match event {
                ModelEvent::Slice(name, ready) => {
                    seed.slice(name, service(name), if ready { "e" } else { "" });
                    model.slices.insert(name, ready);
                }
                ModelEvent::SliceGone(name) => {
                    seed.slices(Change::Gone(key(name)));
                    model.slices.remove(name);
                }
                ModelEvent::Pod(name, services, restarts) => {
                    let terminated = restarts.map(|restarts| (restarts, seed.now));
                    let pod = ModelPod { uid: number.to_string(), services, terminated };
                    seed.shows(pod.shown(name));
                    model.pods.insert(name, pod);
                }
                ModelEvent::Terminated(name, restarts) => {
                    let Some(pod) = model.pods.get_mut(name) else { continue };
                    if pod.terminated.is_none_or(|(known, _)| known != restarts) {
                        pod.terminated = Some((restarts, seed.now));
                    }
                    seed.shows(pod.shown(name));
                }
                ModelEvent::PodGone(name) => {
                    seed.heals(name);
                    model.pods.remove(name);
                }
                ModelEvent::Lost => {
                    seed.slices(Change::Lost);
                    model.lost = true;
                }
                ModelEvent::Relist => {
                    let slices = model.slices.iter().map(|(name, ready)| {
                        (key(name), Some(slice(service(name), if *ready { "e" } else { "" })))
                    });
                    seed.slices(listed(slices));
                    model.lost = false;
                }
                ModelEvent::Pass(seconds) => {
                    seed.pass(seconds);
                }
            }
            model.settle(seed.now);
            let due = model.due(seed.now).join(" ");
            seed.tries(&due, outcomes[number % outcomes.len()]);
            prop_assert!(seed.next().is_none_or(|wait| wait > 0.0), "it would turn without end");
        }
        seed.pass(WATCH);
        for name in model.slices.into_keys() {
            seed.slices(Change::Gone(key(name)));
        }
        for name in model.pods.into_keys() {
            seed.heals(name);
        }
        seed.is_empty();
    }
}
