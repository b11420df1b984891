//! Random histories against the rule in its plainest form: a pod is sent once, as soon as a Service
//! it depends on has been ready continuously and became so less than watchDuration ago. (Each pod
//! has its own owner, since delays of replacements are another rule.) If a kubelet only reports a
//! container as terminated, that must have been observed for 4 s.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum ModelEvent {
    /// A slice of a namespace and Service exists, ready or not.
    Slice(usize, usize, usize, bool),
    SliceGone(usize, usize, usize),
    /// A new pod of a namespace crash-loops, or is terminated after so many restarts.
    Pod(usize, usize, Vec<usize>, Option<i32>),
    /// The existing pod is reported as terminated after so many restarts.
    Terminated(usize, usize, i32),
    PodGone(usize, usize),
    /// The watch of the slices fails.
    Lost,
    /// All slices are listed again, unchanged.
    Relist,
    Pass(Duration),
}

fn any_step() -> impl Strategy<Value = ModelEvent> {
    let services = prop::sample::select(vec![vec![0], vec![1], vec![0, 1]]);
    prop_oneof![
        4 => (0..2usize, 0..2usize, 0..2usize, any::<bool>()).prop_map(|(n, s, i, ready)| ModelEvent::Slice(n, s, i, ready)),
        1 => (0..2usize, 0..2usize, 0..2usize).prop_map(|(n, s, i)| ModelEvent::SliceGone(n, s, i)),
        3 => (0..2usize, 0..3usize, services, prop::option::of(1..3i32)).prop_map(|(n, p, s, restarts)| ModelEvent::Pod(n, p, s, restarts)),
        2 => (0..2usize, 0..3usize, 1..3i32).prop_map(|(n, p, restarts)| ModelEvent::Terminated(n, p, restarts)),
        1 => (0..2usize, 0..3usize).prop_map(|(n, p)| ModelEvent::PodGone(n, p)),
        1 => Just(ModelEvent::Lost),
        2 => Just(ModelEvent::Relist),
        2 => (1..12u32).prop_map(|tenths| ModelEvent::Pass(WATCH_DURATION * tenths / 10)),
        2 => (1..12u32).prop_map(|tenths| ModelEvent::Pass(TERMINATED_FOR * tenths / 10)),
    ]
}

/// Services that steps refer to by index.
const SERVICES: [&str; 2] = [ETCD, API];

struct ModelPod {
    uid: String,
    services: Vec<usize>,
    /// Number of restarts before the termination, and its time; `None` if it is reported to
    /// crash-loop.
    terminated: Option<(i32, Instant)>,
}

impl ModelPod {
    fn candidate(&self) -> DeletionCandidate {
        let services: Vec<_> = self.services.iter().map(|&index| SERVICES[index]).collect();
        match self.terminated {
            None => candidate(&self.uid, &self.uid, &services),
            Some((restarts, _)) => DeletionCandidate {
                owner: self.uid.clone(),
                ..terminated(&self.uid, &[("c", restarts)], &services)
            },
        }
    }
}

#[derive(Default)]
struct DeletionModel {
    slices: BTreeMap<(usize, usize, usize), bool>,
    /// Time since which each Service has been ready.
    ready: BTreeMap<(usize, usize), Instant>,
    pods: BTreeMap<(usize, usize), ModelPod>,
    sent: HashSet<String>,
    /// True if the state may be outdated.
    lost: bool,
}

impl DeletionModel {
    fn settle(&mut self, now: Instant) {
        for namespace in 0..2 {
            for service in 0..2 {
                let mut slices = self
                    .slices
                    .range((namespace, service, 0)..=(namespace, service, usize::MAX));
                if slices.any(|(_, ready)| *ready) {
                    self.ready.entry((namespace, service)).or_insert(now);
                } else {
                    self.ready.remove(&(namespace, service));
                }
            }
        }
    }

