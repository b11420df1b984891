//! Random histories against the rule in its plainest form: a pod is sent once, and as soon as there is a Service it waits for
//! that has been ready without a break since it became so less than watchDuration ago.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// A slice of a namespace and Service is there, ready or not.
    Slice(usize, usize, usize, bool),
    SliceGone(usize, usize, usize),
    /// A pod of a namespace crash-loops; each time it is another one.
    Pod(usize, usize, Vec<usize>),
    PodGone(usize, usize),
    /// The watch of the slices breaks.
    Lost,
    /// All slices are listed again, unchanged.
    Relist,
    /// So many tenths of watchDuration pass.
    Pass(u32),
}

fn any_step() -> impl Strategy<Value = Step> {
    let services = prop::sample::select(vec![vec![ETCD], vec![API], vec![ETCD, API]]);
    prop_oneof![
        4 => (0..2usize, 0..2usize, 0..2usize, any::<bool>()).prop_map(|(n, s, i, ready)| Step::Slice(n, s, i, ready)),
        1 => (0..2usize, 0..2usize, 0..2usize).prop_map(|(n, s, i)| Step::SliceGone(n, s, i)),
        3 => (0..2usize, 0..3usize, services).prop_map(|(n, p, services)| Step::Pod(n, p, services)),
        1 => (0..2usize, 0..3usize).prop_map(|(n, p)| Step::PodGone(n, p)),
        1 => Just(Step::Lost),
        2 => Just(Step::Relist),
        2 => (1..12u32).prop_map(Step::Pass),
    ]
}

#[derive(Default)]
struct Model {
    slices: BTreeMap<(usize, usize, usize), bool>,
    /// Since when each Service has been ready.
    ready: BTreeMap<(usize, usize), Instant>,
    pods: BTreeMap<(usize, usize), (String, Vec<usize>)>,
    sent: HashSet<String>,
    /// What is known may not be true any more.
    lost: bool,
}

impl Model {
    fn settle(&mut self, now: Instant) {
        for namespace in 0..2 {
            for service in 0..2 {
                let mut slices = self.slices.range((namespace, service, 0)..=(namespace, service, usize::MAX));
                if slices.any(|(_, ready)| *ready) {
                    self.ready.entry((namespace, service)).or_insert(now);
                } else {
                    self.ready.remove(&(namespace, service));
                }
            }
        }
    }

    /// What is to be sent now, which is then taken to be sent.
    fn due(&mut self, now: Instant) -> Vec<String> {
        let is_open =
            |namespace, service| self.ready.get(&(namespace, service)).is_some_and(|since| now - *since < WATCH_DURATION);
        let is_due = |((namespace, _), (uid, services)): &(&(usize, usize), &(String, Vec<usize>))| {
            !self.lost && !self.sent.contains(uid) && services.iter().any(|&service| is_open(*namespace, service))
        };
        let due: Vec<String> = self.pods.iter().filter(is_due).map(|(_, (uid, _))| uid.clone()).collect();
        self.sent.extend(due.iter().cloned());
        due
    }
}

fn slice_name((namespace, service, index): (usize, usize, usize)) -> String {
    format!("n{namespace}/{service}-{index}")
}

fn slice_of(service: usize, ready: bool) -> Slice {
    slice(service, if ready { &["e"] } else { &[] })
}

proptest! {
    #[test]
    fn any_history_deletes_exactly_what_the_rule_says_and_leaves_nothing_behind(
        steps in prop::collection::vec(any_step(), 0..60),
        outcomes in prop::collection::vec(prop::sample::select(vec![Outcome::Deleted, Outcome::Gone]), 1..5),
    ) {
        let mut seed = Seed::leading("");
        let mut model = Model::default();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Slice(namespace, service, index, ready) => {
                    let key = (namespace, service, index);
                    seed.namespaces.slices(Change::Applied(self::key(&slice_name(key)), slice_of(service, ready)), seed.now);
                    model.slices.insert(key, ready);
                }
                Step::SliceGone(namespace, service, index) => {
                    let key = (namespace, service, index);
                    seed.namespaces.slices(Change::Gone(self::key(&slice_name(key))), seed.now);
                    model.slices.remove(&key);
                }
                Step::Pod(namespace, pod, services) => {
                    let uid = format!("{number:03}");
                    seed.pod(&format!("n{namespace}/{pod}"), &uid, &services);
                    model.pods.insert((namespace, pod), (uid, services));
                }
                Step::PodGone(namespace, pod) => {
                    seed.pod_is_fine(&format!("n{namespace}/{pod}"));
                    model.pods.remove(&(namespace, pod));
                }
                Step::Lost => {
                    seed.namespaces.slices(Change::Lost, seed.now);
                    model.lost = true;
                }
                Step::Relist => {
                    model.lost = false;
                    let slices = model.slices.iter().map(|(key, ready)| (slice_name(*key), slice_of(key.1, *ready)));
                    let objects = slices.map(|(name, slice)| (key(&name), slice)).collect();
                    seed.namespaces.slices(Change::Listed { objects, unreadable: HashSet::new() }, seed.now);
                }
                Step::Pass(tenths) => seed.pass(WATCH_DURATION * tenths / 10),
            }
            model.settle(seed.now);
            let deleted = seed.deletes(outcomes[number % outcomes.len()]);
            prop_assert_eq!(deleted, model.due(seed.now));
            prop_assert!(seed.namespaces.next().is_none_or(|next| next > seed.now), "it would turn without end");
        }
        seed.pass(WATCH_DURATION);
        for (key, _) in std::mem::take(&mut model.slices) {
            seed.namespaces.slices(Change::Gone(self::key(&slice_name(key))), seed.now);
        }
        for (namespace, pod) in model.pods.into_keys() {
            seed.pod_is_fine(&format!("n{namespace}/{pod}"));
        }
        prop_assert!(seed.due().is_empty());
        prop_assert!(seed.is_empty());
        prop_assert_eq!(seed.namespaces.next(), None);
    }
}
