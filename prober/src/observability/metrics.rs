//! Counters of the prober. Labels come from fixed sets or from the config file, never from a shoot.

use prober_core::plan::Direction;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use strum::VariantNames;

use super::outage::OutageEnd;

/// A quarter of a minute to a day, in seconds.
const OUTAGE_BUCKETS: [f64; 10] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0,
];

/// A metric for each combination of the values of so many labels.
pub(crate) type Labelled<const N: usize, M = Counter> = Family<[(&'static str, String); N], M>;

#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) probes: Labelled<2>,
    pub(super) probe_seconds: Histogram,
    pub(super) scale_operations: Labelled<4>,
    pub(super) dry_run_writes: Labelled<3>,
    pub(super) decision_to_write: Labelled<1, Histogram>,
    pub(super) default_replicas: Counter,
    pub(super) left_behind: Labelled<2>,
    pub probes_ended_while_held_down: Counter,
    pub(super) protected_without_lead: Labelled<1>,
    pub(super) outages: Labelled<1>,
    pub(super) outage_seconds: Histogram,
    pub(crate) owner_checks: Labelled<1>,
    pub panics: Counter,
}

/// Counts an event with these labels.
pub(crate) fn count<const N: usize>(counters: &Labelled<N>, labels: [(&'static str, &str); N]) {
    let labels = labels.map(|(label, value)| (label, value.to_owned()));
    counters.get_or_create(&labels).inc();
}

/// Buckets of 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout
/// is 30 s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

/// Series that are there from the beginning show their first event as an increase.
fn begin(family: &Labelled<1>, label: &'static str, values: &[&str]) {
    for value in values {
        drop(family.get_or_create(&[(label, (*value).to_owned())]));
    }
}

impl Metrics {
    #[rustfmt::skip]
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let turns = Family::new_with_constructor(seconds as fn() -> Histogram);
        let metrics = Self {
            probes: add(registry, "dwd_probes", "Probes by the stage they ended in and their result"),
            probe_seconds: add_this(registry, "dwd_probe_duration_seconds", "How long complete probes took", seconds()),
            scale_operations: add(registry, "dwd_scale_operations", "Attempts to scale a resource, by result"),
            dry_run_writes: add(registry, "dwd_dry_run_writes", "Writes that a dry run would have made"),
            decision_to_write: add_this(registry, "dwd_decision_to_write_seconds", "From the turn of a resource in a scaling to the answer to its write, configured delays included", turns),
            default_replicas: add(registry, "dwd_restores_with_default_replicas", "Resources restored to 1 replica because the saved number was unusable"),
            left_behind: add(registry, "dwd_left_behind", "Resources that could not be restored within scaleUp.timeout, so that later levels went on without them"),
            probes_ended_while_held_down: add(registry, "dwd_probes_ended_while_held_down", "Shoots whose probe ended while resources were held down; these stay at 0"),
            protected_without_lead: add(registry, "dwd_protected_without_lead", "Writes by this replica while it did not lead: the leader did not act"),
            outages: add(registry, "dwd_outages", "Outages that have ended and that this replica led or took part in, by how"),
            outage_seconds: add_this(registry, "dwd_outage_duration_seconds", "How long these were, from the verdict to the last restore", Histogram::new(OUTAGE_BUCKETS)),
            owner_checks: add(registry, "dwd_owner_checks", "Checks of owner records, by result"),
            panics: add(registry, "dwd_panics", "Tasks of shoots that panicked and were restarted"),
        };
        begin(&metrics.protected_without_lead, "direction", Direction::VARIANTS);
        begin(&metrics.outages, "end", OutageEnd::VARIANTS);
        begin(&metrics.owner_checks, "result", &["ours", "elsewhere"]);
        metrics
    }
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add_this(registry, name, help, M::default())
}

fn add_this<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

#[cfg(test)]
mod tests {
    use strum::VariantNames;

    use crate::owner::{Standing, Why};
    use crate::shoot_client::error::ProbeStep;
    use prober_core::lifecycle::{StopReason, WaitReason};
    use prober_core::verdict::Exclusion;

    #[test]
    fn the_words_that_operators_search_for_are_these() {
        let page = include_str!("../../../docs/metrics.md");
        let words = [
            ProbeStep::VARIANTS,
            StopReason::VARIANTS,
            WaitReason::VARIANTS,
            Exclusion::VARIANTS,
            Standing::VARIANTS,
            Why::VARIANTS,
        ];
        for word in words.concat() {
            assert!(
                page.contains(&format!("`{word}`")),
                "docs/metrics.md: {word}"
            );
        }
    }
}
