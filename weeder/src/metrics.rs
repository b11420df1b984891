//! What is counted of the weeder's work. Every label is one of a few fixed words.

use common::metrics::Registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use strum::VariantNames;
use weeder_core::news::{Cause, End, Event};

use crate::delete::Answer;

/// A counter for each word of a label.
type Counters = Family<[(&'static str, &'static str); 1], Counter>;

/// The weeder's metrics. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    opened: Counters,
    closed: Counters,
    pub windows_open: Gauge,
    deletions: Counters,
    pub namespaces: Gauge,
    restarts: Counters,
    unreadable: Counters,
}

const WATCHED: [&str; 2] = ["endpointslices", "pods"];

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let help = "Services whose crash-looping dependants are being deleted";
        registry.register("dwd_weeder_windows_open", help, self.windows_open.clone());
        let help = "Namespaces in which a configured Service or a crash-looping dependant is known";
        registry.register("dwd_weeder_namespaces", help, self.namespaces.clone());
        let mut add = |name: &str,
                       help: &str,
                       counters: &Counters,
                       label: &'static str,
                       words: &[&'static str]| {
            registry.register(name, help, counters.clone());
            // All series are there from the beginning, so that the first event of each kind is seen
            // as an increase.
            words
                .iter()
                .for_each(|word| drop(counters.get_or_create(&[(label, *word)])));
        };
        let help = "Times in which crash-looping dependants are deleted: begun, by reason";
        add(
            "dwd_weeder_windows_opened",
            help,
            &self.opened,
            "reason",
            Cause::VARIANTS,
        );
        let help = "Times in which crash-looping dependants are deleted: ended, by reason";
        add(
            "dwd_weeder_windows_closed",
            help,
            &self.closed,
            "reason",
            End::VARIANTS,
        );
        let help = "DELETEs of crash-looping pods, by result";
        add(
            "dwd_weeder_deletions",
            help,
            &self.deletions,
            "result",
            Answer::VARIANTS,
        );
        let help = "Watches that broke and began again with a list";
        add(
            "dwd_weeder_watch_restarts",
            help,
            &self.restarts,
            "resource",
            &WATCHED,
        );
        let help = "Objects that could not be understood; what was known of them stays";
        add(
            "dwd_weeder_unreadable_objects",
            help,
            &self.unreadable,
            "resource",
            &WATCHED,
        );
    }

    pub fn window(&self, event: Event) {
        let (counters, reason) = match event {
            Event::Opened(cause) => (&self.opened, cause.into_str()),
            Event::Closed(end) => (&self.closed, end.into_str()),
        };
        counters.get_or_create(&[("reason", reason)]).inc();
    }

    pub fn deletion(&self, answer: Answer) {
        self.deletions
            .get_or_create(&[("result", answer.into_str())])
            .inc();
    }

    pub fn restart(&self, resource: &'static str) {
        self.restarts.get_or_create(&[("resource", resource)]).inc();
    }

    pub fn unreadable(&self, resource: &'static str) {
        self.unreadable
            .get_or_create(&[("resource", resource)])
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_is_documented_and_every_documented_metric_exists() {
        let mut registry = Registry::default();
        Metrics::default().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let described = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let shown: BTreeSet<String> = described
            .map(|(name, kind)| {
                if kind == "counter" {
                    format!("{name}_total")
                } else {
                    name.to_owned()
                }
            })
            .collect();
        let document = include_str!("../../docs/metrics.md");
        let section = document
            .split("\n## ")
            .find(|section| section.starts_with("Weeder"))
            .unwrap();
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
        assert_eq!(shown, rows.map(str::to_owned).collect());
    }
}