    /// Pods to send now, which then count as sent.
    fn due(&mut self, now: Instant) -> Vec<String> {
        let is_open = |namespace, service| {
            self.ready
                .get(&(namespace, service))
                .is_some_and(|since| now - *since < WATCH_DURATION)
        };
        let is_due = |((namespace, _), pod): &(&(usize, usize), &ModelPod)| {
            let crash_loops = pod
                .terminated
                .is_none_or(|(_, since)| now - since >= TERMINATED_FOR);
            let may_be_sent = !self.lost && !self.sent.contains(&pod.uid) && crash_loops;
            may_be_sent
                && pod
                    .services
                    .iter()
                    .any(|&service| is_open(*namespace, service))
        };
        let due: Vec<String> = self
            .pods
            .iter()
            .filter(is_due)
            .map(|(_, pod)| pod.uid.clone())
            .collect();
        self.sent.extend(due.iter().cloned());
        due
    }
}

fn slice_name((namespace, service, index): (usize, usize, usize)) -> String {
    format!("n{namespace}/{service}-{index}")
}

fn slice_of(service: usize, ready: bool) -> Slice {
    slice(SERVICES[service], if ready { &["e"] } else { &[] })
}

proptest! {
    #[test]
    fn any_history_follows_the_rule(
        steps in prop::collection::vec(any_step(), 0..60),
        outcomes in prop::collection::vec(prop::sample::select(vec![Outcome::Deleted, Outcome::Gone]), 1..5),
    ) {
        let mut seed = TestSeed::leading(None);
        let mut model = DeletionModel::default();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                ModelEvent::Slice(namespace, service, index, ready) => {
                    let key = (namespace, service, index);
                    seed.namespaces.apply_slices(Change::Applied(self::key(&slice_name(key)), slice_of(service, ready)), seed.now);
                    model.slices.insert(key, ready);
                }
                ModelEvent::SliceGone(namespace, service, index) => {
                    let key = (namespace, service, index);
                    seed.namespaces.apply_slices(Change::Gone(self::key(&slice_name(key))), seed.now);
                    model.slices.remove(&key);
                }
                ModelEvent::Pod(namespace, name, services, restarts) => {
                    let terminated = restarts.map(|restarts| (restarts, seed.now));
                    let pod = ModelPod { uid: format!("{number:03}"), services, terminated };
                    seed.show(&format!("n{namespace}/{name}"), pod.candidate());
                    model.pods.insert((namespace, name), pod);
                }
                ModelEvent::Terminated(namespace, name, restarts) => {
                    let Some(pod) = model.pods.get_mut(&(namespace, name)) else { continue };
                    let since = pod.terminated.filter(|(before, _)| *before == restarts).map_or(seed.now, |(_, since)| since);
                    pod.terminated = Some((restarts, since));
                    seed.show(&format!("n{namespace}/{name}"), pod.candidate());
                }
                ModelEvent::PodGone(namespace, pod) => {
                    seed.pod_is_fine(&format!("n{namespace}/{pod}"));
                    model.pods.remove(&(namespace, pod));
                }
                ModelEvent::Lost => {
                    seed.lose_slices();
                    model.lost = true;
                }
                ModelEvent::Relist => {
                    model.lost = false;
                    let slices: Vec<_> = model.slices.iter().map(|(key, ready)| (slice_name(*key), slice_of(key.1, *ready))).collect();
                    let slices = slices.iter().map(|(name, slice)| (name.as_str(), Some(slice.clone())));
                    seed.namespaces.apply_slices(Change::Listed(listed(slices)), seed.now);
                }
                ModelEvent::Pass(time) => seed.pass(time),
            }
            model.settle(seed.now);
            let deleted = seed.deletes(outcomes[number % outcomes.len()]);
            prop_assert_eq!(deleted, model.due(seed.now));
            prop_assert!(seed.next().is_none_or(|next| next > seed.now), "it would turn without end");
        }
        seed.pass(WATCH_DURATION);
        for (key, _) in std::mem::take(&mut model.slices) {
            seed.namespaces.apply_slices(Change::Gone(self::key(&slice_name(key))), seed.now);
        }
        for (namespace, pod) in model.pods.into_keys() {
            seed.pod_is_fine(&format!("n{namespace}/{pod}"));
        }
        prop_assert!(seed.due().is_empty());
        prop_assert!(seed.is_empty());
        prop_assert_eq!(seed.next(), None);
    }
}
