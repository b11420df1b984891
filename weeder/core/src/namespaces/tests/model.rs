//! Random histories against the rule in its plainest form: a pod is sent once, as soon as a Service
//! it depends on has been ready continuously and became so less than watchDuration ago. (Each pod
//! has its own owner, since delays of replacements are another rule.)

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

/// Steps of a story, in which the model gives a new pod its UID.
fn any_event() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "n[01]/(etcd|api)(-1)? (ready|unready)",
        1 => "n[01]/(etcd|api)(-1)? removed",
        3 => "crash n[01]/[abc] on (etcd|api|etcd\\+api)",
        1 => "gone n[01]/[abc]",
        2 => (1..12).prop_map(|tenths| format!("{} s", 30 * tenths)),
    ]
}

struct ModelPod {
    uid: String,
    services: String,
}

#[derive(Default)]
struct DeletionModel {
    slices: BTreeMap<String, bool>,
    /// Time since which each Service has been ready.
    ready: BTreeMap<String, Instant>,
    pods: BTreeMap<String, ModelPod>,
    sent: HashSet<String>,
}

impl DeletionModel {
    /// Follows an event, and returns the step of the story that it is.
    fn follow(&mut self, event: &str, number: usize) -> String {
        let words: Vec<_> = event.split(' ').collect();
        match *words {
            [name, state @ ("ready" | "unready")] => {
                self.slices.insert(name.to_owned(), state == "ready");
            }
            [name, "removed"] => drop(self.slices.remove(name)),
            ["crash", name, "on", services] => {
                let pod = ModelPod {
                    uid: number.to_string(),
                    services: services.to_owned(),
                };
                self.pods.insert(name.to_owned(), pod);
                return format!("crash {name}={number} alone on {services}");
            }
            ["gone", name] => drop(self.pods.remove(name)),
            _ => {}
        }
        event.to_owned()
    }

    fn settle(&mut self, now: Instant) {
        let ready = self.slices.iter().filter(|(_, ready)| **ready);
        let since = |(slice, _): (&String, &bool)| {
            let service = slice.trim_end_matches("-1").to_owned();
            let since = self.ready.get(&service).copied().unwrap_or(now);
            (service, since)
        };
        self.ready = ready.map(since).collect();
    }

    /// UIDs of the pods to send now, which then count as sent.
    fn due(&mut self, now: Instant) -> Vec<String> {
        let is_due = |(name, pod): &(&String, &ModelPod)| {
            let is_open = |service: &str| {
                let service = format!("{}/{service}", key(name).namespace);
                let since = self.ready.get(&service);
                since.is_some_and(|since| now - *since < Duration::from_secs_f64(WATCH))
            };
            !self.sent.contains(&pod.uid) && pod.services.split('+').any(is_open)
        };
        let due = self.pods.iter().filter(is_due);
        let due: Vec<_> = due.map(|(_, pod)| pod.uid.clone()).collect();
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
        let mut seed = begin("leading");
        let mut model = DeletionModel::default();
        for (number, event) in events.iter().enumerate() {
            seed.then(&model.follow(event, number));
            model.settle(seed.now);
            let sent = seed.try_all(outcomes[number % outcomes.len()]);
            prop_assert_eq!(uids(sent), model.due(seed.now).join(" "));
            prop_assert!(seed.next().is_none_or(|wait| wait > 0.0), "it would turn without end");
        }
        seed.then("300 s");
        for name in model.slices.into_keys() {
            seed.then(&format!("{name} removed"));
        }
        for name in model.pods.into_keys() {
            seed.then(&format!("gone {name}"));
        }
        seed.then("rests; holds 0 namespaces");
    }
}
